//! Scenarios of one holder in a tiny world, each named by what happens.

mod doubt;
mod ending;
mod leaving;
mod proof;

use super::world::{Network, Told, World, identity, seconds, wall_at};
use super::{Ending, LeaseEvent, LeaseOutcome, Loss, StopReason, WriteKind};
use crate::names::{ResourceVersion, Term, Token};
use crate::time::Timestamp;

fn lost(why: Loss) -> Told {
    Told::Stop(StopReason::Lost(why))
}

fn taken(by: &str) -> Loss {
    Loss::Taken {
        by: Some(identity(by)),
    }
}

#[test]
fn a_grant_is_accepted_by_an_own_write_and_then_believed() {
    let mut world = World::new();
    world.watch();
    assert!(world.sent.is_empty());
    world.grant("me");
    let granted = world.store.lease.clone().unwrap();
    assert!(!world.holder.believes(world.now));
    world.watch();
    let token = Token(granted.version);
    assert_eq!(world.told, [Told::Start(Term(1), token)]);
    let record = world.record();
    assert_eq!(
        (record.token, record.token_term),
        (Some(token), Some(Term(1)))
    );
    assert_eq!(record.duration_seconds, Some(15));
    assert_eq!(record.acquire_time, granted.record.acquire_time);
    assert_ne!(record.renew_time, granted.record.renew_time);
    let belief = world.holder.belief().unwrap();
    assert_eq!(belief.deadline, world.now.after(seconds(10.0)));
}

#[test]
fn the_lease_of_another_holder_is_never_touched() {
    let mut world = World::new();
    world.grant("other");
    world.watch();
    world.pass(seconds(60.0));
    assert!(world.sent.is_empty() && world.told.is_empty());
}

#[test]
fn a_term_of_an_earlier_life_of_this_name_is_left_to_expire() {
    let mut world = World::leading();
    let mut second = World::new();
    second.store = world.store.clone();
    second.watch();
    second.pass(seconds(30.0));
    assert!(second.sent.is_empty() && second.told.is_empty());
    // Granted anew, it is this life's.
    second.grant("me");
    second.watch();
    assert_eq!(second.sent, [WriteKind::Accept]);
    // The first life reads of the new term and stops.
    world.store = second.store.clone();
    world.watch();
    assert_eq!(world.told, [lost(Loss::NewTerm)]);
}

/// The built-in elector counts no term and leaves the token of a holder that crashed in place: its next electee took
/// the record for a term of another life of its name, never accepted, and was never granted anew.
#[test]
fn a_grant_of_the_built_in_elector_after_a_crash_is_accepted() {
    let mut crashed = World::leading();
    let before = crashed.record().clone();
    crashed.now = crashed.now.after(seconds(30.0));
    crashed.take_over_as_builtin("me");
    let granted = crashed.store.lease.clone().unwrap();
    assert_eq!(
        (granted.record.term, granted.record.token),
        (before.term, before.token)
    );
    let mut next = World::new();
    next.store = crashed.store.clone();
    next.now = crashed.now;
    next.watch();
    let token = Token(granted.version);
    assert_eq!(next.told, [Told::Start(before.term, token)]);
    assert!(Some(token) > before.token);
    let accepted = next.record().clone();
    assert_eq!(accepted.acquire_time, accepted.renew_time);
    // From here on the term is one like any other: a second life of the name leaves it alone, its holder renews it.
    let mut second = World::new();
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
    let mut world = World::new();
    world.network = Network::Silent;
    world.grant("me");
    world.watch();
    let sent_at = world.now;
    let outcome = world.store.put(&world.kept.clone().unwrap());
    world.now = world.now.after(seconds(4.0));
    world.holder.handle_outcome(world.now, outcome);
    world.run();
    let belief = world.holder.belief().unwrap();
    assert_eq!(belief.deadline, sent_at.after(seconds(10.0)));
    assert!(!world.holder.believes(belief.deadline));
}

#[test]
fn a_duration_that_a_stranger_changed_is_restored_by_the_next_renewal() {
    let mut world = World::leading();
    world.store.edit(|record| crate::lease::LeaseRecord {
        duration_seconds: Some(3),
        ..record.clone()
    });
    world.watch();
    world.pass(seconds(4.0));
    assert_eq!(world.record().duration_seconds, Some(15));
    assert!(world.told.is_empty());
}

