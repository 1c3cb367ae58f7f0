//! Which writes of its own a process knows by their time and their term, and what they prove (R8, R10).

use super::super::{Effect, LeaseOutcome, Loss, WriteKind};
use super::fixture::{HolderFixture, Network, WorkEvent, identity, seconds, wall_at};
use crate::lease::LeaseRecord;
use crate::names::{ResourceVersion, Term, Token};

/// (R8, R10) Belief counts from the send of an accept or a renewal that was applied, however that comes to be known: by
/// a late reply, or by a read after a 409, which alone is no loss. Nothing is retried then.
#[test]
fn belief_counts_from_the_send_and_not_from_the_reply() {
    for conflict in [false, true] {
        let mut accept = HolderFixture::accepting(Network::Silent);
        let accept_sent = accept.now;
        accept.stand_still(1.0);
        let renewal = HolderFixture::renewing();
        let renewal_sent = renewal.now.before(seconds(4.0)).after(seconds(10.0) / 3);
        for (mut fixture, sent_at) in [(accept, accept_sent), (renewal, renewal_sent)] {
            let outcome = fixture.apply_kept();
            assert!(matches!(outcome, LeaseOutcome::Done(_)));
            fixture.network = Network::Up;
            fixture.note_outcome(match conflict {
                true => LeaseOutcome::Conflict,
                false => outcome,
            });
            fixture.run();
            assert_eq!(fixture.deadline(), sent_at.after(seconds(10.0)));
            assert_eq!(fixture.sent.len(), 1);
        }
    }
}

/// (R9) At the deadline it is too late.
#[test]
fn belief_ends_at_its_deadline() {
    let fixture = HolderFixture::leading();
    let deadline = fixture.deadline();
    assert!(fixture.holder.believes(deadline.before(seconds(1e-9))));
    assert!(!fixture.holder.believes(deadline));
}

/// (R22) A renewal that had no answer in time is answered beside the next one: it counts from its own send, and once.
#[test]
fn a_late_answer_counts_from_its_own_send_and_not_from_the_newest() {
    let mut fixture = HolderFixture::renewing();
    let sent_at = fixture.now.before(seconds(4.0)).after(seconds(10.0) / 3);
    let first = fixture.kept.clone().unwrap();
    fixture.outcome(LeaseOutcome::Unknown);
    fixture.pass(1.0);
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
    let LeaseOutcome::Done(applied) = fixture.store.put(&first) else {
        panic!("not applied")
    };
    let late = |fixture: &mut HolderFixture| {
        let (now, applied) = (fixture.moment(), applied.clone());
        fixture.holder.handle_late(now, first.version, applied);
    };
    late(&mut fixture);
    assert_eq!(fixture.deadline(), sent_at.after(seconds(10.0)));
    assert!(fixture.set_aside(), "the newer attempt is waited for");
    fixture.leads_on();
    // A store that was restored does not have it, though its version is the higher one (R4).
    let mut older = fixture.store.lease.clone().unwrap();
    older.version = ResourceVersion(1);
    fixture.store.lease = Some(older.clone());
    fixture.network = Network::Up;
    fixture.outcome(LeaseOutcome::Conflict);
    late(&mut fixture);
    assert_eq!(fixture.holder.known(), Some(&older));
}

/// (R8, R10) A retry meets a conflict with the first attempt, which a read shows.
#[test]
fn a_write_whose_reply_was_lost_is_found_by_a_read() {
    let mut fixture = HolderFixture::accepting(Network::RepliesLost);
    let (sent_at, accepted) = (fixture.now, fixture.record().clone());
    assert_eq!(fixture.work_events, []);
    fixture.network = Network::Up;
    fixture.pass(0.25);
    assert_eq!(fixture.sent, [WriteKind::Accept, WriteKind::Accept]);
    let start = WorkEvent::Start(Term(1), accepted.token.unwrap());
    assert_eq!(fixture.work_events, [start]);
    assert_eq!(fixture.deadline(), sent_at.after(seconds(10.0)));

    let mut fixture = HolderFixture::leading();
    fixture.network = Network::RepliesLost;
    let sent_at = fixture.now.after(seconds(10.0) / 3);
    fixture.pass(3.4);
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    fixture.network = Network::Up;
    fixture.edit(|_| {});
    fixture.run();
    fixture.watch();
    assert_eq!(fixture.deadline(), sent_at.after(seconds(10.0)));
    fixture.leads_on();
}

/// (R8) The known revision, seen again, settles nothing: an attempt of unknown outcome is still open.
#[test]
fn a_repeated_revision_does_not_make_an_own_write_a_strangers() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::RepliesLost;
    let known = fixture.present();
    fixture.pass(3.4);
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    fixture.note_event(known);
    fixture.network = Network::Up;
    fixture.watch();
    fixture.leads_on();
    // The proof is a success like any other: the next renewal waits for its time.
    fixture.pass(2.0);
    assert_eq!(fixture.sent, [WriteKind::Renew]);
}

