//! Preferences: to whom they go, what they change of a live lease, and how long they stand (R7, R16).

use std::time::Duration;

use elector_protocol::elector::{Action, PreferenceField, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, StrategyName};

use crate::world::{World, id, lease_write, pinged};

/// `b` leads, and `c` is preferred to it.
fn preferred() -> World {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    let decision = world.step();
    assert_eq!(world.apply(&decision).preferred_holder, Some(id("c")));
    world
}

/// (R7) A preference also says by which strategy it was decided; a withdrawal clears the preference and nothing else.
#[test]
fn a_preference_and_its_withdrawal_change_the_signals_and_nothing_else() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    let unstamped = LeaseRecord {
        strategy: None,
        ..world.record()
    };
    world.lease(unstamped.clone());
    world.register("c", "1.1.0");
    let decision = world.step();
    let stamped = LeaseRecord {
        preferred_holder: Some(id("c")),
        strategy: Some(StrategyName::oldest_emulation_version()),
        ..unstamped.clone()
    };
    assert_eq!(world.apply(&decision), stamped);

    world.pass(1.0);
    world.election.handle_candidate_gone(&id("c"), None);
    let decision = world.step();
    assert_eq!(decision.action(), Action::Withdraw);
    let withdrawn = LeaseRecord {
        preferred_holder: None,
        ..stamped
    };
    assert_eq!(world.apply(&decision), withdrawn);
}

/// (R16) Strictly better by the strategy's keys: any eligible candidate is, where the holder is not eligible itself.
#[test]
fn a_holder_that_is_not_eligible_is_asked_to_make_room_for_any_that_is() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.3.0");
    assert_eq!(world.step().reason, Reason::HolderIsBest(id("b")));
    world.change("b", |candidate| {
        candidate.spec = CandidateSpec::parse("1.40.0", "", "OldestEmulationVersion");
    });
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is asked to make room: c can be elected, the holder cannot"
    );
}

/// (R16, L3) A preference moves strictly up, and never sideways.
#[test]
fn a_preference_moves_to_a_better_one_and_not_to_an_equal_one() {
    let mut world = preferred();
    world.register("a", "1.1.0");
    assert!(matches!(world.step().reason, Reason::AwaitYield { .. }));
    world.register("d", "1.0.0");
    let decision = world.step();
    assert_eq!(world.apply(&decision).preferred_holder, Some(id("d")));
}

/// (R16) A preference for the holder itself asks it for nothing.
#[test]
fn a_preference_for_the_holder_itself_is_withdrawn() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    let odd = world.record().preferring(Some(id("b")), None);
    world.lease(odd);
    assert_eq!(
        world.step().reason.to_string(),
        "b need not make room any more: b is the holder itself"
    );
}

/// (R16, L6) It is withdrawn when the candidate stops answering, and the elector is awake when that shows.
#[test]
fn a_preference_is_looked_after_until_its_candidate_is_silent() {
    let mut world = preferred();
    let stale = world.now.after(Duration::from_secs(5));
    assert_eq!(
        world.step().wake_at(),
        Some(stale),
        "when the answer is stale"
    );
    world.pass(5.0);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["c"]);
    let decision = world.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(
        decision.wake_at(),
        Some(world.now.after(Duration::from_secs(2))),
        "when the answer is late"
    );
    world.pass(2.0);
    assert_eq!(world.step().action(), Action::Withdraw);
}

/// (R7) A holder that cannot see a preference, because the server drops the field, is not left with one.
#[test]
fn a_preference_that_the_holder_cannot_see_is_withdrawn() {
    let mut world = preferred();
    world.change("b", |candidate| candidate.marked = false);
    let accepted = LeaseRecord {
        token: None,
        token_term: None,
        ..world.record()
    };
    world.lease(accepted);
    assert!(matches!(world.step().reason, Reason::AwaitYield { .. }));
    world.settings.preference_field = PreferenceField::Dropped;
    let decision = world.step();
    assert_eq!(decision.action(), Action::Withdraw);
    assert_eq!(
        lease_write(&decision).map(|write| write.record.preferred_holder.clone()),
        Some(None)
    );
}

/// (R3 d) A placeholder says by which strategy the lease was reserved.
#[test]
fn a_reservation_stamps_the_strategy_and_rounds_its_duration_up() {
    let mut world = World::new();
    world.settings.preference_field = PreferenceField::Dropped;
    world.settings.reserve = true;
    world.lead("b", "1.2.0");
    world.change("b", |candidate| {
        candidate.marked = false;
        candidate.announced = Some(Duration::from_millis(25_001));
    });
    let accepted = LeaseRecord {
        token: None,
        token_term: None,
        strategy: None,
        ..world.record()
    };
    world.lease(accepted);
    world.register("c", "1.1.0");
    let decision = world.step();
    assert_eq!(decision.action(), Action::Reserve);
    let placeholder = world.apply(&decision);
    assert_eq!(
        (placeholder.strategy, placeholder.duration_seconds),
        (Some(StrategyName::oldest_emulation_version()), Some(26))
    );
}
