//! Preferences: to which candidates they go, what they change of a live lease, and how long they stand (R7, R16).

use std::time::Duration;

use elector_protocol::elector::{Action, PreferenceField, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, StrategyName};

use crate::fixture::{ElectionFixture, id, lease_write, pinged};

/// `b` leads, and `c` is preferred to it.
fn preferred() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("c")));
    fixture
}

/// (R7) A preference also says by which strategy it was decided; a withdrawal clears the preference and nothing else.
#[test]
fn a_preference_and_its_withdrawal_change_the_signals_and_nothing_else() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    let unstamped = LeaseRecord {
        strategy: None,
        ..fixture.record()
    };
    fixture.lease(unstamped.clone());
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    let stamped = LeaseRecord {
        preferred_holder: Some(id("c")),
        strategy: Some(StrategyName::oldest_emulation_version()),
        ..unstamped.clone()
    };
    assert_eq!(fixture.apply(&decision), stamped);

    fixture.pass(1.0);
    fixture.election.handle_candidate_gone(&id("c"), None);
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Withdraw);
    let withdrawn = LeaseRecord {
        preferred_holder: None,
        ..stamped
    };
    assert_eq!(fixture.apply(&decision), withdrawn);
}

/// (R16) Strictly better by the strategy's keys: any eligible candidate is, where the holder is not eligible itself.
#[test]
fn a_holder_that_is_not_eligible_is_asked_to_make_room_for_any_that_is() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.3.0");
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("b")));
    fixture.change("b", |candidate| {
        candidate.spec = CandidateSpec::parse("1.40.0", "", "OldestEmulationVersion").into();
    });
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is asked to make room: c can be elected, the holder cannot"
    );
}

/// (R16, L3) A preference moves strictly up, and never sideways.
#[test]
fn a_preference_moves_to_a_better_one_and_not_to_an_equal_one() {
    let mut fixture = preferred();
    fixture.register("a", "1.1.0");
    assert!(matches!(fixture.step().reason, Reason::AwaitYield { .. }));
    fixture.register("d", "1.0.0");
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("d")));
}

/// (R16) A preference for the holder itself asks it for nothing.
#[test]
fn a_preference_for_the_holder_itself_is_withdrawn() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    let odd = fixture.record().preferring(Some(id("b")), None);
    fixture.lease(odd);
    assert_eq!(
        fixture.step().reason.to_string(),
        "b is no longer asked to make room: b is the holder itself"
    );
}

/// (R16, L6) It is withdrawn when the candidate falls silent, and the elector is awake when that shows.
#[test]
fn a_preference_is_looked_after_until_its_candidate_is_silent() {
    let mut fixture = preferred();
    let stale = fixture.now.after(Duration::from_secs(5));
    assert_eq!(
        fixture.step().wake_at(),
        Some(stale),
        "when the ack is stale"
    );
    fixture.pass(5.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["c"]);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(2))),
        "when the ack is late"
    );
    fixture.pass(2.0);
    assert_eq!(fixture.step().action(), Action::Withdraw);
}

/// (R15, L5) A holder that does not make room costs ever fewer pings of the candidate that it should make room for.
#[test]
fn a_preferred_candidate_is_pinged_ever_more_seldom_up_to_a_minute() {
    let mut fixture = preferred();
    let start = fixture.now;
    let mut pings = Vec::new();
    while fixture.now < start.after(Duration::from_secs(300)) {
        fixture.keep(1);
        let decision = fixture.step();
        let due = decision.wake_at().unwrap();
        if fixture.deliver_pings(&decision) == ["c"] {
            pings.push(fixture.now.since(start).as_secs());
            fixture.ack("c");
        } else {
            assert!(due > fixture.now, "it sleeps until the ping");
        }
    }
    assert_eq!(pings, [5, 10, 20, 40, 80, 140, 200, 260]);

    // The last of them stays without an ack.
    fixture.keep(20);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["c"]);
    fixture.keep(2);
    assert_eq!(fixture.step().action(), Action::Withdraw);
}

/// (R15, L6) Where the lease has changed hands, the ack of long ago is old at once.
#[test]
fn a_preferred_candidate_is_pinged_at_once_when_the_lease_changes_hands() {
    let mut fixture = preferred();
    fixture.register("d", "1.3.0");
    for seconds in [5, 5, 10, 20] {
        fixture.keep(seconds);
        let decision = fixture.step();
        assert_eq!(fixture.deliver_pings(&decision), ["c"]);
        fixture.ack("c");
    }
    fixture.keep(10);
    assert_eq!(pinged(&fixture.step()), Vec::<String>::new());
    let grant = fixture.grant_to("d");
    fixture.lease(grant);
    fixture.accept();
    let others = fixture.record().preferring(Some(id("c")), None);
    fixture.lease(others);
    assert_eq!(pinged(&fixture.step()), ["c"]);
}

/// (R7) A holder that cannot see a preference, because the server drops the field, is not left with one.
#[test]
fn a_preference_that_the_holder_cannot_see_is_withdrawn() {
    let mut fixture = preferred();
    fixture.change("b", |candidate| candidate.marked = false);
    let accepted = LeaseRecord {
        token: None,
        token_term: None,
        ..fixture.record()
    };
    fixture.lease(accepted);
    assert!(matches!(fixture.step().reason, Reason::AwaitYield { .. }));
    fixture.settings.preference_field = PreferenceField::Dropped;
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Withdraw);
    assert_eq!(
        lease_write(&decision).map(|write| write.record.preferred_holder.clone()),
        Some(None)
    );
}
