//! News that may be old: what is believed of it, and what is read again (R10).

use super::super::fixture::{
    HolderFixture, LeaseRegister, Network, WorkEvent, identity, seconds, wall_at,
};
use super::super::{
    Decision, Effect, Ending, LeaseEvent, LeaseOutcome, Loss, ReadFailed, WriteKind,
};
use super::{lost, taken};
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Uid};
use crate::time::Moment;

/// One step, whose effects are looked at and not carried out.
pub(super) fn step(fixture: &mut HolderFixture) -> Decision {
    fixture
        .holder
        .step(Moment::same(fixture.now), wall_at(fixture.now))
}

fn reads(fixture: &mut HolderFixture) -> bool {
    step(fixture).effects == [Effect::Read]
}

/// A revision from before the one known.
fn older(fixture: &HolderFixture, change: impl FnOnce(&mut LeaseSnapshot)) -> LeaseEvent {
    let mut snapshot = fixture.store.lease.clone().unwrap();
    snapshot.version = ResourceVersion(3);
    change(&mut snapshot);
    LeaseEvent::Seen(snapshot, NewsSource::Watch)
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
        let mut fixture = HolderFixture::leading();
        let event = older(&fixture, contradiction);
        fixture
            .holder
            .handle_event(Moment::same(fixture.now), event);
        assert!(fixture.holder.believes(fixture.now), "{index}");
        assert!(reads(&mut fixture), "{index}");
        let reply = fixture.store.lease.clone();
        fixture
            .holder
            .handle_read(Moment::same(fixture.now), Ok(reply));
        fixture.run();
        assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
    }
}

/// (R10) An older revision of the own term says nothing new.
#[test]
fn an_older_event_of_the_own_term_calls_for_nothing() {
    let mut fixture = HolderFixture::leading();
    let event = older(&fixture, |lease| lease.record.preferred_holder = None);
    fixture
        .holder
        .handle_event(Moment::same(fixture.now), event);
    assert_eq!(step(&mut fixture).effects, []);
}

/// (R10) What is not confirmed ends with the deadline at the latest.
#[test]
fn belief_in_doubt_goes_on_until_its_deadline_and_no_longer() {
    let mut fixture = HolderFixture::leading();
    let deadline = fixture.holder.belief().unwrap().deadline;
    fixture.network = Network::Down;
    let event = older(&fixture, |lease| {
        lease.record.holder = Some(identity("other"));
    });
    fixture.event(event);
    fixture.pass(seconds(9.999));
    assert!(fixture.holder.believes(fixture.now));
    fixture.pass(seconds(0.001));
    assert_eq!(fixture.now, deadline);
    assert!(!fixture.holder.believes(fixture.now));
    assert_eq!(fixture.work_events, [lost(Loss::DeadlinePassed)]);
}

/// (R10) A deletion that is older than the revision known is no news; a newer one is, and nothing before it counts.
#[test]
fn a_deletion_counts_by_its_version() {
    let mut fixture = HolderFixture::leading();
    fixture.event(LeaseEvent::Deleted(ResourceVersion(3)));
    assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
    fixture.prefer(None);
    let held = fixture.store.lease.clone().unwrap();
    let deleted = fixture.store.delete();
    fixture.event(LeaseEvent::Deleted(deleted));
    assert_eq!(fixture.work_events, [lost(Loss::Deleted)]);
    fixture.work_stops();
    fixture.event(LeaseEvent::Seen(held, NewsSource::Watch));
    assert_eq!(fixture.holder.known(), None, "it was there before");
}

/// (R10) A read that fails is repeated, after a pause.
#[test]
fn a_read_that_fails_is_repeated_after_a_pause() {
    let mut fixture = HolderFixture::leading();
    fixture.holder.request_read();
    assert!(reads(&mut fixture));
    fixture
        .holder
        .handle_read(Moment::same(fixture.now), Err(ReadFailed));
    let decision = step(&mut fixture);
    let pause = fixture.now.after(seconds(0.25));
    assert_eq!((decision.effects, decision.wake_at), (vec![], Some(pause)));
    fixture.now = pause;
    assert!(reads(&mut fixture));
}

