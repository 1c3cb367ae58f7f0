//! Losses while the work stops or has stopped, and what is asked for at a shutdown (R10, R12).

use super::super::{Effect, Ending, LeaseOutcome, Loss, WriteKind};
use super::fixture::{HolderFixture, Network, identity, wall_at};
use super::leaving::draining;
use super::taken;
use crate::names::Term;
use crate::strategy::StrategyName;

/// (R10, R12) A drain has its time while the belief lasts; a loss in its middle says that the time is over.
#[test]
fn a_loss_in_the_middle_of_a_drain_is_told_once_and_ends_in_a_loss() {
    let mut fixture = draining();
    assert!(fixture.believes(), "it still leads");
    fixture.grant("other");
    fixture.watch();
    fixture.lost(taken("other"));
    assert!(!fixture.holder.can_accept());
    fixture.pass(30.0);
    fixture.lost(taken("other"));
    fixture.work_stops();
    fixture.ended(Ending::Lost(taken("other")));
    assert_eq!(fixture.sent, [], "the lease is not ours to touch");
}

/// (R9, R20) The deadline ends a drain too, and a stop that comes at the deadline releases a record that is unchanged.
#[test]
fn a_drain_ends_with_the_deadline_and_a_stop_at_it_makes_room() {
    let mut fixture = draining();
    fixture.network = Network::Down;
    fixture.pass(10.0);
    fixture.lost(Loss::DeadlinePassed);

    let mut fixture = draining();
    fixture.network = Network::Silent;
    fixture.pass(4.0);
    fixture.note_outcome(LeaseOutcome::Refused);
    fixture.now = fixture.deadline();
    fixture.network = Network::Up;
    fixture.work_stops();
    fixture.ended(Ending::Lost(Loss::DeadlinePassed));
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Release]);
}

/// (R12) A term that is taken away while the work runs or drains is lost. When it has stopped, a record ends the term as
/// this process would have written it, or as a loss. Belief ended with the work, before the lease is given away (R8).
#[test]
fn only_what_this_process_wrote_after_it_stopped_is_a_clean_end() {
    for start in [draining, HolderFixture::leading] {
        let mut fixture = start();
        fixture.release();
        fixture.watch();
        fixture.lost(Loss::Taken { by: None });
    }
    let mut fixture = draining();
    fixture.grant("better");
    fixture.watch();
    fixture.lost(taken("better"));

    let to = identity("better");
    for (holder, term, ending) in [
        (Some("better"), Term(2), Ending::HandedOver { to }),
        (Some("better"), Term(9), Ending::Lost(taken("better"))),
        (Some("other"), Term(2), Ending::Lost(taken("other"))),
        (None, Term(1), Ending::Released),
        (None, Term(9), Ending::Lost(Loss::Taken { by: None })),
    ] {
        let mut fixture = draining();
        fixture.network = Network::Silent;
        fixture.work_stops();
        assert_eq!(fixture.sent, [WriteKind::HandOff(identity("better"))]);
        assert_eq!(fixture.holder.belief(), None);
        fixture.edit(|record| (record.holder, record.term) = (holder.map(identity), term));
        fixture.watch();
        fixture.ended(ending);
    }
}

/// (R8) A grant of a Lease that is gone by now is nothing to accept.
#[test]
fn a_grant_of_a_lease_that_was_deleted_since_is_not_accepted() {
    let mut fixture = HolderFixture::accepting(Network::Down);
    fixture.store.delete();
    fixture.watch();
    fixture.network = Network::Up;
    fixture.pass(30.0);
    assert_eq!(fixture.sent, [WriteKind::Accept]);
}

/// (R7, R11) Accept and renewals carry the strategy over.
#[test]
fn the_strategy_of_the_lease_outlives_its_holders() {
    let mut fixture = HolderFixture::new();
    let strategy = Some(StrategyName::oldest_emulation_version());
    fixture.edit(|record| record.strategy.clone_from(&strategy));
    fixture.grant("me");
    fixture.watch();
    fixture.pass(7.0);
    assert!(fixture.sent.contains(&WriteKind::Renew));
    assert_eq!(fixture.record().strategy, strategy);
    fixture.work_stops();
    assert_eq!(fixture.sent.last(), Some(&WriteKind::Release));
    assert_eq!(fixture.record().strategy, strategy);
}

/// (R9) A holder wakes at its deadline, whatever request is under way.
#[test]
fn the_deadline_wakes_the_holder_also_while_it_waits_for_a_reply() {
    let fixture = HolderFixture::renewing();
    assert_eq!(fixture.wake_at, Some(fixture.deadline()));
}

/// (R12) A shutdown is asked for once; what was withdrawn stays withdrawn.
#[test]
fn a_second_shutdown_changes_nothing() {
    let mut fixture = HolderFixture::leading();
    fixture.holder.handle_withdrawn();
    fixture.run();
    assert!(fixture.holder.can_accept(), "no shutdown was asked for");
    fixture.shut_down();
    fixture.run();
    assert!(!fixture.holder.can_accept() && !fixture.holder.is_finished());
    fixture.holder.handle_withdrawn();
    fixture.shut_down();
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Release]);
    assert!(fixture.holder.is_finished());
}

/// (R12) A shutdown is over when nothing is left to do, and not before.
#[test]
fn a_shutdown_is_not_over_while_a_request_is_under_way_or_the_work_runs() {
    let mut fixture = HolderFixture::leading();
    fixture.shut_down();
    fixture.holder.handle_withdrawn();
    fixture.run();
    assert!(!fixture.holder.is_finished(), "the work runs");
    fixture.network = Network::Silent;
    fixture.work_stops();
    assert_eq!(fixture.sent, [WriteKind::Release]);
    assert!(!fixture.holder.is_finished(), "the release is under way");
    let outcome = fixture.apply_kept();
    fixture.note_outcome(outcome);
    assert!(!fixture.holder.is_finished(), "its end is to be reported");
    fixture.run();
    assert!(fixture.holder.is_finished());

    let mut fixture = HolderFixture::accepting(Network::Silent);
    fixture.shut_down();
    assert!(!fixture.holder.is_finished(), "the accept is under way");
}

/// (R11) The renewTime of a renewal is the time of its send, and one microsecond beside it where the two are equal.
#[test]
fn a_renewal_writes_the_present_time_or_the_next_microsecond() {
    let mut fixture = HolderFixture::leading();
    let before = fixture.record().renew_time.unwrap();
    fixture.stand_still(4.0);
    let now = wall_at(fixture.now);
    for (wall, expected) in [(now, Some(now)), (before, before.next())] {
        let decision = fixture.holder.clone().step(fixture.moment(), wall);
        let [Effect::Write { write, .. }] = &decision.effects[..] else {
            panic!("no renewal in {decision:?}");
        };
        assert_eq!(write.record.renew_time, expected);
    }
}
