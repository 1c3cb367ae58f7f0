//! Losses while the work stops or has stopped, and what is asked for at a shutdown (R10, R12).

use super::super::world::{Network, Told, World, identity, seconds, wall_at};
use super::super::{Effect, Ending, LeaseOutcome, Loss, StopReason, WriteKind};
use super::{lost, taken};
use crate::lease::LeaseRecord;
use crate::names::Term;

/// Leads, and stops its work to make room for `better`.
fn draining() -> World {
    let mut world = World::leading();
    world.prefer(Some("better"));
    world.watch();
    let to = identity("better");
    assert_eq!(world.told, [Told::Stop(StopReason::HandOver { to })]);
    world.told.clear();
    world
}

/// (R10, R12) A drain has its time while the belief lasts; a loss in its middle says that the time is over.
#[test]
fn a_loss_in_the_middle_of_a_drain_is_told_once_and_ends_in_a_loss() {
    let mut world = draining();
    assert!(world.holder.believes(world.now), "it still leads");
    world.grant("other");
    world.watch();
    assert_eq!(world.told, [lost(taken("other"))]);
    assert!(!world.holder.believes(world.now));
    assert!(!world.holder.can_accept());
    world.pass(seconds(30.0));
    assert_eq!(world.told, [lost(taken("other"))], "once");
    world.work_stops();
    assert_eq!(world.told[1..], [Told::Ended(Ending::Lost(taken("other")))]);
    assert_eq!(world.sent, [], "the lease is not ours to touch");
}

/// (R9, R12) The deadline ends a drain too, and a stop that comes at the deadline releases nothing.
#[test]
fn a_drain_ends_with_the_deadline_and_a_stop_at_it_releases_nothing() {
    let mut world = draining();
    world.network = Network::Down;
    world.pass(seconds(10.0));
    assert_eq!(world.told, [lost(Loss::DeadlinePassed)]);

    let mut world = draining();
    world.network = Network::Silent;
    world.pass(seconds(4.0));
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Refused);
    world.now = world.holder.belief().unwrap().deadline;
    world.network = Network::Up;
    world.work_stops();
    assert_eq!(
        world.told,
        [Told::Ended(Ending::Lost(Loss::DeadlinePassed))]
    );
    assert_eq!(world.sent, [WriteKind::Renew]);
}

/// (R8, R12) Belief ends with the work, before the lease is given away.
#[test]
fn belief_ends_when_the_work_has_stopped_and_not_when_the_lease_is_gone() {
    let mut world = draining();
    world.network = Network::Silent;
    world.work_stops();
    assert_eq!(
        world.sent,
        [WriteKind::HandOff(identity("better"))],
        "under way"
    );
    assert_eq!(world.holder.belief(), None);
}

/// (R12) An end is a release or a hand-over only where this process had stopped and wrote just that.
#[test]
fn only_what_this_process_wrote_after_it_stopped_is_a_clean_end() {
    // Emptied, or granted to the preferred one, while the work runs or drains: a loss.
    for drains in [true, false] {
        let mut world = if drains { draining() } else { World::leading() };
        let wall = wall_at(world.now);
        world.store.edit(|record| record.released(wall));
        world.watch();
        assert_eq!(world.told, [lost(Loss::Taken { by: None })]);
    }
    let mut world = draining();
    world.grant("better");
    world.watch();
    assert_eq!(world.told, [lost(taken("better"))]);

    // Stopped: the same records count by their terms.
    let stopped = || {
        let mut world = draining();
        world.network = Network::Silent;
        world.work_stops();
        world
    };
    let ended = |mut world: World, change: fn(&LeaseRecord) -> LeaseRecord| {
        world.store.edit(change);
        world.watch();
        world.told.last().cloned()
    };
    let to = identity("better");
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: Some(identity("better")),
            term: record.term.next(),
            ..record.clone()
        }),
        Some(Told::Ended(Ending::HandedOver { to }))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: Some(identity("better")),
            term: Term(9),
            ..record.clone()
        }),
        Some(Told::Ended(Ending::Lost(taken("better"))))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: Some(identity("other")),
            term: record.term.next(),
            ..record.clone()
        }),
        Some(Told::Ended(Ending::Lost(taken("other"))))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: None,
            ..record.clone()
        }),
        Some(Told::Ended(Ending::Released))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: None,
            term: Term(9),
            ..record.clone()
        }),
        Some(Told::Ended(Ending::Lost(Loss::Taken { by: None })))
    );
}

