//! News that may be old: what is believed of it, and what is read again (R10).

use super::super::{Effect, Ending, LeaseEvent, LeaseOutcome, Loss, ReadFailed, WriteKind};
use super::fixture::{HolderFixture, LeaseRegister, Network, identity, seconds};
use super::taken;
use crate::lease::LeaseSnapshot;
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Uid};
use crate::time::Timestamp;

fn reads(fixture: &mut HolderFixture) -> bool {
    fixture.step().effects == [Effect::Read]
}

/// A leader whose read is under way.
fn reading() -> HolderFixture {
    let mut fixture = HolderFixture::leading();
    fixture.holder.request_read();
    assert!(reads(&mut fixture));
    fixture
}

/// A revision from before the one known.
fn older(fixture: &HolderFixture, change: impl FnOnce(&mut LeaseSnapshot)) -> LeaseEvent {
    let mut snapshot = fixture.store.lease.clone().unwrap();
    snapshot.version = ResourceVersion(3);
    change(&mut snapshot);
    LeaseEvent::Seen(snapshot, NewsSource::Watch)
}

/// (R10) An older revision that contradicts the own term calls for a GET, and the belief goes on meanwhile; one of the
/// own term says nothing new.
#[test]
fn an_older_event_that_speaks_against_the_term_calls_for_a_read_and_no_more() {
    type Change = fn(&mut LeaseSnapshot);
    let contradictions: [(bool, Change); 5] = [
        (true, |lease| lease.uid = Uid::new("another")),
        (true, |lease| lease.record.holder = Some(identity("other"))),
        (true, |lease| lease.record.holder = None),
        (true, |lease| lease.record.term = Term(0)),
        (false, |lease| lease.record.preferred_holder = None),
    ];
    for (index, (contradicts, contradiction)) in contradictions.into_iter().enumerate() {
        let mut fixture = HolderFixture::leading();
        let event = older(&fixture, contradiction);
        fixture.note_event(event);
        fixture.leads_on();
        assert_eq!(reads(&mut fixture), contradicts, "{index}");
        if contradicts {
            fixture.note_read(Ok(fixture.store.lease.clone()));
            fixture.run();
        }
        fixture.leads_on();
    }
}

/// (R10) What is not confirmed ends with the deadline at the latest.
#[test]
fn belief_in_doubt_goes_on_until_its_deadline_and_no_longer() {
    let mut fixture = HolderFixture::leading();
    let deadline = fixture.deadline();
    fixture.network = Network::Down;
    let event = older(&fixture, |lease| lease.record.holder = None);
    fixture.event(event);
    fixture.pass(9.999);
    assert!(fixture.believes());
    fixture.pass(0.001);
    assert_eq!(fixture.now, deadline);
    fixture.lost(Loss::DeadlinePassed);
}

/// (R10) A deletion that is older than the revision known is no news; a newer one is, and nothing before it counts.
#[test]
fn a_deletion_counts_by_its_version() {
    let mut fixture = HolderFixture::leading();
    fixture.event(LeaseEvent::Deleted(ResourceVersion(3)));
    fixture.leads_on();
    fixture.prefer(None);
    let held = fixture.present();
    let deleted = fixture.store.delete();
    fixture.event(LeaseEvent::Deleted(deleted));
    fixture.lost(Loss::Deleted);
    fixture.work_stops();
    fixture.event(held);
    assert_eq!(fixture.holder.known(), None, "it was there before");
}

#[test]
fn an_old_list_without_the_lease_calls_for_a_read_and_a_new_one_ends_the_term() {
    let mut fixture = HolderFixture::leading();
    let version = ResourceVersion(fixture.store.version);
    fixture.event(LeaseEvent::Absent(version));
    assert_eq!(fixture.reads, 1);
    fixture.leads_on();
    let deleted = fixture.store.delete();
    let mut silent = HolderFixture {
        network: Network::Silent,
        ..HolderFixture::leading()
    };
    silent.event(LeaseEvent::Absent(deleted));
    silent.lost(Loss::Deleted);
    fixture.event(LeaseEvent::Absent(ResourceVersion(deleted.0 - 1)));
    fixture.lost(Loss::Deleted);
}

