//! Ends of terms that were not taken away: handed over, released, or shut down.

use super::super::{Ending, LeaseOutcome, Loss, StopReason, WriteKind};
use super::fixture::{HolderFixture, Network, WorkEvent, identity, seconds};
use super::taken;
use crate::lease::Occupancy;
use crate::names::Term;

fn handed_over() -> Ending {
    let to = identity("better");
    Ending::HandedOver { to }
}

fn hand_off() -> WriteKind {
    WriteKind::HandOff(identity("better"))
}

/// Leads, and stops its work to make room for `better`.
pub(super) fn draining() -> HolderFixture {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.watch();
    let to = identity("better");
    let stop = WorkEvent::Stop(StopReason::HandOver { to });
    assert_eq!(fixture.work_events, [stop]);
    fixture.work_events.clear();
    fixture
}

#[test]
fn a_preference_stops_the_work_and_then_hands_the_lease_over() {
    let mut fixture = draining();
    let before = fixture.record().clone();
    // The work drains for long, under a lease that goes on.
    fixture.pass(20.0);
    assert_eq!(fixture.sent, vec![WriteKind::Renew; 6]);
    fixture.leads_on();
    fixture.work_stops();
    assert!(!fixture.believes());
    assert_eq!(fixture.sent.last(), Some(&hand_off()));
    fixture.ended(handed_over());
    let after = fixture.record();
    let at = after.renew_time.unwrap();
    let window = seconds(5.0);
    assert_eq!(after, &before.granted(identity("better"), window, at));
}

/// The preference vanished: the watch says so, or the conflict does.
#[test]
fn a_preference_that_vanished_ends_in_a_release() {
    for seen in [true, false] {
        let mut fixture = draining();
        fixture.prefer(None);
        if seen {
            fixture.watch();
        }
        fixture.work_stops();
        let sent = [hand_off(), WriteKind::Release];
        assert_eq!(fixture.sent, sent[usize::from(seen)..]);
        assert_eq!(fixture.work_events, [WorkEvent::Ended(Ending::Released)]);
        assert_eq!(fixture.record().occupancy(), Occupancy::Released);
    }
}

#[test]
fn a_preference_for_this_process_changes_nothing() {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("me"));
    fixture.watch();
    fixture.pass(10.0);
    fixture.leads_on();
    assert_eq!(fixture.record().preferred_holder, Some(identity("me")));
}

#[test]
fn a_grant_that_prefers_another_candidate_is_handed_on_without_work() {
    let mut fixture = HolderFixture::new();
    fixture.grant("me");
    fixture.prefer(Some("better"));
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept, hand_off()]);
    assert_eq!(fixture.work_events, []);
}

#[test]
fn a_hand_off_whose_reply_was_lost_is_recognised() {
    let mut fixture = draining();
    fixture.network = Network::RepliesLost;
    fixture.work_stops();
    fixture.network = Network::Up;
    fixture.pass(1.0);
    fixture.ended(handed_over());
}

#[test]
fn a_release_that_never_gets_through_is_given_up_at_the_deadline() {
    let mut fixture = HolderFixture::leading();
    fixture.shut_down();
    fixture.holder.handle_withdrawn();
    fixture.network = Network::Down;
    fixture.work_stops();
    fixture.pass(30.0);
    fixture.ended(Ending::Lost(Loss::DeadlinePassed));
    let attempts = fixture.sent.len();
    fixture.network = Network::Up;
    fixture.pass(30.0);
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
    fixture.pass(5.0);
    assert_eq!(fixture.record().holder, Some(identity("other")));
    fixture.ended(Ending::Lost(taken("other")));
}

#[test]
fn a_shutdown_stops_withdraws_and_then_releases() {
    let mut fixture = HolderFixture::leading();
    fixture.shut_down();
    fixture.run();
    assert_eq!(fixture.work_events, [WorkEvent::Stop(StopReason::ShutDown)]);
    fixture.pass(5.0);
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    fixture.holder.handle_withdrawn();
    fixture.run();
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Release]);
    assert!(fixture.holder.is_finished());
    fixture.grant("me");
    fixture.watch();
    fixture.pass(5.0);
    assert_eq!(fixture.sent.len(), 2);
}

#[test]
fn a_shutdown_hands_over_where_a_candidate_is_preferred() {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.shut_down();
    fixture.watch();
    fixture.work_stops();
    assert_eq!(fixture.sent, [hand_off()]);
    assert!(fixture.holder.is_finished());
}

#[test]
fn a_shutdown_before_leading_touches_nothing() {
    let mut fixture = HolderFixture::new();
    fixture.watch();
    assert!(!fixture.holder.is_finished(), "it was not asked for");
    fixture.shut_down();
    assert_eq!(fixture.step().effects, [], "nothing is open");
    assert!(fixture.holder.is_finished());
}

/// (R8, R12) Also where the accept was still under way at the shutdown.
#[test]
fn an_accept_of_unknown_outcome_at_shutdown_is_found_and_released() {
    for under_way in [false, true] {
        let mut fixture = HolderFixture::accepting(match under_way {
            true => Network::Silent,
            false => Network::RepliesLost,
        });
        fixture.shut_down();
        fixture.holder.handle_withdrawn();
        if under_way {
            assert!(matches!(fixture.apply_kept(), LeaseOutcome::Done(_)));
            fixture.note_outcome(LeaseOutcome::Unknown);
        }
        fixture.network = Network::Up;
        assert!(!fixture.holder.is_finished());
        fixture.pass(1.0);
        assert_eq!(fixture.sent, [WriteKind::Accept, WriteKind::Release]);
        assert!(fixture.work_events.is_empty() && fixture.holder.is_finished());
    }
}

#[test]
fn a_lost_accept_holds_up_a_shutdown_until_a_read_does_not_show_it_or_its_belief_would_be_over() {
    for (server, until) in [(Network::Up, 0.25), (Network::Down, 10.0)] {
        let mut fixture = HolderFixture::accepting(Network::Down);
        fixture.shut_down();
        fixture.network = server;
        fixture.pass(until - 0.01);
        assert!(!fixture.holder.is_finished(), "{server:?}");
        fixture.pass(0.01);
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
    let last = fixture.work_events.last();
    assert!(matches!(last, Some(WorkEvent::Start(Term(2), _))));
}

#[test]
fn a_grant_waits_until_the_work_of_the_former_term_has_stopped() {
    let mut fixture = HolderFixture::leading();
    fixture.grant("other");
    fixture.watch();
    assert!(!fixture.holder.can_accept());
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, []);
    fixture.work_stops();
    let last = fixture.work_events.last();
    assert!(matches!(last, Some(WorkEvent::Start(Term(3), _))));
}
