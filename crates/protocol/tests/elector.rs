//! The elector's step, scenario by scenario.

mod common;

use std::time::Duration;

use common::{World, id, lease_write, pinged};
use elector_protocol::elector::{Action, Effect, News, PreferenceField, Reason, Vacancy};
use elector_protocol::{CandidateSpec, LeaseRecord, ResourceVersion, Timestamp};

#[test]
fn a_new_deployment_starts_at_once_when_the_elector_has_been_up() {
    let mut world = World::new();
    world.register("b", "1.2.0");
    world.register("a", "1.1.0");
    let decision = world.step();
    assert_eq!(decision.action, Action::Create);
    assert!(
        matches!(&decision.effects[..], [Effect::Create(record)] if record.holder.is_none()
        && record.duration_seconds.is_none() && record.acquire_time.is_none() && record.renew_time.is_none())
    );

    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    let record = world.apply(&decision);
    assert_eq!(record.holder, Some(id("a")));
    assert_eq!((record.term.0, record.duration_seconds), (1, Some(5)));
    assert!(record.is_unaccepted_grant());
    assert_eq!(
        decision.reason.to_string(),
        "the lease is unheld and nobody can lead any more; a has the older emulation version 1.1.0 (not 1.2.0)"
    );
}

#[test]
fn a_fresh_elector_waits_for_the_longest_lease_before_it_trusts_an_absence() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    assert_eq!(world.step().action, Action::Create);
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    assert!(
        matches!(decision.reason, Reason::AwaitProof { remaining } if remaining == Duration::from_secs(15))
    );
    assert_eq!(
        decision.wake_at,
        Some(world.now.after(Duration::from_secs(5))),
        "the answer stays fresh for 5 s"
    );
    world.pass(14.9);
    let decision = world.step();
    assert_eq!(
        (decision.action, world.ask(&decision)),
        (Action::Ping, vec!["a".to_owned()])
    );
    world.answer("a");
    assert_eq!(lease_write(&world.step()), None);
    world.pass(0.1);
    assert_eq!(world.step().action, Action::Grant);
}

#[test]
fn the_grace_for_absent_leases_can_be_given_up() {
    let mut world = World::fresh();
    world.settings.timing.absent_lease_grace = Some(Duration::ZERO);
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    assert_eq!(world.step().action, Action::Grant);
}