/// (R10) An absence that may be older than what was seen since is looked into again.
#[test]
fn an_absence_that_news_overtook_is_read_again() {
    let mut fixture = HolderFixture::leading();
    fixture.holder.request_read();
    assert!(reads(&mut fixture));
    fixture.prefer(None);
    let seen = fixture.store.lease.clone().unwrap();
    fixture.holder.handle_event(
        Moment::same(fixture.now),
        LeaseEvent::Seen(seen, NewsSource::Watch),
    );
    fixture
        .holder
        .handle_read(Moment::same(fixture.now), Ok(None));
    assert!(fixture.holder.believes(fixture.now));
    assert!(reads(&mut fixture));
}

/// One request is under way at a time, and a read is not repeated before its reply.
#[test]
fn nothing_else_is_sent_while_a_read_is_under_way() {
    let mut fixture = HolderFixture::leading();
    fixture.holder.request_read();
    assert!(reads(&mut fixture));
    fixture.holder.request_read();
    fixture.now = fixture.now.after(seconds(4.0));
    let decision = step(&mut fixture);
    assert_eq!(decision.effects, [], "the renewal is due since 0.7 s");
    assert_eq!(
        decision.wake_at,
        Some(fixture.holder.belief().unwrap().deadline)
    );
}

/// (R10) "There is no such Lease" is authoritative, unless something newer was seen since the write was sent.
#[test]
fn a_write_to_a_missing_lease_ends_the_term_at_once() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Gone);
    fixture.run();
    assert_eq!(fixture.work_events, [lost(Loss::Deleted)]);

    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    fixture.prefer(None);
    fixture.watch();
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Gone);
    assert!(
        fixture.holder.believes(fixture.now),
        "which came first is open"
    );
    assert!(reads(&mut fixture));
}

/// (R4, R10) After a restore the process goes by what the store holds now, and can be elected again.
#[test]
fn a_process_that_saw_a_restore_accepts_the_next_grant() {
    let mut fixture = HolderFixture::leading();
    let old = fixture.store.lease.clone().unwrap();
    fixture.pass(seconds(20.0));
    fixture.store = LeaseRegister {
        version: old.version.0,
        lease: Some(old),
        ..fixture.store
    };
    fixture.sent.clear();
    fixture.holder.request_read();
    fixture.run();
    assert_eq!(fixture.work_events, [lost(Loss::StoreRestored)]);
    fixture.work_stops();
    assert_eq!(
        fixture.work_events[1..],
        [WorkEvent::Ended(Ending::Lost(Loss::StoreRestored))]
    );
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept]);
    assert!(fixture.holder.believes(fixture.now));
}

/// (R4) The reply to a write that shows the very version it replaced cannot come from the store that was written.
#[test]
fn a_reply_of_the_version_replaced_means_a_restored_store() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    let reply = fixture.store.lease.clone().unwrap();
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Done(reply));
    fixture.run();
    assert_eq!(fixture.work_events, [lost(Loss::StoreRestored)]);
}

/// (R10) A Lease that a quorum read did not find, and then finds as it was, is known again.
#[test]
fn a_lease_that_is_back_after_its_absence_is_known_again() {
    let mut fixture = HolderFixture::new();
    fixture.watch();
    let lease = fixture.store.lease.clone();
    for reply in [None, lease.clone()] {
        fixture.holder.request_read();
        assert!(reads(&mut fixture));
        fixture
            .holder
            .handle_read(Moment::same(fixture.now), Ok(reply));
    }
    assert_eq!(fixture.holder.known(), lease.as_ref());
}

/// (R10) Another uid or a lower term under one's own name are not the own term, whatever else the record says.
#[test]
fn another_object_or_another_term_under_this_name_ends_the_belief() {
    let mut fixture = HolderFixture::leading();
    let record = fixture.record().clone();
    fixture.store.create(record);
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(Loss::Deleted)]);

    let mut fixture = HolderFixture::leading();
    fixture.store.edit(|record| LeaseRecord {
        term: Term(0),
        ..record.clone()
    });
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(Loss::NewTerm)]);

    let mut fixture = HolderFixture::leading();
    fixture.grant("other");
    let other = fixture.store.lease.clone();
    fixture.holder.request_read();
    assert!(reads(&mut fixture));
    fixture
        .holder
        .handle_read(Moment::same(fixture.now), Ok(other));
    fixture.run();
    assert_eq!(
        fixture.work_events,
        [lost(taken("other"))],
        "by a quorum read"
    );
}
