//! Losses while the work stops or has stopped, and what is asked for at a shutdown (R10, R12).

use super::super::fixture::{HolderFixture, Network, WorkEvent, identity, seconds, wall_at};
use super::super::{Effect, Ending, LeaseOutcome, Loss, StopReason, WriteKind};
use super::{lost, taken};
use crate::lease::LeaseRecord;
use crate::names::Term;
use crate::time::Moment;

/// Leads, and stops its work to make room for `better`.
fn draining() -> HolderFixture {
    let mut fixture = HolderFixture::leading();
    fixture.prefer(Some("better"));
    fixture.watch();
    let to = identity("better");
    assert_eq!(
        fixture.work_events,
        [WorkEvent::Stop(StopReason::HandOver { to })]
    );
    fixture.work_events.clear();
    fixture
}

/// (R10, R12) A drain has its time while the belief lasts; a loss in its middle says that the time is over.
#[test]
fn a_loss_in_the_middle_of_a_drain_is_told_once_and_ends_in_a_loss() {
    let mut fixture = draining();
    assert!(fixture.holder.believes(fixture.now), "it still leads");
    fixture.grant("other");
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(taken("other"))]);
    assert!(!fixture.holder.believes(fixture.now));
    assert!(!fixture.holder.can_accept());
    fixture.pass(seconds(30.0));
    assert_eq!(fixture.work_events, [lost(taken("other"))], "once");
    fixture.work_stops();
    assert_eq!(
        fixture.work_events[1..],
        [WorkEvent::Ended(Ending::Lost(taken("other")))]
    );
    assert_eq!(fixture.sent, [], "the lease is not ours to touch");
}

/// (R9, R12) The deadline ends a drain too, and a stop that comes at the deadline releases nothing.
#[test]
fn a_drain_ends_with_the_deadline_and_a_stop_at_it_releases_nothing() {
    let mut fixture = draining();
    fixture.network = Network::Down;
    fixture.pass(seconds(10.0));
    assert_eq!(fixture.work_events, [lost(Loss::DeadlinePassed)]);

    let mut fixture = draining();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Refused);
    fixture.now = fixture.holder.belief().unwrap().deadline;
    fixture.network = Network::Up;
    fixture.work_stops();
    assert_eq!(
        fixture.work_events,
        [WorkEvent::Ended(Ending::Lost(Loss::DeadlinePassed))]
    );
    assert_eq!(fixture.sent, [WriteKind::Renew]);
}

/// (R8, R12) Belief ends with the work, before the lease is given away.
#[test]
fn belief_ends_when_the_work_has_stopped_and_not_when_the_lease_is_gone() {
    let mut fixture = draining();
    fixture.network = Network::Silent;
    fixture.work_stops();
    assert_eq!(
        fixture.sent,
        [WriteKind::HandOff(identity("better"))],
        "under way"
    );
    assert_eq!(fixture.holder.belief(), None);
}

/// (R12) An end is a release or a hand-over only where this process had stopped and wrote just that.
#[test]
fn only_what_this_process_wrote_after_it_stopped_is_a_clean_end() {
    // Emptied, or granted to the preferred one, while the work runs or drains: a loss.
    for drains in [true, false] {
        let mut fixture = if drains {
            draining()
        } else {
            HolderFixture::leading()
        };
        let wall = wall_at(fixture.now);
        fixture.store.edit(|record| record.released(wall));
        fixture.watch();
        assert_eq!(fixture.work_events, [lost(Loss::Taken { by: None })]);
    }
    let mut fixture = draining();
    fixture.grant("better");
    fixture.watch();
    assert_eq!(fixture.work_events, [lost(taken("better"))]);

    // Stopped: the same records count by their terms.
    let stopped = || {
        let mut fixture = draining();
        fixture.network = Network::Silent;
        fixture.work_stops();
        fixture
    };
    let ended = |mut fixture: HolderFixture, change: fn(&LeaseRecord) -> LeaseRecord| {
        fixture.store.edit(change);
        fixture.watch();
        fixture.work_events.last().cloned()
    };
    let to = identity("better");
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: Some(identity("better")),
            term: record.term.next(),
            ..record.clone()
        }),
        Some(WorkEvent::Ended(Ending::HandedOver { to }))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: Some(identity("better")),
            term: Term(9),
            ..record.clone()
        }),
        Some(WorkEvent::Ended(Ending::Lost(taken("better"))))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: Some(identity("other")),
            term: record.term.next(),
            ..record.clone()
        }),
        Some(WorkEvent::Ended(Ending::Lost(taken("other"))))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: None,
            ..record.clone()
        }),
        Some(WorkEvent::Ended(Ending::Released))
    );
    assert_eq!(
        ended(stopped(), |record| LeaseRecord {
            holder: None,
            term: Term(9),
            ..record.clone()
        }),
        Some(WorkEvent::Ended(Ending::Lost(Loss::Taken { by: None })))
    );
}

