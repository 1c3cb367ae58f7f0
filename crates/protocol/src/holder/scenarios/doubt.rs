//! News that may be old: what is believed of it, and what is read again (R10).

use super::super::world::{Network, Store, Told, World, identity, seconds, wall_at};
use super::super::{
    Decision, Effect, Ending, LeaseEvent, LeaseOutcome, Loss, ReadFailed, WriteKind,
};
use super::{lost, taken};
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::names::{ResourceVersion, Term, Uid};

/// One step, whose effects are looked at and not carried out.
pub(super) fn step(world: &mut World) -> Decision {
    world.holder.step(world.now, wall_at(world.now))
}

fn reads(world: &mut World) -> bool {
    step(world).effects == [Effect::Read]
}

/// A revision from before the one known.
fn older(world: &World, change: impl FnOnce(&mut LeaseSnapshot)) -> LeaseEvent {
    let mut snapshot = world.store.lease.clone().unwrap();
    snapshot.version = ResourceVersion(3);
    change(&mut snapshot);
    LeaseEvent::Seen(snapshot)
}

/// (R10) An older revision that contradicts the own term calls for a GET, and the belief goes on meanwhile.
#[test]
fn an_older_event_that_speaks_against_the_term_calls_for_a_read_and_no_more() {
    let contradictions: [fn(&mut LeaseSnapshot); 4] = [
        |lease| lease.uid = Uid::new("another"),
        |lease| lease.record.holder = Some(identity("other")),
        |lease| lease.record.holder = None,
        |lease| lease.record.term = Term(0),
    ];
    for (index, contradiction) in contradictions.into_iter().enumerate() {
        let mut world = World::leading();
        let event = older(&world, contradiction);
        world.holder.handle_event(world.now, event);
        assert!(world.holder.believes(world.now), "{index}");
        assert!(reads(&mut world), "{index}");
        let answer = world.store.lease.clone();
        world.holder.handle_read(world.now, Ok(answer));
        world.run();
        assert!(world.told.is_empty() && world.holder.believes(world.now));
    }
}

/// (R10) An older revision of the own term says nothing new.
#[test]
fn an_older_event_of_the_own_term_calls_for_nothing() {
    let mut world = World::leading();
    let event = older(&world, |lease| lease.record.preferred_holder = None);
    world.holder.handle_event(world.now, event);
    assert_eq!(step(&mut world).effects, []);
}

/// (R10) What is not confirmed ends with the deadline at the latest.
#[test]
fn belief_in_doubt_goes_on_until_its_deadline_and_no_longer() {
    let mut world = World::leading();
    let deadline = world.holder.belief().unwrap().deadline;
    world.network = Network::Down;
    let event = older(&world, |lease| {
        lease.record.holder = Some(identity("other"));
    });
    world.event(event);
    world.pass(seconds(9.999));
    assert!(world.holder.believes(world.now));
    world.pass(seconds(0.001));
    assert_eq!(world.now, deadline);
    assert!(!world.holder.believes(world.now));
    assert_eq!(world.told, [lost(Loss::DeadlinePassed)]);
}

/// (R10) A deletion that is older than the revision known is no news; a newer one is, and nothing before it counts.
#[test]
fn a_deletion_counts_by_its_version() {
    let mut world = World::leading();
    world.event(LeaseEvent::Deleted(ResourceVersion(3)));
    assert!(world.told.is_empty() && world.holder.believes(world.now));
    world.prefer(None);
    let held = world.store.lease.clone().unwrap();
    let deleted = world.store.delete();
    world.event(LeaseEvent::Deleted(deleted));
    assert_eq!(world.told, [lost(Loss::Deleted)]);
    world.work_stops();
    world.event(LeaseEvent::Seen(held));
    assert_eq!(world.holder.known(), None, "it was there before");
}

/// (R10) A read that fails is repeated, after a pause.
#[test]
fn a_read_that_fails_is_repeated_after_a_pause() {
    let mut world = World::leading();
    world.holder.request_read();
    assert!(reads(&mut world));
    world.holder.handle_read(world.now, Err(ReadFailed));
    let decision = step(&mut world);
    let pause = world.now.after(seconds(0.25));
    assert_eq!((decision.effects, decision.wake_at), (vec![], Some(pause)));
    world.now = pause;
    assert!(reads(&mut world));
}

