//! Which signs of life count, how many are asked at a time, and what remains when nobody answers (R15).

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, ResourceVersion, Timestamp, Uid};

use crate::world::{World, id, lease_write, pinged};

/// A Lease that may be granted at once; nobody has answered.
fn open() -> World {
    let mut world = World::new();
    world.lease(LeaseRecord::born(None));
    world
}

fn awaited(world: &World) -> Vec<String> {
    match world.step().reason {
        Reason::AwaitAck(names) => names.iter().map(ToString::to_string).collect(),
        reason => panic!("no answer is awaited: {reason}"),
    }
}

fn unmark(world: &mut World, name: &str) {
    world.change(name, |candidate| candidate.marked = false);
}

/// (R15) The ack window is 2 s for marked candidates and 5 s for others.
#[test]
fn an_unmarked_candidate_has_longer_to_ack() {
    for (marked, window) in [(true, 2.0), (false, 5.0)] {
        let mut world = open();
        world.list("a", "1.1.0");
        world.change("a", |candidate| candidate.marked = marked);
        let decision = world.step();
        world.deliver_pings(&decision);
        world.pass(window - 0.001);
        assert_eq!(awaited(&world), ["a"], "marked: {marked}");
        world.pass(0.001);
        assert!(matches!(world.step().reason, Reason::NoAck(_)));
    }
}

/// (R15) The best, then the next two, then all: two that are silent are followed by two, whoever they are.
#[test]
fn one_that_is_still_waited_for_is_one_of_the_next_two() {
    let mut world = open();
    world.list_five();
    unmark(&mut world, "b");
    for expected in [vec!["a"], vec!["b", "c"], vec!["d"]] {
        let decision = world.step();
        assert_eq!(world.deliver_pings(&decision), expected);
        world.pass(2.0);
    }
    // `b` has 5 s, and `a`, `c` and `d` are silent: now all are asked.
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["e"]);
}

/// (R15) After three nobody is left out.
#[test]
fn after_three_that_are_silent_all_are_pinged_at_once() {
    let mut world = open();
    world.list_five();
    world.list("f", "1.6.0");
    world.list("g", "1.7.0");
    for expected in [vec!["a"], vec!["b", "c"], vec!["d", "e", "f", "g"]] {
        let decision = world.step();
        assert_eq!(world.deliver_pings(&decision), expected);
        world.pass(2.0);
    }
}

/// (R15) A pending ping is a level, whoever wrote it: it is not repeated, and it is waited for.
#[test]
fn a_ping_of_another_elector_is_waited_for_and_not_repeated() {
    let mut world = open();
    let mut candidate = world.mk_candidate("a", "1.1.0");
    candidate.ping = candidate.next_ping();
    world
        .election
        .handle_candidate(world.now, candidate, NewsSource::List);
    let decision = world.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(awaited(&world), ["a"]);
    // Another revision of the object does not start the window anew.
    world.pass(1.0);
    unmark(&mut world, "a");
    world.change("a", |candidate| candidate.marked = true);
    world.pass(1.0);
    assert!(matches!(world.step().reason, Reason::NoAck(_)));
}

/// (R15) A question that another elector took back was not answered: it is asked again.
#[test]
fn a_ping_that_was_taken_back_is_sent_anew() {
    let mut world = open();
    world.list("a", "1.1.0");
    let decision = world.step();
    world.deliver_pings(&decision);
    world.change("a", |candidate| candidate.ping = None);
    world.pass(3.0);
    assert_eq!(pinged(&world.step()), ["a"]);
}

/// (R15) An answer below the pending ping counts in its round, also where the ping is not settled yet.
#[test]
fn an_ack_below_the_ping_counts_for_the_whole_round() {
    let mut world = open();
    world.list("a", "1.1.0");
    let decision = world.step();
    world.deliver_pings(&decision);
    world.change("a", |candidate| candidate.renew = Timestamp::from_micros(7));
    world.pass(6.0);
    assert_eq!(world.step().action(), Action::Grant);
}

/// (R15) An answer comes in a revision *later* than the question; one that shows both shows no order.
#[test]
fn a_revision_that_brings_ping_and_renewal_at_once_is_no_ack_of_it() {
    let mut world = open();
    world.list("a", "1.1.0");
    let renew = Timestamp::from_micros(7);
    world.change_by(NewsSource::OwnWrite, "a", |candidate| {
        candidate.renew = renew;
        candidate.ping = renew.and_then(Timestamp::next);
    });
    world.pass(5.0);
    assert!(matches!(world.step().reason, Reason::NoAck(_)));
}

