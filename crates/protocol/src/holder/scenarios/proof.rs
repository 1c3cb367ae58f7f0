//! Which writes of its own a process knows by their time and their term, and what they prove (R8, R10).

use super::super::fixture::{HolderFixture, Network, WorkEvent, identity, seconds, wall_at};
use super::super::{Effect, LeaseEvent, LeaseOutcome, Loss, WriteKind};
use super::doubt::step;
use super::lost;
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Token};
use crate::time::{Instant, Moment};

/// (R10) A 409 to a write that was applied: the read shows it, and belief counts from when it was sent.
#[test]
fn a_conflict_with_ones_own_applied_write_proves_that_write() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    let sent_at = fixture.now.after(seconds(10.0) / 3);
    fixture.pass(seconds(4.0));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    let write = fixture.kept.take().unwrap();
    assert!(matches!(fixture.store.put(&write), LeaseOutcome::Done(_)));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Conflict);
    assert!(
        fixture.holder.believes(fixture.now),
        "a 409 alone is no loss"
    );
    fixture.network = Network::Up;
    fixture.run();
    assert_eq!(
        fixture.holder.belief().unwrap().deadline,
        sent_at.after(seconds(10.0))
    );
    assert!(fixture.work_events.is_empty());
    assert_eq!(fixture.sent, [WriteKind::Renew], "nothing is retried");
}

/// (R8, R10) The same for an accept: the term begins, from the send of that write.
#[test]
fn a_conflict_with_ones_own_applied_accept_begins_the_term_from_its_send() {
    let mut fixture = HolderFixture::new();
    fixture.network = Network::Silent;
    fixture.grant("me");
    fixture.watch();
    let sent_at = fixture.now;
    let write = fixture.kept.take().unwrap();
    let token = Token(write.version);
    assert!(matches!(fixture.store.put(&write), LeaseOutcome::Done(_)));
    fixture.now = fixture.now.after(seconds(1.0));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Conflict);
    fixture.network = Network::Up;
    fixture.run();
    assert_eq!(fixture.work_events, [WorkEvent::Start(Term(1), token)]);
    let deadline = fixture.holder.belief().unwrap().deadline;
    assert_eq!(deadline, sent_at.after(seconds(10.0)));
}

/// (R8) The known revision, seen again, settles nothing: an attempt of unknown outcome is still open.
#[test]
fn a_repeated_revision_does_not_make_an_own_write_a_strangers() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::RepliesLost;
    let known = fixture.store.lease.clone().unwrap();
    fixture.pass(seconds(3.4));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    fixture.holder.handle_event(
        Moment::same(fixture.now),
        LeaseEvent::Seen(known, NewsSource::Watch),
    );
    fixture.network = Network::Up;
    fixture.watch();
    assert!(fixture.work_events.is_empty() && fixture.holder.believes(fixture.now));
    // The proof is a success like any other: the next renewal waits for its time.
    fixture.pass(seconds(2.0));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
}

/// (R8, R11) While an attempt is open, no other one writes its renewTime: a record tells which of them wrote it.
#[test]
fn a_retry_under_a_clock_that_stands_still_writes_another_time() {
    let mut fixture = HolderFixture::leading();
    fixture.now = fixture.now.after(seconds(4.0));
    let wall = wall_at(fixture.now);
    let mut times = Vec::new();
    for _ in 0..3 {
        let decision = fixture.holder.step(Moment::same(fixture.now), wall);
        let [Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        assert!(!times.contains(&write.record.renew_time));
        times.push(write.record.renew_time);
        fixture
            .holder
            .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Unknown);
        fixture.now = fixture.now.after(seconds(1.0));
    }
}

/// (R8) A write that the server refused was not applied: what bears its renewTime is another's.
#[test]
fn a_refused_write_proves_nothing() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    let refused = fixture.kept.take().unwrap();
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Refused);
    let decision = step(&mut fixture);
    assert_eq!(decision.effects, [], "it is retried after a pause");
    fixture.store.edit(|record| LeaseRecord {
        renew_time: refused.record.renew_time,
        ..record.clone()
    });
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(Loss::NameShared)]);
}

/// (R8) A write that news has overtaken is not applied any more: what bears its renewTime is another's.
#[test]
fn a_write_that_was_overtaken_proves_nothing() {
    for outcome in [LeaseOutcome::Conflict, LeaseOutcome::Unknown] {
        let mut fixture = HolderFixture::leading();
        fixture.network = Network::Silent;
        fixture.pass(seconds(4.0));
        let overtaken = fixture.kept.take().unwrap();
        fixture.prefer(Some("me"));
        fixture.watch();
        fixture
            .holder
            .handle_outcome(Moment::same(fixture.now), outcome);
        fixture.store.edit(|record| LeaseRecord {
            renew_time: overtaken.record.renew_time,
            ..record.clone()
        });
        fixture.watch();
        assert_eq!(fixture.work_events, [lost(Loss::NameShared)]);
    }
}