/// (R10) An absence that may be older than what was seen since is looked into again.
#[test]
fn an_absence_that_news_overtook_is_read_again() {
    let mut world = World::leading();
    world.holder.request_read();
    assert!(reads(&mut world));
    world.prefer(None);
    let seen = world.store.lease.clone().unwrap();
    world.holder.handle_event(world.now, LeaseEvent::Seen(seen));
    world.holder.handle_read(world.now, Ok(None));
    assert!(world.holder.believes(world.now));
    assert!(reads(&mut world));
}

/// One request is under way at a time, and a read is not repeated before it is answered.
#[test]
fn nothing_else_is_sent_while_a_read_is_under_way() {
    let mut world = World::leading();
    world.holder.request_read();
    assert!(reads(&mut world));
    world.holder.request_read();
    world.now = world.now.after(seconds(4.0));
    let decision = step(&mut world);
    assert_eq!(decision.effects, [], "the renewal is due since 0.7 s");
    assert_eq!(
        decision.wake_at,
        Some(world.holder.belief().unwrap().deadline)
    );
}

/// (R10) "There is no such Lease" is authoritative, unless something newer was seen since the write was sent.
#[test]
fn a_write_to_a_missing_lease_ends_the_term_at_once() {
    let mut world = World::leading();
    world.network = Network::Silent;
    world.pass(seconds(4.0));
    world.holder.handle_outcome(world.now, LeaseOutcome::Gone);
    world.run();
    assert_eq!(world.told, [lost(Loss::Deleted)]);

    let mut world = World::leading();
    world.network = Network::Silent;
    world.pass(seconds(4.0));
    world.prefer(None);
    world.watch();
    world.holder.handle_outcome(world.now, LeaseOutcome::Gone);
    assert!(world.holder.believes(world.now), "which came first is open");
    assert!(reads(&mut world));
}

/// (R4, R10) After a restore the process goes by what the store holds now, and can be elected again.
#[test]
fn a_process_that_saw_a_restore_accepts_the_next_grant() {
    let mut world = World::leading();
    let old = world.store.lease.clone().unwrap();
    world.pass(seconds(20.0));
    world.store = Store {
        version: old.version.0,
        lease: Some(old),
        ..world.store
    };
    world.sent.clear();
    world.holder.request_read();
    world.run();
    assert_eq!(world.told, [lost(Loss::StoreRestored)]);
    world.work_stops();
    assert_eq!(
        world.told[1..],
        [Told::Ended(Ending::Lost(Loss::StoreRestored))]
    );
    world.grant("me");
    world.watch();
    assert_eq!(world.sent, [WriteKind::Accept]);
    assert!(world.holder.believes(world.now));
}

/// (R4) The reply to a write that shows the very version it replaced cannot come from the store that was written.
#[test]
fn a_reply_of_the_version_replaced_means_a_restored_store() {
    let mut world = World::leading();
    world.network = Network::Silent;
    world.pass(seconds(4.0));
    let reply = world.store.lease.clone().unwrap();
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Done(reply));
    world.run();
    assert_eq!(world.told, [lost(Loss::StoreRestored)]);
}

/// (R10) A Lease that a quorum read did not find, and then finds as it was, is known again.
#[test]
fn a_lease_that_is_back_after_its_absence_is_known_again() {
    let mut world = World::new();
    world.watch();
    let lease = world.store.lease.clone();
    for answer in [None, lease.clone()] {
        world.holder.request_read();
        assert!(reads(&mut world));
        world.holder.handle_read(world.now, Ok(answer));
    }
    assert_eq!(world.holder.known(), lease.as_ref());
}

/// (R10) Another uid or a lower term under one's own name are not the own term, whatever else the record says.
#[test]
fn another_object_or_another_term_under_this_name_ends_the_belief() {
    let mut world = World::leading();
    let record = world.record().clone();
    world.store.create(record);
    world.watch();
    assert_eq!(world.told, [lost(Loss::Deleted)]);

    let mut world = World::leading();
    world.store.edit(|record| LeaseRecord {
        term: Term(0),
        ..record.clone()
    });
    world.watch();
    assert_eq!(world.told, [lost(Loss::NewTerm)]);

    let mut world = World::leading();
    world.grant("other");
    let other = world.store.lease.clone();
    world.holder.request_read();
    assert!(reads(&mut world));
    world.holder.handle_read(world.now, Ok(other));
    world.run();
    assert_eq!(world.told, [lost(taken("other"))], "by a quorum read");
}