#[test]
fn a_longer_lease_announced_by_a_candidate_prolongs_the_wait() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    world.change("a", |candidate| {
        candidate.announced = Some(Duration::from_secs(40));
    });
    world.lease(LeaseRecord::born(None));
    world.pass(39.0);
    assert!(matches!(world.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn a_blanked_lease_is_not_free() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    let record = world.record();
    world.lease(LeaseRecord {
        holder: None,
        ..record
    });
    assert!(
        matches!(world.step().reason, Reason::AwaitProof { remaining } if remaining == Duration::from_secs(15))
    );
    let record = world.record();
    world.lease(LeaseRecord {
        duration_seconds: Some(1),
        ..record
    });
    assert!(
        matches!(world.step().reason, Reason::AwaitProof { .. }),
        "the token shows that nobody released it"
    );
}

#[test]
fn a_born_record_that_was_held_once_proves_nothing_any_more() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    world.lease(LeaseRecord {
        holder: Some(id("stranger")),
        duration_seconds: Some(15),
        ..LeaseRecord::default()
    });
    world.lease(LeaseRecord::born(None));
    assert!(matches!(world.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn a_lease_found_by_a_list_proves_nothing() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    let version = world.next_version();
    let snapshot = elector_protocol::LeaseSnapshot {
        uid: elector_protocol::Uid::new("lease-1"),
        version,
        record: LeaseRecord::born(None),
    };
    world.election.handle_lease(world.now, snapshot, News::List);
    assert!(matches!(world.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn nobody_is_granted_who_has_not_answered() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.list("b", "1.2.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    assert_eq!(world.ask(&decision), ["a"], "the best is asked first");
    assert!(matches!(&world.step().reason, Reason::AwaitAnswer(names) if names == &[id("a")]));
    world.answer("a");
    assert!(matches!(&world.step().reason, Reason::Granted { to, .. } if to == &id("a")));
}

#[test]
fn the_best_is_asked_first_then_two_then_all() {
    let mut world = World::new();
    for (name, version) in [
        ("a", "1.1.0"),
        ("b", "1.2.0"),
        ("c", "1.3.0"),
        ("d", "1.4.0"),
        ("e", "1.5.0"),
    ] {
        world.list(name, version);
    }
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    assert_eq!(world.ask(&decision), ["a"]);
    world.pass(2.0);
    let decision = world.step();
    assert_eq!(world.ask(&decision), ["b", "c"]);
    world.answer("c");
    assert!(matches!(&world.step().reason, Reason::AwaitAnswer(names) if names == &[id("b")]));
    world.pass(2.0);
    let decision = world.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert!(
        matches!(&decision.reason, Reason::Granted { to, silent, .. }
        if to == &id("c") && silent == &[id("a"), id("b")]),
        "{decision:?}"
    );
}

#[test]
fn all_are_asked_when_the_first_three_are_silent() {
    let mut world = World::new();
    for (name, version) in [
        ("a", "1.1.0"),
        ("b", "1.2.0"),
        ("c", "1.3.0"),
        ("d", "1.4.0"),
        ("e", "1.5.0"),
    ] {
        world.list(name, version);
    }
    world.lease(LeaseRecord::born(None));
    for expected in [vec!["a"], vec!["b", "c"], vec!["d", "e"]] {
        let decision = world.step();
        assert_eq!(world.ask(&decision), expected);
        world.pass(2.0);
    }
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "no candidate answers: a, b, c, d, e"
    );
}

#[test]
fn silent_candidates_are_reminded_when_nobody_answers() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    world.ask(&decision);
    let first = world.election.candidates().next().unwrap().ping.unwrap();
    world.pass(2.0);
    let decision = world.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(
        decision.wake_at,
        Some(world.now.after(Duration::from_secs(28)))
    );
    world.pass(28.0);
    let decision = world.step();
    assert_eq!(world.ask(&decision), ["a"]);
    assert_eq!(
        world.election.candidates().next().unwrap().ping,
        first.next()
    );
}

#[test]
fn a_ping_is_the_candidates_own_time_and_one_microsecond() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let renew = world.election.candidates().next().unwrap().renew.unwrap();
    let decision = world.step();
    assert!(
        matches!(&decision.effects[..], [Effect::Ping { ping, .. }] if Some(*ping) == renew.next())
    );
}

#[test]
fn an_answer_of_a_slow_clock_counts_and_is_settled_at_once() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    world.ask(&decision);
    let slow = Timestamp::from_micros(7).unwrap();
    world.change("a", |candidate| candidate.renew = Some(slow));
    let decision = world.step();
    assert_eq!(decision.action, Action::Grant);
    let settled = |effect: &Effect| matches!(effect, Effect::Ping { ping, .. } if *ping == slow);
    assert!(decision.effects.iter().any(settled), "{decision:?}");
    world.ask(&decision);
    assert_eq!(pinged(&world.step()), Vec::<String>::new(), "settled once");
}

#[test]
fn an_answer_is_read_where_another_elector_cleared_the_ping() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    world.ask(&decision);
    let wall = world.wall();
    world.change("a", |candidate| {
        (candidate.renew, candidate.ping) = (wall.next(), None);
    });
    world.pass(6.0);
    assert_eq!(
        world.step().action,
        Action::Grant,
        "an answer to this round's question does not go stale"
    );
}

#[test]
fn a_candidate_at_the_end_of_time_is_passed_by_until_it_writes() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.change("a", |candidate| candidate.renew = Some(Timestamp::MAX));
    world.pass(10.0);
    world.list("b", "1.2.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    assert_eq!(world.ask(&decision), ["b"]);
    world.answer("b");
    assert!(matches!(&world.step().reason, Reason::Granted { to, .. } if to == &id("b")));
}

#[test]
fn standbys_are_asked_before_it_hurts_and_the_late_holder_is_not_waited_for() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.list("b", "1.2.0");
    let decision = world.step();
    assert_eq!(decision.action, Action::None);
    assert_eq!(
        decision.wake_at,
        Some(world.now.after(Duration::from_secs(10)))
    );
    world.pass(10.0);
    let decision = world.step();
    assert_eq!(world.ask(&decision), ["a", "b"]);
    world.answer("b");
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "a is late with its renewal; b is next"
    );
    assert_eq!(lease_write(&decision), None);
    assert_eq!(
        decision.wake_at,
        Some(world.now.after(Duration::from_secs(2))),
        "a's window ends first"
    );
    world.pass(5.0);
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "a has not renewed for 15s; b is the only one that answers; better ones do not answer: a"
    );
    assert_eq!(world.apply(&decision).term.0, 2);
}