/// (R8) A grant of a Lease that is gone by now is nothing to accept.
#[test]
fn a_grant_of_a_lease_that_was_deleted_since_is_not_accepted() {
    let mut fixture = HolderFixture::new();
    fixture.network = Network::Down;
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept]);
    fixture.store.delete();
    fixture.watch();
    fixture.network = Network::Up;
    fixture.pass(seconds(30.0));
    assert_eq!(fixture.sent, [WriteKind::Accept]);
}

/// (R7, R11) Accept and renewals carry the strategy over.
#[test]
fn the_strategy_of_the_lease_outlives_its_holders() {
    let mut fixture = HolderFixture::new();
    let strategy = Some(crate::strategy::StrategyName::oldest_emulation_version());
    let stamp = strategy.clone();
    fixture.store.edit(|record| record.preferring(None, stamp));
    fixture.grant("me");
    fixture.watch();
    fixture.pass(seconds(7.0));
    assert!(fixture.sent.contains(&WriteKind::Renew));
    assert_eq!(fixture.record().strategy, strategy);
    fixture.work_stops();
    assert_eq!(fixture.sent.last(), Some(&WriteKind::Release));
    assert_eq!(fixture.record().strategy, strategy);
}

/// (R9) A holder wakes at its deadline, whatever request is under way.
#[test]
fn the_deadline_wakes_the_holder_also_while_it_waits_for_a_reply() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    let deadline = fixture.holder.belief().unwrap().deadline;
    fixture.pass(seconds(4.0));
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    assert_eq!(fixture.wake_at, Some(deadline));
}

/// (R12) A shutdown is asked for once; what was withdrawn stays withdrawn.
#[test]
fn a_second_shutdown_changes_nothing() {
    let mut fixture = HolderFixture::leading();
    fixture.holder.handle_withdrawn();
    fixture.run();
    assert!(fixture.holder.can_accept(), "no shutdown was asked for");
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.run();
    assert!(!fixture.holder.can_accept() && !fixture.holder.is_finished());
    fixture.holder.handle_withdrawn();
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Release]);
    assert!(fixture.holder.is_finished());
}

/// (R12) A shutdown is over when nothing is left to do, and not before.
#[test]
fn a_shutdown_is_not_over_while_a_request_is_under_way_or_the_work_runs() {
    assert!(
        !HolderFixture::new().holder.is_finished(),
        "it was not asked for"
    );

    let mut fixture = HolderFixture::leading();
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.holder.handle_withdrawn();
    fixture.run();
    assert!(!fixture.holder.is_finished(), "the work runs");
    fixture.network = Network::Silent;
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Release]);
    assert!(!fixture.holder.is_finished(), "the release is under way");
    let write = fixture.kept.take().unwrap();
    let outcome = fixture.store.put(&write);
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), outcome);
    assert!(!fixture.holder.is_finished(), "its end is to be reported");
    fixture.run();
    assert!(fixture.holder.is_finished());

    let mut fixture = HolderFixture::new();
    fixture.network = Network::Silent;
    fixture.grant("me");
    fixture.watch();
    fixture.holder.shut_down(Moment::same(fixture.now));
    assert!(!fixture.holder.is_finished(), "the accept is under way");
}

/// (R8, R12) An accept that was under way at the shutdown, and whose outcome is unknown, is looked for.
#[test]
fn an_accept_under_way_at_shutdown_is_looked_for_when_its_reply_is_lost() {
    let mut fixture = HolderFixture::new();
    fixture.network = Network::Silent;
    fixture.grant("me");
    fixture.watch();
    fixture.holder.shut_down(Moment::same(fixture.now));
    fixture.holder.handle_withdrawn();
    let write = fixture.kept.take().unwrap();
    assert!(matches!(fixture.store.put(&write), LeaseOutcome::Done(_)));
    fixture
        .holder
        .handle_outcome(Moment::same(fixture.now), LeaseOutcome::Unknown);
    fixture.network = Network::Up;
    fixture.pass(seconds(1.0));
    assert_eq!(fixture.sent, [WriteKind::Accept, WriteKind::Release]);
    assert!(fixture.work_events.is_empty() && fixture.holder.is_finished());
}

/// (R11) The renewTime of a renewal is the time of its send, and one microsecond beside it where the two are equal.
#[test]
fn a_renewal_writes_the_present_time_or_the_next_microsecond() {
    let fixture = HolderFixture::leading();
    let before = fixture.record().renew_time.unwrap();
    for wall in [wall_at(fixture.now.after(seconds(4.0))), before] {
        let mut holder = fixture.holder.clone();
        let decision = holder.step(Moment::same(fixture.now.after(seconds(4.0))), wall);
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
