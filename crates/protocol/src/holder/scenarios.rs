//! Scenarios of one holder, each named by what happens.

mod acquiring;
mod doubt;
mod ending;
mod first_start;
mod leaving;
mod proof;
mod races;

use super::fixture::{HolderFixture, Network, WorkEvent, identity, seconds, wall_at};
use super::{Ending, LeaseEvent, LeaseOutcome, Loss, StopReason, WriteKind};
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Token};
use crate::time::{Moment, Timestamp};

fn lost(why: Loss) -> WorkEvent {
    WorkEvent::Stop(StopReason::Lost(why))
}

fn taken(by: &str) -> Loss {
    Loss::Taken {
        by: Some(identity(by)),
    }
}

#[test]
fn a_grant_is_accepted_by_an_own_write_and_then_believed() {
    let mut fixture = HolderFixture::new();
    fixture.watch();
    assert!(fixture.sent.is_empty());
    fixture.grant("me");
    let granted = fixture.store.lease.clone().unwrap();
    assert!(!fixture.holder.believes(fixture.now));
    fixture.watch();
    let token = Token(granted.version);
    assert_eq!(fixture.work_events, [WorkEvent::Start(Term(1), token)]);
    let record = fixture.record();
    assert_eq!(
        (record.token, record.token_term),
        (Some(token), Some(Term(1)))
    );
    assert_eq!(record.duration_seconds, Some(15));
    assert_eq!(record.acquire_time, granted.record.acquire_time);
    assert_ne!(record.renew_time, granted.record.renew_time);
    let belief = fixture.holder.belief().unwrap();
    assert_eq!(belief.deadline, fixture.now.after(seconds(10.0)));
}

#[test]
fn the_lease_of_another_holder_is_never_touched() {
    let mut fixture = HolderFixture::new();
    fixture.grant("other");
    fixture.watch();
    fixture.pass(seconds(60.0));
    assert!(fixture.sent.is_empty() && fixture.work_events.is_empty());
}

#[test]
fn a_term_of_an_earlier_life_of_this_name_is_left_to_expire() {
    let mut fixture = HolderFixture::leading();
    let mut second = HolderFixture::new();
    second.store = fixture.store.clone();
    second.watch();
    second.pass(seconds(30.0));
    assert!(second.sent.is_empty() && second.work_events.is_empty());
    // Granted anew, it is this life's.
    second.grant("me");
    second.watch();
    assert_eq!(second.sent, [WriteKind::Accept]);
    // The first life reads of the new term and stops.
    fixture.store = second.store.clone();
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(Loss::NewTerm)]);
}

/// The built-in elector counts no term and leaves the token of a holder that crashed in place: its next electee took
/// the record for a term of another life of its name, never accepted, and was never granted anew.
#[test]
fn a_grant_of_the_built_in_elector_after_a_crash_is_accepted() {
    let mut crashed = HolderFixture::leading();
    let before = crashed.record().clone();
    crashed.now = crashed.now.after(seconds(30.0));
    crashed.take_over_as_builtin("me");
    let granted = crashed.store.lease.clone().unwrap();
    assert_eq!(
        (granted.record.term, granted.record.token),
        (before.term, before.token)
    );
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
    second.pass(seconds(30.0));
    assert!(second.sent.is_empty());
    next.pass(seconds(4.0));
    assert_eq!(next.sent, [WriteKind::Accept, WriteKind::Renew]);
    assert_eq!(next.record().acquire_time, accepted.acquire_time);
}

#[test]
fn belief_counts_from_the_send_and_not_from_the_reply() {
    let mut fixture = HolderFixture::new();
    fixture.network = Network::Silent;
    fixture.grant("me");
    fixture.watch();
    let sent_at = fixture.now;
    let outcome = fixture.store.put(&fixture.kept.clone().unwrap());
    fixture.now = fixture.now.after(seconds(4.0));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), outcome);
    fixture.run();
    let belief = fixture.holder.belief().unwrap();
    assert_eq!(belief.deadline, sent_at.after(seconds(10.0)));
    assert!(!fixture.holder.believes(belief.deadline));
}

#[test]
fn a_duration_that_a_stranger_changed_is_restored_by_the_next_renewal() {
    let mut fixture = HolderFixture::leading();
    fixture.store.edit(|record| crate::lease::LeaseRecord {
        duration_seconds: Some(3),
        ..record.clone()
    });
    fixture.watch();
    fixture.pass(seconds(4.0));
    assert_eq!(fixture.record().duration_seconds, Some(15));
    assert!(fixture.work_events.is_empty());
}

