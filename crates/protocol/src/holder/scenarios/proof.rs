//! Which writes of its own a process knows by their time and their term, and what they prove (R8, R10).

use super::super::world::{Network, Told, World, identity, seconds, wall_at};
use super::super::{Effect, LeaseEvent, LeaseOutcome, Loss, WriteKind};
use super::doubt::step;
use super::lost;
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::names::{ResourceVersion, Term, Token};
use crate::time::Instant;

/// (R10) A 409 to a write that was applied: the read shows it, and belief counts from when it was sent.
#[test]
fn a_conflict_with_ones_own_applied_write_proves_that_write() {
    let mut world = World::leading();
    world.network = Network::Silent;
    let sent_at = world.now.after(seconds(10.0) / 3);
    world.pass(seconds(4.0));
    assert_eq!(world.sent, [WriteKind::Renew]);
    let write = world.kept.take().unwrap();
    assert!(matches!(world.store.put(&write), LeaseOutcome::Done(_)));
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Conflict);
    assert!(world.holder.believes(world.now), "a 409 alone is no loss");
    world.network = Network::Up;
    world.run();
    assert_eq!(
        world.holder.belief().unwrap().deadline,
        sent_at.after(seconds(10.0))
    );
    assert!(world.told.is_empty());
    assert_eq!(world.sent, [WriteKind::Renew], "nothing is retried");
}

/// (R8, R10) The same for an accept: the term begins, from the send of that write.
#[test]
fn a_conflict_with_ones_own_applied_accept_begins_the_term_from_its_send() {
    let mut world = World::new();
    world.network = Network::Silent;
    world.grant("me");
    world.watch();
    let sent_at = world.now;
    let write = world.kept.take().unwrap();
    let token = Token(write.version);
    assert!(matches!(world.store.put(&write), LeaseOutcome::Done(_)));
    world.now = world.now.after(seconds(1.0));
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Conflict);
    world.network = Network::Up;
    world.run();
    assert_eq!(world.told, [Told::Start(Term(1), token)]);
    let deadline = world.holder.belief().unwrap().deadline;
    assert_eq!(deadline, sent_at.after(seconds(10.0)));
}

/// (R8) The revision known, told again, settles nothing: an attempt of unknown outcome is still open.
#[test]
fn a_repeated_revision_does_not_make_an_own_write_a_strangers() {
    let mut world = World::leading();
    world.network = Network::AnswersLost;
    let known = world.store.lease.clone().unwrap();
    world.pass(seconds(3.4));
    assert_eq!(world.sent, [WriteKind::Renew]);
    world
        .holder
        .handle_event(world.now, LeaseEvent::Seen(known));
    world.network = Network::Up;
    world.watch();
    assert!(world.told.is_empty() && world.holder.believes(world.now));
    // The proof is a success like any other: the next renewal waits for its time.
    world.pass(seconds(2.0));
    assert_eq!(world.sent, [WriteKind::Renew]);
}

/// (R8, R11) While an attempt is open, no other one writes its renewTime: a record tells which of them wrote it.
#[test]
fn a_retry_under_a_clock_that_stands_still_writes_another_time() {
    let mut world = World::leading();
    world.now = world.now.after(seconds(4.0));
    let wall = wall_at(world.now);
    let mut times = Vec::new();
    for _ in 0..3 {
        let decision = world.holder.step(world.now, wall);
        let [Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        assert!(!times.contains(&write.record.renew_time));
        times.push(write.record.renew_time);
        world
            .holder
            .handle_outcome(world.now, LeaseOutcome::Unknown);
        world.now = world.now.after(seconds(1.0));
    }
}

/// (R8) A write that the server refused was not applied: what bears its renewTime is another's.
#[test]
fn a_refused_write_proves_nothing() {
    let mut world = World::leading();
    world.network = Network::Silent;
    world.pass(seconds(4.0));
    let refused = world.kept.take().unwrap();
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Refused);
    let decision = step(&mut world);
    assert_eq!(decision.effects, [], "it is retried after a pause");
    world.store.edit(|record| LeaseRecord {
        renew_time: refused.record.renew_time,
        ..record.clone()
    });
    world.watch();
    assert_eq!(world.told, [lost(Loss::NameShared)]);
}

/// (R10) A second conflict in a row is no reason to hurry.
#[test]
fn conflicts_in_a_row_are_retried_after_a_pause() {
    let mut world = World::leading();
    world.now = world.now.after(seconds(4.0));
    for pause in [None, Some(seconds(0.5))] {
        assert!(matches!(
            &step(&mut world).effects[..],
            [Effect::Write { .. }]
        ));
        world
            .holder
            .handle_outcome(world.now, LeaseOutcome::Conflict);
        let decision = step(&mut world);
        let Some(pause) = pause else {
            assert_eq!(decision.effects, [Effect::Read]);
            let answer = world.store.lease.clone();
            world.holder.handle_read(world.now, Ok(answer));
            continue;
        };
        assert_eq!(decision.effects, []);
        assert_eq!(decision.wake_at, Some(world.now.after(pause)));
    }
}

/// (R9, R10) A proof at the deadline comes too late, by whichever input.
#[test]
fn nothing_revives_a_belief_whose_deadline_has_passed() {
    let proofs: [fn(&mut World, Instant, LeaseSnapshot); 2] = [
        |world, deadline, applied| {
            world
                .holder
                .handle_event(deadline, LeaseEvent::Seen(applied));
        },
        |world, deadline, applied| {
            world
                .holder
                .handle_outcome(world.now, LeaseOutcome::Unknown);
            world.holder.handle_read(deadline, Ok(Some(applied)));
        },
    ];
    for (index, proof) in proofs.into_iter().enumerate() {
        let mut world = World::leading();
        world.network = Network::Silent;
        let deadline = world.holder.belief().unwrap().deadline;
        world.pass(seconds(9.0));
        let write = world.kept.take().unwrap();
        let LeaseOutcome::Done(applied) = world.store.put(&write) else {
            panic!("the renewal is not applied");
        };
        proof(&mut world, deadline, applied);
        world.now = deadline;
        assert!(!world.holder.believes(world.now), "{index}");
        world.run();
        assert_eq!(world.told, [lost(Loss::DeadlinePassed)], "{index}");
    }
}

/// (R8) An accept that is found when its belief would be over begins nothing, to the very instant.
#[test]
fn an_accept_that_is_found_too_late_begins_no_term() {
    for late in [10.0, 30.0] {
        let mut world = World::new();
        world.network = Network::Silent;
        world.grant("me");
        world.watch();
        let write = world.kept.take().unwrap();
        let outcome = world.store.put(&write);
        world.now = world.now.after(seconds(late));
        world.holder.handle_outcome(world.now, outcome);
        world.network = Network::Up;
        world.run();
        assert!(world.told.is_empty() && !world.holder.believes(world.now));
        assert_eq!(world.sent, [WriteKind::Accept], "nothing is renewed");
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
        let mut world = World::new();
        world.network = Network::Silent;
        world.grant("me");
        world.watch();
        let write = world.kept.take().unwrap();
        world.store.edit(|_| {
            let mut record = write.record.clone();
            other(&mut record);
            record
        });
        let seen = world.store.lease.clone().unwrap();
        world.holder.handle_event(world.now, LeaseEvent::Seen(seen));
        assert!(
            !step(&mut world)
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::Start { .. })),
            "{index}"
        );
        assert_eq!(world.holder.belief(), None, "{index}");
    }
}