/// (R15) Fresh counts while the lease is vacant, although a question of somebody else is open.
#[test]
fn a_fresh_candidate_is_elected_although_it_has_just_been_pinged() {
    let mut world = open();
    world.register("a", "1.1.0");
    world.change("a", |candidate| candidate.ping = candidate.next_ping());
    assert_eq!(world.step().action(), Action::Grant);
}

/// (R15) An answer to a question of an earlier round is as old as that round.
#[test]
fn an_ack_of_an_earlier_round_does_not_count() {
    let mut world = World::new();
    world.lead("a", "1.2.0");
    world.register("b", "1.1.0");
    world.pass(4.0);
    world.change("b", |candidate| candidate.ping = candidate.next_ping());
    world.ack("b");
    world.pass(7.0);
    // Late since a second: the answer is 7 s old, and the question is older than the round.
    assert_eq!(pinged(&world.step()), ["b", "a"]);
}

/// (R15) A candidate that a list or a reply shows for the first time has given no sign of life.
#[test]
fn only_a_creation_that_the_watch_delivers_is_a_sign_of_life() {
    for (news, alive) in [
        (NewsSource::Watch, true),
        (NewsSource::List, false),
        (NewsSource::OwnWrite, false),
    ] {
        let mut world = open();
        let candidate = world.mk_candidate("a", "1.1.0");
        world.election.handle_candidate(world.now, candidate, news);
        assert_eq!(world.step().action() == Action::Grant, alive, "{news:?}");
    }
}

/// (R15) After a gap a renewal may be as old as the gap.
#[test]
fn a_renewal_that_a_list_brings_is_no_ack() {
    for (news, alive) in [(NewsSource::Watch, true), (NewsSource::List, false)] {
        let mut world = open();
        world.list("a", "1.1.0");
        world.pass(10.0);
        let renew = Some(world.wall());
        world.change_by(news, "a", |candidate| candidate.renew = renew);
        assert_eq!(world.step().action() == Action::Grant, alive, "{news:?}");
    }
}

/// (R15) The answers of an object end with it: one of the same name that a list shows is another.
#[test]
fn an_object_created_anew_during_a_gap_has_not_acked() {
    let mut world = open();
    world.register("a", "1.1.0");
    world.change_by(NewsSource::List, "a", |candidate| {
        candidate.uid = Uid::new("another");
    });
    assert_eq!(pinged(&world.step()), ["a"]);
}

/// (R4, R15) The revision known, told again, takes nothing back; an older one counts only from a list.
#[test]
fn candidates_are_known_by_their_newest_revision() {
    let mut world = open();
    world.register("a", "1.1.0");
    let same = world.election.candidates().next().unwrap().clone();
    let mut older = same.clone();
    older.version = ResourceVersion(1);
    older.spec = CandidateSpec::parse("1.40.0", "1.0.0", "OldestEmulationVersion");
    for news in [NewsSource::List, NewsSource::Watch, NewsSource::OwnWrite] {
        world
            .election
            .handle_candidate(world.now, same.clone(), news);
    }
    for news in [NewsSource::Watch, NewsSource::OwnWrite] {
        world
            .election
            .handle_candidate(world.now, older.clone(), news);
    }
    let known = |world: &World| world.election.candidates().next().cloned();
    assert_eq!(known(&world), Some(same));
    assert_eq!(world.step().action(), Action::Grant, "it still is alive");

    let before = Some(ResourceVersion(1));
    world.election.handle_candidate_gone(&id("a"), before);
    assert!(known(&world).is_some(), "a deletion of long ago");

    // A store restored from a backup: what the list shows is what there is.
    world
        .election
        .handle_candidate(world.now, older.clone(), NewsSource::List);
    assert_eq!(known(&world), Some(older));
    assert_eq!(pinged(&world.step()), ["a"]);
}

/// (R15) The former holder is asked again, since what it said before it let go is old, and then waited for if need be.
#[test]
fn a_former_holder_is_pinged_anew_and_waited_for_when_there_is_no_other() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.pass(6.0);
    let released = world.record().released(world.wall());
    world.lease(released);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["a"]);
    assert_eq!(awaited(&world), ["a"]);
    assert_eq!(
        world.step().wake_at(),
        Some(world.now.after(Duration::from_secs(2)))
    );
    world.pass(0.5);
    world.ack("a");
    assert_eq!(world.step().action(), Action::Grant);
}