/// (R8) A grant of a Lease that is gone by now is nothing to accept.
#[test]
fn a_grant_of_a_lease_that_was_deleted_since_is_not_accepted() {
    let mut world = World::new();
    world.network = Network::Down;
    world.grant("me");
    world.watch();
    assert_eq!(world.sent, [WriteKind::Accept]);
    world.store.delete();
    world.watch();
    world.network = Network::Up;
    world.pass(seconds(30.0));
    assert_eq!(world.sent, [WriteKind::Accept]);
}

/// (R7, R11) Accept and renewals carry the strategy over.
#[test]
fn the_strategy_of_the_lease_outlives_its_holders() {
    let mut world = World::new();
    let strategy = Some(crate::strategy::StrategyName::oldest_emulation_version());
    let stamp = strategy.clone();
    world.store.edit(|record| record.preferring(None, stamp));
    world.grant("me");
    world.watch();
    world.pass(seconds(7.0));
    assert!(world.sent.contains(&WriteKind::Renew));
    assert_eq!(world.record().strategy, strategy);
    world.work_stops();
    assert_eq!(world.sent.last(), Some(&WriteKind::Release));
    assert_eq!(world.record().strategy, strategy);
}

/// (R9) A holder wakes at its deadline, whatever request is under way.
#[test]
fn the_deadline_wakes_the_holder_also_while_it_waits_for_a_reply() {
    let mut world = World::leading();
    world.network = Network::Silent;
    let deadline = world.holder.belief().unwrap().deadline;
    world.pass(seconds(4.0));
    assert_eq!(world.sent, [WriteKind::Renew]);
    assert_eq!(world.wake_at, Some(deadline));
}

/// (R12) A shutdown is asked for once; what was withdrawn stays withdrawn.
#[test]
fn a_second_shutdown_changes_nothing() {
    let mut world = World::leading();
    world.holder.handle_withdrawn();
    world.run();
    assert!(world.holder.can_accept(), "nobody asked for a shutdown");
    world.holder.shut_down(world.now);
    world.run();
    assert!(!world.holder.can_accept() && !world.holder.is_finished());
    world.holder.handle_withdrawn();
    world.holder.shut_down(world.now);
    world.work_stops();
    assert_eq!(world.sent, [WriteKind::Release]);
    assert!(world.holder.is_finished());
}

/// (R12) A shutdown is over when nothing is left to do, and not before.
#[test]
fn a_shutdown_is_not_over_while_a_request_is_under_way_or_the_work_runs() {
    assert!(!World::new().holder.is_finished(), "it was not asked for");

    let mut world = World::leading();
    world.holder.shut_down(world.now);
    world.holder.handle_withdrawn();
    world.run();
    assert!(!world.holder.is_finished(), "the work runs");
    world.network = Network::Silent;
    world.work_stops();
    assert_eq!(world.sent, [WriteKind::Release]);
    assert!(!world.holder.is_finished(), "the release is under way");
    let write = world.kept.take().unwrap();
    let outcome = world.store.put(&write);
    world.holder.handle_outcome(world.now, outcome);
    assert!(!world.holder.is_finished(), "its end is to be told");
    world.run();
    assert!(world.holder.is_finished());

    let mut world = World::new();
    world.network = Network::Silent;
    world.grant("me");
    world.watch();
    world.holder.shut_down(world.now);
    assert!(!world.holder.is_finished(), "the accept is under way");
}

/// (R8, R12) An accept that was under way at the shutdown, and whose outcome is unknown, is looked for.
#[test]
fn an_accept_under_way_at_shutdown_is_looked_for_when_its_reply_is_lost() {
    let mut world = World::new();
    world.network = Network::Silent;
    world.grant("me");
    world.watch();
    world.holder.shut_down(world.now);
    world.holder.handle_withdrawn();
    let write = world.kept.take().unwrap();
    assert!(matches!(world.store.put(&write), LeaseOutcome::Done(_)));
    world
        .holder
        .handle_outcome(world.now, LeaseOutcome::Unknown);
    world.network = Network::Up;
    world.pass(seconds(1.0));
    assert_eq!(world.sent, [WriteKind::Accept, WriteKind::Release]);
    assert!(world.told.is_empty() && world.holder.is_finished());
}

/// (R11) The renewTime of a renewal is the time of its send, and one microsecond beside it where the two are equal.
#[test]
fn a_renewal_writes_the_present_time_or_the_next_microsecond() {
    let world = World::leading();
    let before = world.record().renew_time.unwrap();
    for wall in [wall_at(world.now.after(seconds(4.0))), before] {
        let mut holder = world.holder.clone();
        let decision = holder.step(world.now.after(seconds(4.0)), wall);
        let [Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        let expected = if wall == before {
            wall.next()
        } else {
            Some(wall)
        };
        assert_eq!(write.record.renew_time, expected);
    }
}