#[test]
fn an_expired_holder_that_answers_is_granted_a_new_term() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.pass(10.0);
    let decision = world.step();
    world.ask(&decision);
    world.pass(0.1);
    world.answer("a");
    world.pass(5.0);
    let decision = world.step();
    let record = world.apply(&decision);
    assert_eq!(
        (record.holder, record.term.0, record.token),
        (Some(id("a")), 2, None)
    );
}

#[test]
fn a_renewal_restarts_the_stop_watch_and_a_label_does_not() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.pass(9.0);
    let record = world.record();
    world.lease(record);
    world.pass(1.0);
    assert!(matches!(world.step().reason, Reason::HolderLate { .. }));
    world.renew();
    assert!(matches!(world.step().reason, Reason::HolderIsBest(_)));
}

#[test]
fn a_released_lease_is_granted_at_once_but_not_to_the_one_that_let_go() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.register("b", "1.2.0");
    let released = world.record().released(world.wall());
    world.lease(released);
    let decision = world.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, vacancy: Vacancy::Released, .. } if to == &id("b")),
        "{decision:?}"
    );
}

#[test]
fn a_better_candidate_is_preferred_and_an_equal_one_is_not() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("a", "1.2.0");
    assert_eq!(world.step().reason, Reason::HolderIsBest(id("b")));
    world.register("c", "1.1.0");
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is asked to make room: c has the older emulation version 1.1.0 (not 1.2.0)"
    );
    let before = world.record();
    let after = world.apply(&decision);
    assert_eq!(
        after,
        before.preferring(Some(id("c")), after.strategy.clone())
    );
    assert!(matches!(world.step().reason, Reason::AwaitYield { .. }));
}

#[test]
fn a_preference_is_withdrawn_when_its_reason_vanishes() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    let decision = world.step();
    world.apply(&decision);
    let preferred = world.election.clone();

    world.election.handle_candidate_gone(&id("c"), None);
    assert_eq!(world.step().action, Action::Withdraw, "gone");

    world.election = preferred.clone();
    world.change("c", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.2.0", "OldestEmulationVersion");
    });
    assert_eq!(world.step().action, Action::Withdraw, "not better any more");

    world.election = preferred;
    world.pass(5.0);
    let decision = world.step();
    assert_eq!(
        world.ask(&decision),
        ["c"],
        "a preference must not outlive its candidate"
    );
    world.pass(2.0);
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "b need not make room any more: c does not answer"
    );
    assert_eq!(world.apply(&decision).preferred_holder, None);
    assert!(
        matches!(world.step().reason, Reason::BetterIsSilent { .. }),
        "and it is not preferred again"
    );
}

#[test]
fn a_holder_that_cannot_be_asked_is_left_in_peace() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.change("b", |candidate| candidate.marked = false);
    world.register("c", "1.1.0");
    world.settings.preference_field = PreferenceField::Dropped;
    let decision = world.step();
    assert!(
        matches!(decision.reason, Reason::HolderCannotYield { .. }) && decision.effects.is_empty()
    );
    world.settings.preference_field = PreferenceField::Kept;
    assert_eq!(world.step().action, Action::Prefer);
}

#[test]
fn a_live_holder_without_candidate_is_never_touched() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord {
        holder: Some(id("plain")),
        duration_seconds: Some(15),
        renew_time: Some(world.wall()),
        ..LeaseRecord::default()
    });
    let decision = world.step();
    assert_eq!(
        (decision.action, decision.effects.len()),
        (Action::Leave, 0)
    );
    world.pass(15.0);
    let decision = world.step();
    world.ask(&decision);
    world.answer("a");
    assert!(matches!(&world.step().reason, Reason::Granted { to, .. } if to == &id("a")));
}

#[test]
fn an_electee_that_never_accepts_is_passed_over() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.register("b", "1.2.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    assert_eq!(world.apply(&decision).holder, Some(id("a")));
    for name in ["a", "b"] {
        world.answer(name);
    }
    assert!(matches!(world.step().reason, Reason::AwaitAccept { .. }));
    world.pass(4.0);
    for name in ["a", "b"] {
        world.answer(name);
    }
    world.pass(1.0);
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "a has not accepted its grant within 5s; b is the best that answered"
    );
    world.apply(&decision);
    world.accept();
    world.answer("a");
    assert_eq!(
        world.step().reason,
        Reason::HolderIsBest(id("b")),
        "and not preferred either"
    );
    for _ in 0..6 {
        world.pass(9.0);
        world.renew();
    }
    world.pass(5.0);
    world.answer("a");
    assert_eq!(
        world.step().reason,
        Reason::HolderIsBest(id("b")),
        "for a minute"
    );
    world.pass(1.0);
    assert_eq!(world.step().action, Action::Prefer, "and no longer");
}

