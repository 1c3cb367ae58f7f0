//! Scenarios of one holder, each named by what happens; in `properties` and `strange_inputs` arbitrary ones. In `texts` the
//! words for them.

mod acquiring;
mod doubt;
mod ending;
mod first_start;
mod fixture;
mod leaving;
mod proof;
mod properties;
mod races;
mod rejoining;
mod resuming;
mod shown_history;
mod strange_inputs;
mod texts;

use self::fixture::{HolderFixture, Network, WorkEvent, identity, seconds, wall_at};
use super::{Ending, LeaseEvent, Loss, WriteKind};
use crate::lease::LeaseRecord;
use crate::lease_watch::NewsSource;
use crate::names::{Term, Token};

fn taken(by: &str) -> Loss {
    Loss::Taken {
        by: Some(identity(by)),
    }
}

#[test]
fn a_grant_is_accepted_by_an_own_write_and_then_believed() {
    let mut fixture = HolderFixture::new();
    fixture.watch();
    fixture.grant("me");
    let granted = fixture.store.lease.clone().unwrap();
    fixture.is_idle();
    assert!(!fixture.believes());
    fixture.watch();
    let token = Token(granted.version);
    assert_eq!(fixture.work_events, [WorkEvent::Start(Term(1), token)]);
    let accepted = LeaseRecord {
        duration_seconds: Some(15),
        renew_time: fixture.record().renew_time,
        token: Some(token),
        token_term: Some(Term(1)),
        ..granted.record.clone()
    };
    assert_eq!(fixture.record(), &accepted);
    assert_ne!(accepted.renew_time, granted.record.renew_time);
    assert_eq!(fixture.deadline(), fixture.now.after(seconds(10.0)));
}

#[test]
fn a_list_that_shows_the_revision_that_is_known_is_no_reason_to_read() {
    let mut fixture = HolderFixture::leading();
    let lease = fixture.store.lease.clone().unwrap();
    fixture.event(LeaseEvent::Seen(lease, NewsSource::List));
    assert_eq!(fixture.reads, 0);
}

/// The end of the work of an earlier term says nothing of the next one.
#[test]
fn work_that_is_due_is_started_whatever_has_stopped_before() {
    let mut fixture = HolderFixture::accepting(Network::Silent);
    let accepted = fixture.apply_kept();
    fixture.note_outcome(accepted);
    fixture.work_stops();
    assert!(matches!(fixture.work_events[..], [WorkEvent::Start(..)]));
}

#[test]
fn the_lease_of_another_holder_is_never_touched() {
    let mut fixture = HolderFixture::new();
    fixture.grant("other");
    fixture.watch();
    fixture.pass(60.0);
    fixture.is_idle();
}

#[test]
fn a_term_of_an_earlier_life_of_this_name_is_left_to_expire() {
    let mut fixture = HolderFixture::leading();
    let mut second = HolderFixture::new();
    second.store = fixture.store.clone();
    second.watch();
    second.pass(30.0);
    second.is_idle();
    // Granted anew, it is this life's.
    second.grant("me");
    second.watch();
    assert_eq!(second.sent, [WriteKind::Accept]);
    // The first life reads of the new term and stops.
    fixture.store = second.store.clone();
    fixture.watch();
    fixture.lost(Loss::NewTerm);
}

/// The built-in elector counts no term and leaves the token of a holder that crashed in place: its next electee took
/// the record for a term of another life of its name, never accepted, and was never granted anew.
#[test]
fn a_grant_of_the_built_in_elector_after_a_crash_is_accepted() {
    let mut crashed = HolderFixture::leading();
    let before = crashed.record().clone();
    crashed.stand_still(30.0);
    crashed.take_over_as_builtin("me");
    let granted = crashed.store.lease.clone().unwrap();
    let kept = (granted.record.term, granted.record.token);
    assert_eq!(kept, (before.term, before.token));
    let mut next = HolderFixture::new();
    next.store = crashed.store.clone();
    next.now = crashed.now;
    next.watch();
    let token = Token(granted.version);
    assert_eq!(next.work_events, [WorkEvent::Start(before.term, token)]);
    assert!(Some(token) > before.token);
    let accepted = next.record().clone();
    assert_eq!(accepted.acquire_time, accepted.renew_time);
    // From here on the term is one like any other: a second life of the name leaves it alone, its holder renews it.
    let mut second = HolderFixture::new();
    second.store = next.store.clone();
    second.watch();
    second.pass(30.0);
    second.is_idle();
    next.pass(4.0);
    assert_eq!(next.sent, [WriteKind::Accept, WriteKind::Renew]);
    assert_eq!(next.record().acquire_time, accepted.acquire_time);
}