#[test]
fn a_reply_after_the_deadline_does_not_revive_the_term() {
    let mut world = World::leading();
    world.network = Network::Silent;
    world.pass(seconds(9.9));
    assert_eq!(world.sent, [WriteKind::Renew]);
    let outcome = world.store.put(&world.kept.clone().unwrap());
    world.now = world.now.after(seconds(0.2));
    assert!(!world.holder.believes(world.now));
    world.holder.handle_outcome(world.now, outcome);
    world.network = Network::Up;
    world.run();
    assert!(!world.holder.believes(world.now));
    assert_eq!(world.told, [lost(Loss::DeadlinePassed)]);
    world.work_stops();
    world.pass(seconds(60.0));
    assert_eq!(world.sent, [WriteKind::Renew]);
    assert_eq!(
        world.told.last(),
        Some(&Told::Ended(Ending::Lost(Loss::DeadlinePassed)))
    );
}

#[test]
fn the_lease_is_renewed_every_third_of_the_deadline_and_nothing_else_changes() {
    let mut world = World::leading();
    let before = world.record().clone();
    world.pass(seconds(100.0));
    assert_eq!(world.sent, vec![WriteKind::Renew; 30]);
    assert!(world.told.is_empty());
    let after = world.record().clone();
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
    let mut world = World::leading();
    world.network = Network::Down;
    let start = world.now;
    world.pass(seconds(9.999));
    assert!(world.holder.believes(world.now));
    // At 3.33, then after 0.25, 0.5, 1, 2 and 2 seconds.
    assert_eq!(world.sent.len(), 6);
    world.pass(seconds(0.001));
    assert_eq!(world.now, start.after(seconds(10.0)));
    assert!(!world.holder.believes(world.now));
    assert_eq!(world.told, [lost(Loss::DeadlinePassed)]);
}

#[test]
fn a_renewal_whose_reply_was_lost_counts_from_its_own_send() {
    let mut world = World::leading();
    world.network = Network::AnswersLost;
    let start = world.now;
    world.pass(seconds(3.4));
    assert_eq!(world.sent, [WriteKind::Renew]);
    let sent_at = start.after(seconds(10.0) / 3);
    // The retry meets a conflict, and the read shows the first attempt.
    world.network = Network::Up;
    world.store.edit(Clone::clone);
    world.run();
    world.watch();
    assert_eq!(
        world.holder.belief().unwrap().deadline,
        sent_at.after(seconds(10.0))
    );
    assert!(world.told.is_empty());
}

#[test]
fn an_accept_whose_reply_was_lost_is_found_by_a_read() {
    let mut world = World::new();
    world.network = Network::AnswersLost;
    world.grant("me");
    let token = Token(world.store.lease.as_ref().unwrap().version);
    world.watch();
    let sent_at = world.now;
    assert!(world.told.is_empty());
    world.network = Network::Up;
    world.pass(seconds(0.25));
    // The second accept meets the first one: conflict, read, start.
    assert_eq!(world.sent, [WriteKind::Accept, WriteKind::Accept]);
    assert_eq!(world.told, [Told::Start(Term(1), token)]);
    assert_eq!(
        world.holder.belief().unwrap().deadline,
        sent_at.after(seconds(10.0))
    );
}

#[test]
fn of_two_lives_that_share_a_name_only_the_one_that_wrote_believes() {
    let mut world = World::new();
    world.grant("me");
    let mut other = World::new();
    other.store = world.store.clone();
    other.now = world.now.after(seconds(0.5));
    other.watch();
    world.holder.handle_event(
        world.now,
        LeaseEvent::Seen(world.store.lease.clone().unwrap()),
    );
    world.store = other.store.clone();
    world.run();
    world.pass(seconds(9.0));
    assert!(!world.holder.believes(world.now) && world.told.is_empty());
    assert_eq!(world.sent, [WriteKind::Accept]);
}

#[test]
fn news_of_another_holder_stops_at_once_and_nothing_is_released() {
    let mut world = World::leading();
    world.grant("other");
    world.watch();
    assert_eq!(world.told, [lost(taken("other"))]);
    assert!(!world.holder.believes(world.now));
    world.work_stops();
    assert_eq!(world.told[1..], [Told::Ended(Ending::Lost(taken("other")))]);
    assert!(world.sent.is_empty());
}

