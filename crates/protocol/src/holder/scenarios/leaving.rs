//! Ends of terms that were not taken away: handed over, released, or shut down.

use super::super::fixture::{HolderFixture, Network, WorkEvent, identity, seconds};
use super::super::{Ending, LeaseOutcome, Loss, StopReason, WriteKind};
use super::doubt::step;
use super::taken;
use crate::lease::Occupancy;
use crate::names::Term;
use crate::time::Moment;

#[test]
fn a_preference_stops_the_work_and_then_hands_the_lease_over() {
    let mut fixture = HolderFixture::leading();
    let before = fixture.record().clone();
    fixture.prefer(Some("better"));
    fixture.watch();
    let to = identity("better");
    assert_eq!(
        fixture.work_events,
        [WorkEvent::Stop(StopReason::HandOver { to: to.clone() })]
    );
    // The work drains for long, under a lease that goes on.
    fixture.pass(seconds(20.0));
    assert_eq!(fixture.sent, vec![WriteKind::Renew; 6]);
    assert!(fixture.holder.believes(fixture.now));
    fixture.work_stops();
    assert!(!fixture.holder.believes(fixture.now));
    assert_eq!(fixture.sent.last(), Some(&WriteKind::HandOff(to.clone())));
    assert_eq!(
        fixture.work_events[1..],
        [WorkEvent::Ended(Ending::HandedOver { to: to.clone() })]
    );
    let after = fixture.record();
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
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.watch();
    fixture.prefer(None);
    fixture.watch();
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Release]);
    assert_eq!(
        fixture.work_events[1..],
        [WorkEvent::Ended(Ending::Released)]
    );
    assert_eq!(fixture.record().occupancy(), Occupancy::Released);
}

#[test]
fn a_preference_that_vanished_unseen_is_found_by_the_conflict() {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.watch();
    fixture.prefer(None);
    fixture.work_stops();
    assert_eq!(
        fixture.sent,
        [WriteKind::HandOff(identity("better")), WriteKind::Release]
    );
    assert_eq!(
        fixture.work_events[1..],
        [WorkEvent::Ended(Ending::Released)]
    );
}

#[test]
fn a_preference_for_this_process_changes_nothing() {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("me"));
    fixture.watch();
    fixture.pass(seconds(10.0));
    assert!(fixture.work_events.is_empty());
    assert_eq!(fixture.record().preferred_holder, Some(identity("me")));
}

#[test]
fn a_grant_that_prefers_another_candidate_is_handed_on_without_work() {
    let mut fixture = HolderFixture::new();
    fixture.grant("me");
    fixture.prefer(Some("better"));
    fixture.watch();
    assert_eq!(
        fixture.sent,
        [WriteKind::Accept, WriteKind::HandOff(identity("better"))]
    );
    assert!(fixture.work_events.is_empty());
}

#[test]
fn a_hand_off_whose_reply_was_lost_is_recognised() {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.watch();
    fixture.network = Network::RepliesLost;
    fixture.work_stops();
    fixture.network = Network::Up;
    fixture.pass(seconds(1.0));
    let to = identity("better");
    assert_eq!(
        fixture.work_events.last(),
        Some(&WorkEvent::Ended(Ending::HandedOver { to }))
    );
}

#[test]
fn a_release_that_never_gets_through_is_given_up_at_the_deadline() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Down;
    fixture.work_stops();
    fixture.pass(seconds(30.0));
    assert_eq!(
        fixture.work_events,
        [WorkEvent::Ended(Ending::Lost(Loss::DeadlinePassed))]
    );
    let attempts = fixture.sent.len();
    fixture.network = Network::Up;
    fixture.pass(seconds(30.0));
    assert_eq!(fixture.sent.len(), attempts);
}

#[test]
fn a_late_release_never_wipes_a_successor() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Delayed;
    fixture.work_stops();
    let late = fixture.kept.clone().unwrap();
    fixture.grant("other");
    assert_eq!(fixture.store.put(&late), LeaseOutcome::Conflict);
    fixture.network = Network::Up;
    fixture.pass(seconds(5.0));
    assert_eq!(fixture.record().holder, Some(identity("other")));
    assert_eq!(
        fixture.work_events,
        [WorkEvent::Ended(Ending::Lost(taken("other")))]
    );
}

#[test]
fn a_shutdown_stops_withdraws_and_then_releases() {
    let mut fixture = HolderFixture::leading();
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.run();
    assert_eq!(fixture.work_events, [WorkEvent::Stop(StopReason::ShutDown)]);
    fixture.pass(seconds(5.0));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    fixture.holder.handle_withdrawn();
    fixture.run();
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Release]);
    assert!(fixture.holder.is_finished());
    fixture.grant("me");
    fixture.watch();
    fixture.pass(seconds(5.0));
    assert_eq!(fixture.sent.len(), 2);
}

#[test]
fn a_shutdown_hands_over_where_a_candidate_is_preferred() {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.watch();
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::HandOff(identity("better"))]);
    assert!(fixture.holder.is_finished());
}

#[test]
fn a_shutdown_before_leading_touches_nothing() {
    let mut fixture = HolderFixture::new();
    fixture.watch();
    fixture.holder.shut_down(Moment::same(fixture.now));
    assert_eq!(step(&mut fixture).effects, [], "nothing is open");
    assert!(fixture.holder.is_finished());
}

#[test]
fn an_accept_of_unknown_outcome_at_shutdown_is_found_and_released() {
    let mut fixture = HolderFixture::new();
    fixture.network = Network::RepliesLost;
    fixture.grant("me");
    fixture.watch();
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.holder.handle_withdrawn();
    fixture.network = Network::Up;
    assert!(!fixture.holder.is_finished());
    fixture.pass(seconds(1.0));
    assert_eq!(fixture.sent, [WriteKind::Accept, WriteKind::Release]);
    assert!(fixture.work_events.is_empty() && fixture.holder.is_finished());
}

#[test]
fn a_lost_accept_holds_up_a_shutdown_until_a_read_does_not_show_it_or_its_belief_would_be_over() {
    for (server, until) in [(Network::Up, 0.25), (Network::Down, 10.0)] {
        let mut fixture = HolderFixture::new();
        fixture.network = Network::Down;
        fixture.grant("me");
        fixture.watch();
        fixture.holder.shut_down(Moment::same(fixture.now));
        fixture.network = server;
        fixture.pass(seconds(until - 0.01));
        assert!(!fixture.holder.is_finished(), "{server:?}");
        fixture.pass(seconds(0.01));
        assert!(fixture.holder.is_finished(), "{server:?}");
    }
}

#[test]
fn work_that_ends_by_itself_releases_and_may_lead_again() {
    let mut fixture = HolderFixture::leading();
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Release]);
    assert_eq!(fixture.work_events, [WorkEvent::Ended(Ending::Released)]);
    fixture.grant("me");
    fixture.watch();
    assert!(matches!(
        fixture.work_events.last(),
        Some(WorkEvent::Start(Term(2), _))
    ));
}

#[test]
fn a_grant_waits_until_the_work_of_the_former_term_has_stopped() {
    let mut fixture = HolderFixture::leading();
    fixture.grant("other");
    fixture.watch();
    assert!(!fixture.holder.can_accept());
    fixture.grant("me");
    fixture.watch();
    assert!(fixture.sent.is_empty());
    fixture.work_stops();
    assert!(matches!(
        fixture.work_events.last(),
        Some(WorkEvent::Start(Term(3), _))
    ));
}
