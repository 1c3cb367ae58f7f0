//! Which candidates the elector pings, and what counts as an ack (R15).

use std::time::Duration;

use elector_protocol::elector::{Action, Effect, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, Timestamp};

use crate::fixture::{ElectionFixture, id, lease_write, pinged};

#[test]
fn no_candidate_is_granted_before_its_ack() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.list("b", "1.2.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert_eq!(
        fixture.deliver_pings(&decision),
        ["a"],
        "the best is pinged first"
    );
    assert!(matches!(&fixture.step().reason, Reason::AwaitAck(names) if names == &[id("a")]));
    fixture.ack("a");
    assert!(matches!(&fixture.step().reason, Reason::Granted { to, .. } if to == &id("a")));
}

#[test]
fn the_best_is_pinged_first_then_two_then_all() {
    let mut fixture = ElectionFixture::new();
    fixture.list_five();
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a"]);
    fixture.pass(2.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["b", "c"]);
    fixture.ack("c");
    assert!(matches!(&fixture.step().reason, Reason::AwaitAck(names) if names == &[id("b")]));
    fixture.pass(2.0);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert!(
        matches!(&decision.reason, Reason::Granted { to, silent, .. }
        if to == &id("c") && silent == &[id("a"), id("b")]),
        "{decision:?}"
    );
}

#[test]
fn all_are_pinged_when_the_first_three_are_silent() {
    let mut fixture = ElectionFixture::new();
    fixture.list_five();
    fixture.lease(LeaseRecord::born(None));
    for expected in [vec!["a"], vec!["b", "c"], vec!["d", "e"]] {
        let decision = fixture.step();
        assert_eq!(fixture.deliver_pings(&decision), expected);
        fixture.pass(2.0);
    }
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "no candidate answers: a, b, c, d, e"
    );
}

#[test]
fn silent_candidates_are_pinged_again_when_all_are_silent() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    let first = fixture.election.candidates().next().unwrap().ping.unwrap();
    fixture.pass(2.0);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(28)))
    );
    fixture.pass(28.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a"]);
    assert_eq!(
        fixture.election.candidates().next().unwrap().ping,
        first.next()
    );
}

/// (R15) Whoever fills a namespace with candidates that never answer must not have them written at a steady pace.
#[test]
fn candidates_that_never_answer_are_pinged_ever_less_often_until_they_are_collected() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let mut pings = Vec::new();
    let mut collected = None;
    for second in 0..3600 {
        let decision = fixture.step();
        let collects = |effect: &Effect| matches!(effect, Effect::Collect { .. });
        if decision.effects.iter().any(collects) {
            collected = Some(second);
            break;
        }
        if fixture.deliver_pings(&decision) == ["a"] {
            pings.push(second);
        }
        fixture.pass(1.0);
    }
    assert_eq!(pings, [0, 30, 60, 120, 240, 480, 960]);
    assert_eq!(collected, Some(1800));
}

#[test]
fn the_former_holder_is_waited_for_by_name_when_it_is_the_only_one_pinged() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.list("b", "1.2.0");
    fixture.change("b", |candidate| candidate.renew = Some(Timestamp::MAX));
    fixture.pass(10.0);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let awaited = Reason::AwaitAck(vec![id("a")]);
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), &decision.reason),
        (Action::Ping, &awaited)
    );
    assert_eq!(fixture.deliver_pings(&decision), ["a"]);
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), decision.reason),
        (Action::Wait, awaited),
        "the reason is the same before and after the watch brings the ping"
    );
}

#[test]
fn a_ping_is_the_candidates_own_time_and_one_microsecond() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let renew = fixture.election.candidates().next().unwrap().renew.unwrap();
    let decision = fixture.step();
    assert!(
        matches!(&decision.effects[..], [Effect::Ping { ping, .. }] if Some(*ping) == renew.next())
    );
}