#[test]
fn a_reply_after_the_deadline_does_not_revive_the_term() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(9.9));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    let outcome = fixture.store.put(&fixture.kept.clone().unwrap());
    fixture.now = fixture.now.after(seconds(0.2));
    assert!(!fixture.holder.believes(fixture.now));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), outcome);
    fixture.network = Network::Up;
    fixture.run();
    assert!(!fixture.holder.believes(fixture.now));
    assert_eq!(fixture.work_events, [lost(Loss::DeadlinePassed)]);
    fixture.work_stops();
    fixture.pass(seconds(60.0));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    assert_eq!(
        fixture.work_events.last(),
        Some(&WorkEvent::Ended(Ending::Lost(Loss::DeadlinePassed)))
    );
}

#[test]
fn the_lease_is_renewed_every_third_of_the_deadline_and_nothing_else_changes() {
    let mut fixture = HolderFixture::leading();
    let before = fixture.record().clone();
    fixture.pass(seconds(100.0));
    assert_eq!(fixture.sent, vec![WriteKind::Renew; 30]);
    assert!(fixture.work_events.is_empty());
    let after = fixture.record().clone();
    assert_ne!(after.renew_time, before.renew_time);
    assert_eq!(
        after,
        crate::lease::LeaseRecord {
            renew_time: after.renew_time,
            ..before
        }
    );
}

#[test]
fn failed_renewals_are_retried_with_growing_pauses_until_the_deadline() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Down;
    let start = fixture.now;
    fixture.pass(seconds(9.999));
    assert!(fixture.holder.believes(fixture.now));
    // At 3.33, then after 0.25, 0.5, 1, 2 and 2 seconds.
    assert_eq!(fixture.sent.len(), 6);
    fixture.pass(seconds(0.001));
    assert_eq!(fixture.now, start.after(seconds(10.0)));
    assert!(!fixture.holder.believes(fixture.now));
    assert_eq!(fixture.work_events, [lost(Loss::DeadlinePassed)]);
}

#[test]
fn a_renewal_whose_reply_was_lost_counts_from_its_own_send() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::RepliesLost;
    let start = fixture.now;
    fixture.pass(seconds(3.4));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    let sent_at = start.after(seconds(10.0) / 3);
    // The retry meets a conflict, and the read shows the first attempt.
    fixture.network = Network::Up;
    fixture.store.edit(Clone::clone);
    fixture.run();
    fixture.watch();
    assert_eq!(
        fixture.holder.belief().unwrap().deadline,
        sent_at.after(seconds(10.0))
    );
    assert!(fixture.work_events.is_empty());
}

#[test]
fn an_accept_whose_reply_was_lost_is_found_by_a_read() {
    let mut fixture = HolderFixture::new();
    fixture.network = Network::RepliesLost;
    fixture.grant("me");
    let token = Token(fixture.store.lease.as_ref().unwrap().version);
    fixture.watch();
    let sent_at = fixture.now;
    assert!(fixture.work_events.is_empty());
    fixture.network = Network::Up;
    fixture.pass(seconds(0.25));
    // The second accept meets the first one: conflict, read, start.
    assert_eq!(fixture.sent, [WriteKind::Accept, WriteKind::Accept]);
    assert_eq!(fixture.work_events, [WorkEvent::Start(Term(1), token)]);
    assert_eq!(
        fixture.holder.belief().unwrap().deadline,
        sent_at.after(seconds(10.0))
    );
}

#[test]
fn of_two_lives_that_share_a_name_only_the_one_that_wrote_believes() {
    let mut fixture = HolderFixture::new();
    fixture.grant("me");
    let mut other = HolderFixture::new();
    other.store = fixture.store.clone();
    other.now = fixture.now.after(seconds(0.5));
    other.watch();
    fixture.holder.handle_event(
        Moment::same(fixture.now),
        LeaseEvent::Seen(fixture.store.lease.clone().unwrap(), NewsSource::Watch),
    );
    fixture.store = other.store.clone();
    fixture.run();
    fixture.pass(seconds(9.0));
    assert!(!fixture.holder.believes(fixture.now) && fixture.work_events.is_empty());
    assert_eq!(fixture.sent, [WriteKind::Accept]);
}

#[test]
fn news_of_another_holder_stops_at_once_and_nothing_is_released() {
    let mut fixture = HolderFixture::leading();
    fixture.grant("other");
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(taken("other"))]);
    assert!(!fixture.holder.believes(fixture.now));
    fixture.work_stops();
    assert_eq!(
        fixture.work_events[1..],
        [WorkEvent::Ended(Ending::Lost(taken("other")))]
    );
    assert!(fixture.sent.is_empty());
}

#[test]
fn a_conflict_alone_is_no_loss() {
    let mut fixture = HolderFixture::leading();
    fixture.pass(seconds(3.0));
    fixture.store.edit(Clone::clone);
    fixture.pass(seconds(1.0));
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
    assert!(fixture.work_events.is_empty());
    assert!(fixture.holder.believes(fixture.now.after(seconds(9.0))));
}