#[test]
fn a_sole_candidate_that_does_not_accept_gets_longer_windows() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let mut windows = Vec::new();
    for _ in 0..5 {
        world.pass(0.1);
        world.answer("a");
        let decision = world.step();
        let window = world.apply(&decision).duration_seconds.unwrap();
        windows.push(window);
        world.pass(f64::from(window));
    }
    assert_eq!(windows, [5, 10, 20, 40, 60]);
    world.answer("a");
    let decision = world.step();
    world.apply(&decision);
    world.accept();
    let released = world.record().released(world.wall());
    world.lease(released);
    world.pass(0.1);
    world.answer("a");
    let decision = world.step();
    assert_eq!(
        world.apply(&decision).duration_seconds,
        Some(5),
        "an accept ends it"
    );
}

#[test]
fn candidates_that_disagree_are_told_so_until_they_agree() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.register("b", "1.1.0");
    world.change("b", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.1.0", "example.com/mine");
    });
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "candidates of binary version 1.40.0 disagree on the strategy: \
         a wants OldestEmulationVersion, b wants example.com/mine"
    );
    assert!(decision.effects.is_empty());
    world.change("b", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.1.0", "OldestEmulationVersion");
    });
    assert_eq!(world.step().action, Action::Create);
}

#[test]
fn a_foreign_strategy_gets_an_unheld_lease_and_nothing_more() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.change("a", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "", "example.com/mine");
    });
    let decision = world.step();
    assert!(matches!(&decision.effects[..], [Effect::Create(record)]
        if record.strategy.as_ref().is_some_and(|s| s.as_str() == "example.com/mine")));
    world.lease(LeaseRecord::born(None));
    assert!(
        lease_write(&world.step()).is_some_and(|write| write.record.strategy.is_some()),
        "stamped"
    );
    let decision = world.step();
    world.apply(&decision);
    let decision = world.step();
    assert_eq!(
        (decision.action, decision.effects.len()),
        (Action::Leave, 0)
    );
}

#[test]
fn candidates_without_a_valid_version_are_told_why() {
    let mut world = World::new();
    world.register("a", "");
    assert_eq!(
        world.step().reason.to_string(),
        "no eligible candidate: a: spec.emulationVersion is missing, OldestEmulationVersion needs it"
    );
    assert!(world.step().effects.is_empty());
}

#[test]
fn a_lease_that_no_candidate_names_is_never_written() {
    let mut world = World::new();
    world.lease(LeaseRecord {
        holder: Some(id("x")),
        duration_seconds: Some(1),
        ..LeaseRecord::default()
    });
    world.pass(3600.0);
    let decision = world.step();
    assert_eq!(
        (decision.action, decision.effects.len(), decision.wake_at),
        (Action::Leave, 0, None)
    );
}

#[test]
fn a_quiet_candidate_is_asked_every_quarter_of_an_hour_and_collected_when_dead() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.3.0");
    let renew_until = |world: &mut World, seconds: u64| {
        let mut asked = Vec::new();
        for _ in 0..seconds / 5 {
            world.pass(5.0);
            world.renew();
            let decision = world.step();
            for name in world.ask(&decision) {
                if name == "b" {
                    world.answer("b");
                }
                asked.push(name);
            }
        }
        asked
    };
    assert_eq!(renew_until(&mut world, 1795).len(), 2, "each once");
    let collected = |world: &World| {
        world
            .step()
            .effects
            .iter()
            .any(|e| matches!(e, Effect::Collect { name, .. } if name == &id("c")))
    };
    assert!(!collected(&world));
    renew_until(&mut world, 10);
    assert!(collected(&world));
}

#[test]
fn a_list_below_a_version_already_seen_starts_the_election_anew() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    let mut old = world.election.lease().unwrap().clone();
    old.version = ResourceVersion(1);
    world
        .election
        .handle_lease(world.now, old.clone(), News::Event);
    assert!(
        world.election.lease().unwrap().version > ResourceVersion(1),
        "an old event is ignored"
    );
    world.election.handle_lease(world.now, old, News::List);
    assert_eq!(world.election.lease().unwrap().version, ResourceVersion(1));
    assert_eq!(world.election.candidates().count(), 0);
}

#[test]
fn a_created_lease_is_not_created_twice() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.election.handle_created(world.now);
    let decision = world.step();
    assert_eq!(decision.reason, Reason::AwaitCreated);
    world.pass(2.0);
    assert_eq!(
        world.step().action,
        Action::Create,
        "unless the watch does not bring it"
    );
}