#[test]
fn an_ack_of_a_slow_clock_counts_and_is_settled_at_once() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    let slow = Timestamp::from_micros(7).unwrap();
    fixture.change("a", |candidate| candidate.renew = Some(slow));
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Grant);
    let settled = |effect: &Effect| matches!(effect, Effect::Ping { ping, .. } if *ping == slow);
    assert!(decision.effects.iter().any(settled), "{decision:?}");
    fixture.deliver_pings(&decision);
    assert_eq!(
        pinged(&fixture.step()),
        Vec::<String>::new(),
        "settled once"
    );
}

#[test]
fn an_ack_is_read_where_another_elector_cleared_the_ping() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    let wall = fixture.wall();
    fixture.change("a", |candidate| {
        (candidate.renew, candidate.ping) = (wall.next(), None);
    });
    fixture.pass(6.0);
    assert_eq!(
        fixture.step().action(),
        Action::Grant,
        "an ack of this round's ping does not go stale"
    );
}

#[test]
fn a_candidate_at_the_end_of_time_is_passed_by_until_it_writes() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.change("a", |candidate| candidate.renew = Some(Timestamp::MAX));
    fixture.pass(10.0);
    fixture.list("b", "1.2.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["b"]);
    fixture.ack("b");
    assert!(matches!(&fixture.step().reason, Reason::Granted { to, .. } if to == &id("b")));
}

#[test]
fn candidates_that_disagree_are_told_so_until_they_agree() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.register("b", "1.1.0");
    fixture.change("b", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.1.0", "example.com/mine").into();
    });
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "candidates of binary version 1.40.0 disagree on the strategy: \
         a wants OldestEmulationVersion, b wants example.com/mine"
    );
    assert!(decision.effects.is_empty());
    fixture.change("b", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.1.0", "OldestEmulationVersion").into();
    });
    assert_eq!(fixture.step().action(), Action::Create);
}

#[test]
fn candidates_without_a_valid_version_are_told_why() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "");
    assert_eq!(
        fixture.step().reason.to_string(),
        "no eligible candidate: a: spec.emulationVersion is missing, and the strategy needs it"
    );
    assert!(fixture.step().effects.is_empty());
}

#[test]
fn a_quiet_candidate_is_pinged_every_quarter_of_an_hour_and_collected_when_dead() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.3.0");
    let renew_until = |fixture: &mut ElectionFixture, seconds: u64| {
        let mut pinged = Vec::new();
        for _ in 0..seconds / 5 {
            fixture.pass(5.0);
            fixture.renew();
            let decision = fixture.step();
            for name in fixture.deliver_pings(&decision) {
                if name == "b" {
                    fixture.ack("b");
                }
                pinged.push(name);
            }
        }
        pinged
    };
    assert_eq!(renew_until(&mut fixture, 1795).len(), 2, "each once");
    let collected = |fixture: &ElectionFixture| {
        fixture
            .step()
            .effects
            .iter()
            .any(|e| matches!(e, Effect::Collect { name, .. } if name == &id("c")))
    };
    assert!(!collected(&fixture));
    renew_until(&mut fixture, 10);
    assert!(collected(&fixture));
}

/// Its DELETE was repeated at every step, which each renewal of its lease brings.
#[test]
fn a_dead_candidate_that_is_being_deleted_is_not_collected_again_and_stays_a_candidate() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.3.0");
    fixture.change("c", |candidate| candidate.deleting = true);
    for _ in 0..400 {
        fixture.pass(5.0);
        fixture.renew();
        let decision = fixture.step();
        for name in fixture.deliver_pings(&decision) {
            if name == "b" {
                fixture.ack("b");
            }
        }
        let collects = |effect: &Effect| matches!(effect, Effect::Collect { .. });
        assert!(!decision.effects.iter().any(collects), "{decision:?}");
    }
    // It comes back to life while its finalizer keeps it, and is the only one left.
    fixture.ack("c");
    fixture.election.handle_candidate_gone(&id("b"), None);
    fixture.pass(20.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.ack("c");
    let granted = lease_write(&fixture.step()).and_then(|write| write.record.holder.clone());
    assert_eq!(granted, Some(id("c")));
}