#[test]
fn a_conflict_with_a_successor_ends_the_term_before_the_deadline() {
    let mut fixture = HolderFixture::leading();
    fixture.pass(seconds(3.0));
    fixture.grant("other");
    fixture.pass(seconds(1.0));
    assert_eq!(fixture.work_events, [lost(taken("other"))]);
}

#[test]
fn an_older_event_is_ignored_and_checked_by_a_read() {
    let mut fixture = HolderFixture::new();
    let old = fixture.store.lease.clone().unwrap();
    fixture.grant("me");
    fixture.watch();
    fixture.work_events.clear();
    fixture.event(LeaseEvent::Seen(old, NewsSource::Watch));
    assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
}

#[test]
fn a_read_below_what_was_seen_means_a_restored_store() {
    let mut fixture = HolderFixture::leading();
    let old = fixture.store.lease.clone().unwrap();
    fixture.pass(seconds(5.0));
    fixture.store.lease = Some(old);
    fixture.holder.request_read();
    fixture.run();
    assert_eq!(fixture.work_events, [lost(Loss::StoreRestored)]);
}

#[test]
fn a_read_that_an_event_overtook_proves_nothing() {
    let mut fixture = HolderFixture::leading();
    let stale = fixture.store.lease.clone();
    fixture.network = Network::Silent;
    fixture.holder.request_read();
    fixture.run();
    fixture.prefer(None);
    fixture.watch();
    fixture
        .holder
        .handle_read(Moment::same(fixture.now), Ok(stale));
    fixture.run();
    assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
    // An absence that may be older than the event calls for another look.
    fixture.holder.request_read();
    fixture.run();
    fixture.prefer(None);
    fixture.watch();
    fixture.network = Network::Up;
    fixture
        .holder
        .handle_read(Moment::same(fixture.now), Ok(None));
    fixture.run();
    assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
}

#[test]
fn a_deleted_lease_ends_the_term_and_is_not_written_again() {
    let mut fixture = HolderFixture::leading();
    fixture.store.delete();
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(Loss::Deleted)]);
    fixture.work_stops();
    fixture.store.create(crate::lease::LeaseRecord::born(None));
    fixture.watch();
    fixture.pass(seconds(20.0));
    assert!(fixture.sent.is_empty());
}

#[test]
fn an_old_list_without_the_lease_calls_for_a_read_and_a_new_one_ends_the_term() {
    let mut fixture = HolderFixture::leading();
    fixture.event(LeaseEvent::Absent(ResourceVersion(fixture.store.version)));
    assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
    let deleted = fixture.store.delete();
    fixture.event(LeaseEvent::Absent(ResourceVersion(deleted.0 - 1)));
    assert_eq!(fixture.work_events, [lost(Loss::Deleted)]);
    let mut fixture = HolderFixture::leading();
    let deleted = fixture.store.delete();
    fixture.network = Network::Silent;
    fixture.event(LeaseEvent::Absent(deleted));
    assert_eq!(fixture.work_events, [lost(Loss::Deleted)]);
}

#[test]
fn a_foreign_renewal_under_this_name_ends_the_term() {
    let mut fixture = HolderFixture::leading();
    fixture.store.edit(|record| crate::lease::LeaseRecord {
        renew_time: Timestamp::from_micros(1),
        ..record.clone()
    });
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(Loss::NameShared)]);
}

#[test]
fn a_pause_longer_than_the_lease_leaves_no_belief() {
    let mut fixture = HolderFixture::leading();
    fixture.now = fixture.now.after(seconds(3600.0));
    assert!(!fixture.holder.believes(fixture.now));
    fixture.run();
    assert_eq!(fixture.work_events, [lost(Loss::DeadlinePassed)]);
    assert!(fixture.sent.is_empty());
}

#[test]
fn a_clock_that_stands_still_still_writes_distinct_times() {
    let mut fixture = HolderFixture::leading();
    let wall = wall_at(fixture.now);
    let mut times = Vec::new();
    for _ in 0..3 {
        fixture.now = fixture.now.after(seconds(3.4));
        let decision = fixture.holder.step(Moment::same(fixture.now), wall);
        let [super::Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        times.push(write.record.renew_time);
        let outcome = fixture.store.put(write);
        fixture
            .holder
            .handle_outcome(Moment::same(fixture.now), outcome);
    }
    assert!(times[0] != times[1] && times[1] != times[2]);
}

#[test]
fn a_reply_below_the_version_it_replaced_means_a_restored_store() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    let mut reply = fixture.store.lease.clone().unwrap();
    reply.version = ResourceVersion(3);
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Done(reply));
    fixture.run();
    assert_eq!(fixture.work_events, [lost(Loss::StoreRestored)]);
}