/// (R4) A reply that comes after newer news brings no older record back.
#[test]
fn a_reply_that_was_overtaken_is_not_the_newest_record() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    let write = fixture.kept.take().unwrap();
    let reply = fixture.store.put(&write);
    fixture.prefer(Some("me"));
    fixture.watch();
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), reply);
    assert_eq!(fixture.holder.known(), fixture.store.lease.as_ref());
}

/// (R2) A write that is refused although no other came between is no race, and is repeated ever less often.
#[test]
fn conflicts_without_a_newer_revision_are_retried_after_a_pause() {
    let mut fixture = HolderFixture::leading();
    fixture.now = fixture.now.after(seconds(4.0));
    for pause in [0.5, 1.0].map(seconds) {
        assert!(matches!(
            &step(&mut fixture).effects[..],
            [Effect::Write { .. }]
        ));
        fixture
            .holder
            .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Conflict);
        assert_eq!(step(&mut fixture).effects, [Effect::Read]);
        let reply = fixture.store.lease.clone();
        fixture
            .holder
            .handle_read(Moment::same(fixture.now), Ok(reply));
        let decision = step(&mut fixture);
        assert_eq!(decision.effects, []);
        fixture.now = fixture.now.after(pause);
        assert_eq!(decision.wake_at, Some(fixture.now));
    }
}

/// (R9, R10) A proof at the deadline comes too late, by whichever input.
#[test]
fn nothing_revives_a_belief_whose_deadline_has_passed() {
    let proofs: [fn(&mut HolderFixture, Instant, LeaseSnapshot); 2] = [
        |fixture, deadline, applied| {
            fixture.holder.handle_event(
                Moment::same(deadline),
                LeaseEvent::Seen(applied, NewsSource::Watch),
            );
        },
        |fixture, deadline, applied| {
            fixture
                .holder
                .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Unknown);
            fixture
                .holder
                .handle_read(Moment::same(deadline), Ok(Some(applied)));
        },
    ];
    for (index, proof) in proofs.into_iter().enumerate() {
        let mut fixture = HolderFixture::leading();
        fixture.network = Network::Silent;
        let deadline = fixture.holder.belief().unwrap().deadline;
        fixture.pass(seconds(9.0));
        let write = fixture.kept.take().unwrap();
        let LeaseOutcome::Done(applied) = fixture.store.put(&write) else {
            panic!("the renewal is not applied");
        };
        proof(&mut fixture, deadline, applied);
        fixture.now = deadline;
        assert!(!fixture.holder.believes(fixture.now), "{index}");
        fixture.run();
        assert_eq!(fixture.work_events, [lost(Loss::DeadlinePassed)], "{index}");
    }
}

/// (R8) An accept that is found when its belief would be over begins nothing, to the very instant.
#[test]
fn an_accept_that_is_found_too_late_begins_no_term() {
    for late in [10.0, 30.0] {
        let mut fixture = HolderFixture::new();
        fixture.network = Network::Silent;
        fixture.grant("me");
        fixture.watch();
        let write = fixture.kept.take().unwrap();
        let outcome = fixture.store.put(&write);
        fixture.now = fixture.now.after(seconds(late));
        fixture
            .holder
            .handle_outcome(Moment::same(fixture.now), outcome);
        fixture.network = Network::Up;
        fixture.run();
        assert!(fixture.work_events.is_empty() && !fixture.holder.believes(fixture.now));
        assert_eq!(fixture.sent, [WriteKind::Accept], "nothing is renewed");
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
        let mut fixture = HolderFixture::new();
        fixture.network = Network::Silent;
        fixture.grant("me");
        fixture.watch();
        let write = fixture.kept.take().unwrap();
        fixture.store.edit(|_| {
            let mut record = write.record.clone();
            other(&mut record);
            record
        });
        let seen = fixture.store.lease.clone().unwrap();
        fixture.holder.handle_event(
            Moment::same(fixture.now),
            LeaseEvent::Seen(seen, NewsSource::Watch),
        );
        assert!(
            !step(&mut fixture)
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::Start { .. })),
            "{index}"
        );
        assert_eq!(fixture.holder.belief(), None, "{index}");
    }
}