#[test]
fn of_two_lives_that_share_a_name_only_the_one_that_wrote_believes() {
    let mut fixture = HolderFixture::new();
    fixture.grant("me");
    let mut other = HolderFixture::new();
    other.store = fixture.store.clone();
    other.stand_still(0.5);
    other.watch();
    let granted = fixture.present();
    fixture.note_event(granted);
    fixture.store = other.store.clone();
    fixture.run();
    fixture.pass(9.0);
    assert!(!fixture.believes() && fixture.work_events.is_empty());
    assert_eq!(fixture.sent, [WriteKind::Accept]);
}

/// (R11) Every third of the deadline; a duration that a stranger changed is restored.
#[test]
fn the_lease_is_renewed_and_nothing_else_changes() {
    let mut fixture = HolderFixture::leading();
    let before = fixture.record().clone();
    fixture.pass(96.0);
    fixture.edit(|record| record.duration_seconds = Some(3));
    fixture.watch();
    fixture.pass(4.0);
    assert_eq!(fixture.sent, vec![WriteKind::Renew; 30]);
    let after = fixture.record().clone();
    assert_ne!(after.renew_time, before.renew_time);
    let renewed = LeaseRecord {
        renew_time: after.renew_time,
        ..before
    };
    assert_eq!(after, renewed);
    fixture.leads_on();
}

#[test]
fn failed_renewals_are_retried_with_growing_pauses_until_the_deadline() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Down;
    let start = fixture.now;
    fixture.pass(9.999);
    assert!(fixture.believes());
    // At 3.33, then after 0.25, 0.5, 1, 2 and 2 seconds.
    assert_eq!(fixture.sent.len(), 6);
    fixture.pass(0.001);
    assert_eq!(fixture.now, start.after(seconds(10.0)));
    fixture.lost(Loss::DeadlinePassed);
}

#[test]
fn news_of_another_holder_stops_at_once_and_nothing_is_released() {
    let mut fixture = HolderFixture::leading();
    fixture.grant("other");
    fixture.watch();
    fixture.lost(taken("other"));
    fixture.work_stops();
    fixture.ended(Ending::Lost(taken("other")));
    assert_eq!(fixture.sent, []);
}

#[test]
fn a_conflict_is_a_loss_only_where_there_is_a_successor() {
    let mut fixture = HolderFixture::leading();
    fixture.pass(3.0);
    fixture.edit(|_| {});
    fixture.pass(1.0);
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
    fixture.leads_on();
    fixture.grant("other");
    fixture.pass(4.0);
    fixture.lost(taken("other"));
}

#[test]
fn a_deleted_lease_ends_the_term_and_is_not_written_again() {
    let mut fixture = HolderFixture::leading();
    fixture.store.delete();
    fixture.watch();
    fixture.lost(Loss::Deleted);
    fixture.work_stops();
    fixture.store.create(LeaseRecord::born(None));
    fixture.watch();
    fixture.pass(20.0);
    assert_eq!(fixture.sent, []);
}

#[test]
fn a_pause_longer_than_the_lease_leaves_no_belief() {
    let mut fixture = HolderFixture::leading();
    fixture.stand_still(3600.0);
    assert!(!fixture.believes());
    fixture.run();
    fixture.lost(Loss::DeadlinePassed);
    assert_eq!(fixture.sent, []);
}

#[test]
fn a_clock_that_stands_still_still_writes_distinct_times() {
    let mut fixture = HolderFixture::leading();
    let wall = wall_at(fixture.now);
    let mut times = Vec::new();
    for _ in 0..3 {
        fixture.stand_still(3.4);
        let decision = fixture.holder.step(fixture.moment(), wall);
        let [super::Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        times.push(write.record.renew_time);
        let outcome = fixture.store.put(write);
        fixture.note_outcome(outcome);
    }
    assert!(times[0] != times[1] && times[1] != times[2]);
}