#[test]
fn a_conflict_alone_is_no_loss() {
    let mut world = World::leading();
    world.pass(seconds(3.0));
    world.store.edit(Clone::clone);
    world.pass(seconds(1.0));
    assert_eq!(world.sent, [WriteKind::Renew, WriteKind::Renew]);
    assert!(world.told.is_empty());
    assert!(world.holder.believes(world.now.after(seconds(9.0))));
}

#[test]
fn a_conflict_with_a_successor_ends_the_term_before_the_deadline() {
    let mut world = World::leading();
    world.pass(seconds(3.0));
    world.grant("other");
    world.pass(seconds(1.0));
    assert_eq!(world.told, [lost(taken("other"))]);
}

#[test]
fn an_older_event_is_ignored_and_checked_by_a_read() {
    let mut world = World::new();
    let old = world.store.lease.clone().unwrap();
    world.grant("me");
    world.watch();
    world.told.clear();
    world.event(LeaseEvent::Seen(old));
    assert!(world.told.is_empty() && world.holder.believes(world.now));
}

#[test]
fn a_read_below_what_was_seen_means_a_restored_store() {
    let mut world = World::leading();
    let old = world.store.lease.clone().unwrap();
    world.pass(seconds(5.0));
    world.store.lease = Some(old);
    world.holder.request_read();
    world.run();
    assert_eq!(world.told, [lost(Loss::StoreRestored)]);
}

#[test]
fn a_read_that_an_event_overtook_proves_nothing() {
    let mut world = World::leading();
    let stale = world.store.lease.clone();
    world.network = Network::Silent;
    world.holder.request_read();
    world.run();
    world.prefer(None);
    world.watch();
    world.holder.handle_read(world.now, Ok(stale));
    world.run();
    assert!(world.told.is_empty() && world.holder.believes(world.now));
    // An absence that may be older than the event calls for another look.
    world.holder.request_read();
    world.run();
    world.prefer(None);
    world.watch();
    world.network = Network::Up;
    world.holder.handle_read(world.now, Ok(None));
    world.run();
    assert!(world.told.is_empty() && world.holder.believes(world.now));
}

#[test]
fn a_deleted_lease_ends_the_term_and_is_not_written_again() {
    let mut world = World::leading();
    world.store.delete();
    world.watch();
    assert_eq!(world.told, [lost(Loss::Deleted)]);
    world.work_stops();
    world.store.create(crate::lease::LeaseRecord::born(None));
    world.watch();
    world.pass(seconds(20.0));
    assert!(world.sent.is_empty());
}

#[test]
fn a_list_without_the_lease_calls_for_a_read() {
    let mut world = World::leading();
    world.event(LeaseEvent::Absent);
    assert!(world.told.is_empty() && world.holder.believes(world.now));
    world.store.delete();
    world.event(LeaseEvent::Absent);
    assert_eq!(world.told, [lost(Loss::Deleted)]);
}

#[test]
fn a_foreign_renewal_under_this_name_ends_the_term() {
    let mut world = World::leading();
    world.store.edit(|record| crate::lease::LeaseRecord {
        renew_time: Timestamp::from_micros(1),
        ..record.clone()
    });
    world.watch();
    assert_eq!(world.told, [lost(Loss::NameShared)]);
}

#[test]
fn a_pause_longer_than_the_lease_leaves_no_belief() {
    let mut world = World::leading();
    world.now = world.now.after(seconds(3600.0));
    assert!(!world.holder.believes(world.now));
    world.run();
    assert_eq!(world.told, [lost(Loss::DeadlinePassed)]);
    assert!(world.sent.is_empty());
}

#[test]
fn a_clock_that_stands_still_still_writes_distinct_times() {
    let mut world = World::leading();
    let wall = wall_at(world.now);
    let mut times = Vec::new();
    for _ in 0..3 {
        world.now = world.now.after(seconds(3.4));
        let decision = world.holder.step(world.now, wall);
        let [super::Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        times.push(write.record.renew_time);
        let outcome = world.store.put(write);
        world.holder.handle_outcome(world.now, outcome);
    }
    assert!(times[0] != times[1] && times[1] != times[2]);
}

#[test]
fn a_reply_below_the_version_it_replaced_means_a_restored_store() {
    let mut world = World::leading();
    world.network = Network::Silent;
    world.pass(seconds(4.0));
    let mut reply = world.store.lease.clone().unwrap();
    reply.version = ResourceVersion(3);
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Done(reply));
    world.run();
    assert_eq!(world.told, [lost(Loss::StoreRestored)]);
}