/// (R15) Pings are raised when *nobody* has answered for 30 s, those of the candidates passed over (R5) included.
#[test]
fn the_pings_of_those_passed_over_are_repeated_too() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let grant = world.grant_to("a");
    world.lease(grant);
    let released = world.record().released(world.wall());
    world.lease(released);
    world.pass(6.0);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["a"]);
    world.pass(29.999);
    assert_eq!(pinged(&world.step()), Vec::<String>::new());
    world.pass(0.001);
    assert_eq!(pinged(&world.step()), ["a"]);
}

/// (R15) While somebody still has time to answer, nobody is reminded.
#[test]
fn no_ping_is_repeated_while_an_ack_is_awaited() {
    let mut world = open();
    world.list("a", "1.1.0");
    let decision = world.step();
    world.deliver_pings(&decision);
    world.pass(30.0);
    world.list("b", "1.2.0");
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["b"]);
    assert_eq!(pinged(&world.step()), Vec::<String>::new());
    world.pass(2.0);
    assert_eq!(pinged(&world.step()), ["a"], "`b` was asked 2 s ago");
}

/// (R15) A preference is no such need: a better candidate that is silent is not reminded under a holder that renews.
#[test]
fn no_ping_is_repeated_for_the_sake_of_a_preference() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.list("a", "1.1.0");
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["a"]);
    for _ in 0..60 {
        world.keep(1);
        assert_eq!(pinged(&world.step()), Vec::<String>::new());
    }
}

/// (R15) One write is enough, whoever asks in this step: the poll, or the housekeeping.
#[test]
fn a_candidate_is_pinged_once_in_a_step() {
    let mut world = open();
    world.list("a", "1.1.0");
    world.pass(901.0);
    assert_eq!(pinged(&world.step()), ["a"]);
}

/// (R15) The answer of the next leader goes stale before the lease may be granted: both moments wake the elector.
#[test]
fn the_elector_wakes_for_the_stale_ack_and_for_the_end_of_the_wait() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    world.pass(12.0);
    world.ack("a");
    let decision = world.step();
    assert_eq!(lease_write(&decision), None);
    assert_eq!(
        decision.wake_at(),
        Some(world.now.after(Duration::from_secs(3))),
        "the proof"
    );
}

/// (R16) Among equals the incumbent comes first, then the older object, then the name.
#[test]
fn equals_are_told_apart_by_incumbency_age_and_name() {
    let electee = |prepare: fn(&mut World)| {
        let mut world = World::new();
        for name in ["a", "b", "c"] {
            world.register(name, "1.2.0");
        }
        prepare(&mut world);
        for name in ["a", "b", "c"] {
            world.ack(name);
        }
        match world.step().reason {
            Reason::Granted { to, .. } => to.to_string(),
            reason => panic!("{reason}"),
        }
    };
    let by_name: fn(&mut World) = |world| world.lease(LeaseRecord::born(None));
    let by_age: fn(&mut World) = |world| {
        world.change("c", |candidate| candidate.created = Timestamp::MIN);
        world.lease(LeaseRecord::born(None));
    };
    let by_incumbency: fn(&mut World) = |world| {
        world.change("c", |candidate| candidate.created = Timestamp::MIN);
        world.lease(LeaseRecord {
            holder: Some(id("b")),
            duration_seconds: Some(15),
            renew_time: Some(world.wall()),
            ..LeaseRecord::default()
        });
        world.pass(15.0);
        world.now = world.now.after(Duration::from_secs(1));
    };
    assert_eq!(electee(by_name), "a");
    assert_eq!(electee(by_age), "c");
    assert_eq!(electee(by_incumbency), "b");
}

/// (R16) The lower emulation version, then the lower binary version.
#[test]
fn the_binary_version_decides_between_equal_emulation_versions() {
    let mut world = open();
    world.register("a", "1.2.0");
    world.register("b", "1.2.0");
    world.change("b", |candidate| {
        candidate.spec = CandidateSpec::parse("1.39.0", "1.2.0", "OldestEmulationVersion");
    });
    let decision = world.step();
    assert_eq!(world.apply(&decision).holder, Some(id("b")));
}

/// (R16) 0.0.0 stands for no emulation version, which the built-in strategy cannot rank.
#[test]
fn an_emulation_version_of_zero_is_none() {
    let mut world = open();
    world.register("a", "0.0.0");
    world.register("b", "1.2.0");
    let decision = world.step();
    assert_eq!(world.apply(&decision).holder, Some(id("b")));
}