/// (R8, R11) While an attempt is open, no other one writes its renewTime: a record tells which of them wrote it.
#[test]
fn a_retry_under_a_clock_that_stands_still_writes_another_time() {
    let mut fixture = HolderFixture::leading();
    fixture.stand_still(4.0);
    let wall = wall_at(fixture.now);
    let mut times = Vec::new();
    for _ in 0..3 {
        let decision = fixture.holder.step(fixture.moment(), wall);
        let [Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        assert!(!times.contains(&write.record.renew_time));
        times.push(write.record.renew_time);
        fixture.note_outcome(LeaseOutcome::Unknown);
        fixture.stand_still(1.0);
    }
}

/// (R8) A write that the server refused, or that news has overtaken, was not applied: what bears its renewTime is
/// another's. One that was refused is retried after a pause.
#[test]
fn a_refused_or_overtaken_write_proves_nothing() {
    use LeaseOutcome::{Conflict, Refused, Unknown};
    for (overtaken, outcome) in [(false, Refused), (true, Conflict), (true, Unknown)] {
        let mut fixture = HolderFixture::renewing();
        let refused = fixture.kept.take().unwrap();
        if overtaken {
            fixture.prefer(Some("me"));
            fixture.watch();
        }
        fixture.note_outcome(outcome);
        if !overtaken {
            assert_eq!(fixture.step().effects, []);
        }
        fixture.edit(|record| record.renew_time = refused.record.renew_time);
        fixture.watch();
        fixture.lost(Loss::NameShared);
    }
}

/// (R4) A reply that comes after newer news brings no older record back.
#[test]
fn a_reply_that_was_overtaken_is_not_the_newest_record() {
    let mut fixture = HolderFixture::renewing();
    let reply = fixture.apply_kept();
    fixture.prefer(Some("me"));
    fixture.watch();
    fixture.note_outcome(reply);
    assert_eq!(fixture.holder.known(), fixture.store.lease.as_ref());
}

/// (R2) A write that is refused although no other came between is no race, and is repeated ever less often.
#[test]
fn conflicts_without_a_newer_revision_are_retried_after_a_pause() {
    let mut fixture = HolderFixture::leading();
    fixture.stand_still(4.0);
    for pause in [0.5, 1.0] {
        assert!(matches!(fixture.step().effects[..], [Effect::Write { .. }]));
        fixture.note_outcome(LeaseOutcome::Conflict);
        assert_eq!(fixture.step().effects, [Effect::Read]);
        fixture.note_read(Ok(fixture.store.lease.clone()));
        let decision = fixture.step();
        fixture.stand_still(pause);
        let expected = (vec![], Some(fixture.now));
        assert_eq!((decision.effects, decision.wake_at), expected);
    }
}

/// (R9, R10) A proof at the deadline comes too late, by whichever input, and nothing is sent after it.
#[test]
fn nothing_revives_a_belief_whose_deadline_has_passed() {
    let proofs: [fn(&mut HolderFixture, LeaseOutcome); 3] = [
        |fixture, _| {
            fixture.now = fixture.deadline();
            let applied = fixture.present();
            fixture.note_event(applied);
        },
        |fixture, _| {
            fixture.note_outcome(LeaseOutcome::Unknown);
            fixture.now = fixture.deadline();
            fixture.note_read(Ok(fixture.store.lease.clone()));
        },
        |fixture, applied| {
            fixture.now = fixture.deadline();
            fixture.note_outcome(applied);
        },
    ];
    for proof in proofs {
        let mut fixture = HolderFixture::renewing();
        fixture.pass(5.0);
        let applied = fixture.apply_kept();
        assert!(matches!(applied, LeaseOutcome::Done(_)));
        proof(&mut fixture, applied);
        assert!(!fixture.believes());
        fixture.network = Network::Up;
        fixture.run();
        fixture.lost(Loss::DeadlinePassed);
        fixture.pass(60.0);
        assert_eq!(fixture.sent, [WriteKind::Renew]);
    }
}

/// (R8, R20) An accept that is found when its belief would be over begins nothing, to the very instant, but the next term.
#[test]
fn an_accept_that_is_found_too_late_is_resumed() {
    for late in [10.0, 30.0] {
        let mut fixture = HolderFixture::accepting(Network::Silent);
        let outcome = fixture.apply_kept();
        fixture.stand_still(late);
        fixture.note_outcome(outcome);
        fixture.network = Network::Up;
        fixture.run();
        let next = WorkEvent::Start(Term(2), Token(ResourceVersion(13)));
        assert_eq!(fixture.work_events, [next]);
        assert_eq!(fixture.sent, [WriteKind::Accept, WriteKind::Resume]);
    }
}

/// (R8) An accept is known by its token too: a record that only bears its renewTime was written by another life, or by
/// a stranger.
#[test]
fn a_record_with_the_accepts_time_and_another_token_begins_no_term() {
    let others: [fn(&mut LeaseRecord); 4] = [
        |record| record.token = None,
        |record| record.token = Some(Token(ResourceVersion(1))),
        |record| record.token_term = None,
        |record| record.holder = Some(identity("other")),
    ];
    for (index, other) in others.into_iter().enumerate() {
        let mut fixture = HolderFixture::accepting(Network::Silent);
        let write = fixture.kept.take().unwrap();
        fixture.edit(|record| {
            *record = write.record;
            other(record);
        });
        let seen = fixture.present();
        fixture.note_event(seen);
        let effects = fixture.step().effects;
        let starts = |effect: &Effect| matches!(effect, Effect::Start { .. });
        assert!(!effects.iter().any(starts), "{index}");
        assert_eq!(fixture.holder.belief(), None, "{index}");
    }
}