/// (R10) A read that fails is repeated, after a pause.
#[test]
fn a_read_that_fails_is_repeated_after_a_pause() {
    let mut fixture = reading();
    fixture.note_read(Err(ReadFailed));
    let decision = fixture.step();
    let pause = fixture.now.after(seconds(0.25));
    assert_eq!((decision.effects, decision.wake_at), (vec![], Some(pause)));
    fixture.now = pause;
    assert!(reads(&mut fixture));
}

/// (R10) What an event overtook proves nothing; an absence that may be older than it is looked into again.
#[test]
fn a_read_that_an_event_overtook_proves_nothing() {
    for absent in [false, true] {
        let mut fixture = reading();
        let stale = fixture.store.lease.clone().filter(|_| !absent);
        fixture.prefer(None);
        let event = fixture.present();
        fixture.note_event(event);
        fixture.note_read(Ok(stale));
        fixture.leads_on();
        assert_eq!(reads(&mut fixture), absent);
    }
}

/// One request is under way at a time, and a read is not repeated before its reply.
#[test]
fn nothing_else_is_sent_while_a_read_is_under_way() {
    let mut fixture = reading();
    fixture.holder.request_read();
    fixture.stand_still(4.0);
    let decision = fixture.step();
    assert_eq!(decision.effects, [], "the renewal is due since 0.7 s");
    assert_eq!(decision.wake_at, Some(fixture.deadline()));
}

/// (R10) "There is no such Lease" is authoritative, unless something newer was seen since the write was sent.
#[test]
fn a_write_to_a_missing_lease_ends_the_term_at_once() {
    let mut fixture = HolderFixture::renewing();
    fixture.outcome(LeaseOutcome::Gone);
    fixture.lost(Loss::Deleted);

    let mut fixture = HolderFixture::renewing();
    fixture.prefer(None);
    fixture.watch();
    fixture.note_outcome(LeaseOutcome::Gone);
    fixture.leads_on();
    assert!(reads(&mut fixture), "which came first is open");
}

/// (R4, R10) After a restore the process goes by what the store holds now, and can be elected again.
#[test]
fn a_process_that_saw_a_restore_accepts_the_next_grant() {
    let mut fixture = HolderFixture::leading();
    let old = fixture.store.lease.clone().unwrap();
    fixture.pass(20.0);
    fixture.store = LeaseRegister {
        version: old.version.0,
        lease: Some(old),
        ..fixture.store
    };
    fixture.sent.clear();
    fixture.read();
    fixture.lost(Loss::StoreRestored);
    fixture.work_stops();
    fixture.ended(Ending::Lost(Loss::StoreRestored));
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept]);
    assert!(fixture.believes());
}

/// (R4) The reply to a write that shows the very version it replaced, or an older one, cannot come from the store that
/// was written.
#[test]
fn a_reply_of_the_version_replaced_means_a_restored_store() {
    for version in [None, Some(3)] {
        let mut fixture = HolderFixture::renewing();
        let mut reply = fixture.store.lease.clone().unwrap();
        reply.version = version.map_or(reply.version, ResourceVersion);
        fixture.outcome(LeaseOutcome::Done(reply));
        fixture.lost(Loss::StoreRestored);
    }
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
        fixture.note_read(Ok(reply));
    }
    assert_eq!(fixture.holder.known(), lease.as_ref());
}

/// (R8, R10) Another uid, another term or a renewal that this process did not write are not the own term, whatever else
/// the record says; by an event, or by a quorum read.
#[test]
fn another_object_or_another_term_under_this_name_ends_the_belief() {
    type Change = fn(&mut HolderFixture);
    let changes: [(Loss, Change); 4] = [
        (Loss::Deleted, |it| {
            let record = it.record().clone();
            it.store.create(record);
        }),
        (Loss::NewTerm, |it| it.edit(|record| record.term = Term(0))),
        (Loss::NameShared, |it| {
            it.edit(|record| record.renew_time = Timestamp::from_micros(1));
        }),
        (taken("other"), |it| it.grant("other")),
    ];
    for (loss, change) in changes {
        for read in [false, true] {
            let mut fixture = HolderFixture::leading();
            change(&mut fixture);
            if read {
                fixture.read();
            } else {
                fixture.watch();
            }
            fixture.lost(loss.clone());
        }
    }
}
