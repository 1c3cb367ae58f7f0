//! How a term ends that was not taken away: handed over, released, or shut down.

use super::super::world::{Network, Told, World, identity, seconds};
use super::super::{Ending, LeaseOutcome, Loss, StopReason, WriteKind};
use super::taken;
use crate::lease::Occupancy;
use crate::names::Term;

#[test]
fn a_preference_stops_the_work_and_then_hands_the_lease_over() {
    let mut world = World::leading();
    let before = world.record().clone();
    world.prefer(Some("better"));
    world.watch();
    let to = identity("better");
    assert_eq!(
        world.told,
        [Told::Stop(StopReason::HandOver { to: to.clone() })]
    );
    // The work drains for long, under a lease that goes on.
    world.pass(seconds(20.0));
    assert_eq!(world.sent, vec![WriteKind::Renew; 6]);
    assert!(world.holder.believes(world.now));
    world.work_stops();
    assert!(!world.holder.believes(world.now));
    assert_eq!(world.sent.last(), Some(&WriteKind::HandOff(to.clone())));
    assert_eq!(
        world.told[1..],
        [Told::Ended(Ending::HandedOver { to: to.clone() })]
    );
    let after = world.record();
    assert!(after.is_unaccepted_grant());
    assert_eq!(after.holder, Some(to));
    assert_eq!(after.term, before.term.next());
    assert_eq!(
        (after.duration_seconds, &after.preferred_holder),
        (Some(5), &None)
    );
}

#[test]
fn a_preference_that_vanished_ends_in_a_release() {
    let mut world = World::leading();
    world.prefer(Some("better"));
    world.watch();
    world.prefer(None);
    world.watch();
    world.work_stops();
    assert_eq!(world.sent, [WriteKind::Release]);
    assert_eq!(world.told[1..], [Told::Ended(Ending::Released)]);
    assert_eq!(world.record().occupancy(), Occupancy::Released);
}

#[test]
fn a_preference_that_vanished_unseen_is_found_by_the_conflict() {
    let mut world = World::leading();
    world.prefer(Some("better"));
    world.watch();
    world.prefer(None);
    world.work_stops();
    assert_eq!(
        world.sent,
        [WriteKind::HandOff(identity("better")), WriteKind::Release]
    );
    assert_eq!(world.told[1..], [Told::Ended(Ending::Released)]);
}

#[test]
fn a_preference_for_this_process_changes_nothing() {
    let mut world = World::leading();
    world.prefer(Some("me"));
    world.watch();
    world.pass(seconds(10.0));
    assert!(world.told.is_empty());
    assert_eq!(world.record().preferred_holder, Some(identity("me")));
}

#[test]
fn a_grant_that_prefers_another_candidate_is_handed_on_without_work() {
    let mut world = World::new();
    world.grant("me");
    world.prefer(Some("better"));
    world.watch();
    assert_eq!(
        world.sent,
        [WriteKind::Accept, WriteKind::HandOff(identity("better"))]
    );
    assert!(world.told.is_empty());
}

#[test]
fn a_hand_off_whose_reply_was_lost_is_recognised() {
    let mut world = World::leading();
    world.prefer(Some("better"));
    world.watch();
    world.network = Network::AnswersLost;
    world.work_stops();
    world.network = Network::Up;
    world.pass(seconds(1.0));
    let to = identity("better");
    assert_eq!(
        world.told.last(),
        Some(&Told::Ended(Ending::HandedOver { to }))
    );
}

#[test]
fn a_release_that_never_gets_through_is_given_up_at_the_deadline() {
    let mut world = World::leading();
    world.network = Network::Down;
    world.work_stops();
    world.pass(seconds(30.0));
    assert_eq!(
        world.told,
        [Told::Ended(Ending::Lost(Loss::DeadlinePassed))]
    );
    let attempts = world.sent.len();
    world.network = Network::Up;
    world.pass(seconds(30.0));
    assert_eq!(world.sent.len(), attempts);
}

#[test]
fn a_late_release_never_wipes_a_successor() {
    let mut world = World::leading();
    world.network = Network::Delayed;
    world.work_stops();
    let late = world.kept.clone().unwrap();
    world.grant("other");
    assert_eq!(world.store.put(&late), LeaseOutcome::Conflict);
    world.network = Network::Up;
    world.pass(seconds(5.0));
    assert_eq!(world.record().holder, Some(identity("other")));
    assert_eq!(world.told, [Told::Ended(Ending::Lost(taken("other")))]);
}

#[test]
fn a_shutdown_stops_withdraws_and_then_releases() {
    let mut world = World::leading();
    world.holder.shut_down(world.now);
    world.run();
    assert_eq!(world.told, [Told::Stop(StopReason::ShutDown)]);
    world.pass(seconds(5.0));
    assert_eq!(world.sent, [WriteKind::Renew]);
    world.work_stops();
    assert_eq!(world.sent, [WriteKind::Renew]);
    world.holder.handle_withdrawn();
    world.run();
    assert_eq!(world.sent, [WriteKind::Renew, WriteKind::Release]);
    assert!(world.holder.is_finished());
    world.grant("me");
    world.watch();
    world.pass(seconds(5.0));
    assert_eq!(world.sent.len(), 2);
}

#[test]
fn a_shutdown_hands_over_where_a_candidate_is_preferred() {
    let mut world = World::leading();
    world.prefer(Some("better"));
    world.holder.shut_down(world.now);
    world.watch();
    world.work_stops();
    assert_eq!(world.sent, [WriteKind::HandOff(identity("better"))]);
    assert!(world.holder.is_finished());
}

#[test]
fn a_shutdown_before_leading_touches_nothing() {
    let mut world = World::new();
    world.watch();
    world.holder.shut_down(world.now);
    world.run();
    assert!(world.holder.is_finished());
    assert!(world.sent.is_empty() && world.told.is_empty());
}

#[test]
fn an_accept_of_unknown_outcome_at_shutdown_is_found_and_released() {
    let mut world = World::new();
    world.network = Network::AnswersLost;
    world.grant("me");
    world.watch();
    world.holder.shut_down(world.now);
    world.holder.handle_withdrawn();
    world.network = Network::Up;
    assert!(!world.holder.is_finished());
    world.pass(seconds(1.0));
    assert_eq!(world.sent, [WriteKind::Accept, WriteKind::Release]);
    assert!(world.told.is_empty() && world.holder.is_finished());
}

#[test]
fn work_that_ends_by_itself_releases_and_may_lead_again() {
    let mut world = World::leading();
    world.work_stops();
    assert_eq!(world.sent, [WriteKind::Release]);
    assert_eq!(world.told, [Told::Ended(Ending::Released)]);
    world.grant("me");
    world.watch();
    assert!(matches!(world.told.last(), Some(Told::Start(Term(2), _))));
}

#[test]
fn a_grant_waits_until_the_work_of_the_former_term_has_stopped() {
    let mut world = World::leading();
    world.grant("other");
    world.watch();
    assert!(!world.holder.can_accept());
    world.grant("me");
    world.watch();
    assert!(world.sent.is_empty());
    world.work_stops();
    assert!(matches!(world.told.last(), Some(Told::Start(Term(3), _))));
}
