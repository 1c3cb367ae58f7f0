//! Which signs of life count, how many are pinged at a time, and what remains when all are silent (R15).

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, ResourceVersion, Timestamp, Uid};

use crate::fixture::{ElectionFixture, id, lease_write, pinged};

/// A Lease that may be granted at once; no candidate has acked.
fn open() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lease(LeaseRecord::born(None));
    fixture
}

fn awaited(fixture: &ElectionFixture) -> Vec<String> {
    match fixture.step().reason {
        Reason::AwaitAck(names) => names.iter().map(ToString::to_string).collect(),
        reason => panic!("no ack is awaited: {reason}"),
    }
}

fn unmark(fixture: &mut ElectionFixture, name: &str) {
    fixture.change(name, |candidate| candidate.marked = false);
}

/// (R15) The ack window is 2 s for marked candidates and 5 s for others.
#[test]
fn an_unmarked_candidate_has_longer_to_ack() {
    for (marked, window) in [(true, 2.0), (false, 5.0)] {
        let mut fixture = open();
        fixture.list("a", "1.1.0");
        fixture.change("a", |candidate| candidate.marked = marked);
        let decision = fixture.step();
        fixture.deliver_pings(&decision);
        fixture.pass(window - 0.001);
        assert_eq!(awaited(&fixture), ["a"], "marked: {marked}");
        fixture.pass(0.001);
        assert!(matches!(fixture.step().reason, Reason::NoAck(_)));
    }
}

/// (R15) The best, then the next two, then all: two that are silent are followed by two, whichever they are.
#[test]
fn one_that_is_still_waited_for_is_one_of_the_next_two() {
    let mut fixture = open();
    fixture.list_five();
    unmark(&mut fixture, "b");
    for expected in [vec!["a"], vec!["b", "c"], vec!["d"]] {
        let decision = fixture.step();
        assert_eq!(fixture.deliver_pings(&decision), expected);
        fixture.pass(2.0);
    }
    // `b` has 5 s, and `a`, `c` and `d` are silent: now all are pinged.
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["e"]);
}

/// (R15) After three none is left out.
#[test]
fn after_three_that_are_silent_all_are_pinged_at_once() {
    let mut fixture = open();
    fixture.list_five();
    fixture.list("f", "1.6.0");
    fixture.list("g", "1.7.0");
    for expected in [vec!["a"], vec!["b", "c"], vec!["d", "e", "f", "g"]] {
        let decision = fixture.step();
        assert_eq!(fixture.deliver_pings(&decision), expected);
        fixture.pass(2.0);
    }
}

/// (R15) An open ping is a level, whichever elector wrote it: it is not repeated, and it is waited for.
#[test]
fn a_ping_of_another_elector_is_waited_for_and_not_repeated() {
    let mut fixture = open();
    let mut candidate = fixture.mk_candidate("a", "1.1.0");
    candidate.ping = candidate.next_ping();
    fixture
        .election
        .handle_candidate(fixture.now, candidate, NewsSource::List);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(awaited(&fixture), ["a"]);
    // Another revision of the object does not start the window anew.
    fixture.pass(1.0);
    unmark(&mut fixture, "a");
    fixture.change("a", |candidate| candidate.marked = true);
    fixture.pass(1.0);
    assert!(matches!(fixture.step().reason, Reason::NoAck(_)));
}

/// (R15) A ping that another elector took back was not acked: it is sent again.
#[test]
fn a_ping_that_was_taken_back_is_sent_anew() {
    let mut fixture = open();
    fixture.list("a", "1.1.0");
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.change("a", |candidate| candidate.ping = None);
    fixture.pass(3.0);
    assert_eq!(pinged(&fixture.step()), ["a"]);
}

/// (R15) An ack below the open ping counts in its round, also where the ping is not settled yet.
#[test]
fn an_ack_below_the_ping_counts_for_the_whole_round() {
    let mut fixture = open();
    fixture.list("a", "1.1.0");
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.change("a", |candidate| candidate.renew = Timestamp::from_micros(7));
    fixture.pass(6.0);
    assert_eq!(fixture.step().action(), Action::Grant);
}

/// (R15) An ack comes in a revision *later* than the ping; one that shows both shows no order.
#[test]
fn a_revision_that_brings_ping_and_renewal_at_once_is_no_ack_of_it() {
    let mut fixture = open();
    fixture.list("a", "1.1.0");
    let renew = Timestamp::from_micros(7);
    fixture.change_by(NewsSource::OwnWrite, "a", |candidate| {
        candidate.renew = renew;
        candidate.ping = renew.and_then(Timestamp::next);
    });
    fixture.pass(5.0);
    assert!(matches!(fixture.step().reason, Reason::NoAck(_)));
}

/// (R15) Fresh counts while the lease is vacant, although a ping of another elector is open.
#[test]
fn a_fresh_candidate_is_elected_although_it_has_just_been_pinged() {
    let mut fixture = open();
    fixture.register("a", "1.1.0");
    fixture.change("a", |candidate| candidate.ping = candidate.next_ping());
    assert_eq!(fixture.step().action(), Action::Grant);
}

/// (R15) An ack of a ping of an earlier round is as old as that round.
#[test]
fn an_ack_of_an_earlier_round_does_not_count() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.2.0");
    fixture.register("b", "1.1.0");
    fixture.pass(4.0);
    fixture.change("b", |candidate| candidate.ping = candidate.next_ping());
    fixture.ack("b");
    fixture.pass(7.0);
    // Late since a second: the ack is 7 s old, and the ping is older than the round.
    assert_eq!(pinged(&fixture.step()), ["b", "a"]);
}

/// (R15) A candidate that a list or a reply shows for the first time has given no sign of life.
#[test]
fn only_a_creation_that_the_watch_delivers_is_a_sign_of_life() {
    for (news, alive) in [
        (NewsSource::Watch, true),
        (NewsSource::List, false),
        (NewsSource::OwnWrite, false),
    ] {
        let mut fixture = open();
        let candidate = fixture.mk_candidate("a", "1.1.0");
        fixture
            .election
            .handle_candidate(fixture.now, candidate, news);
        assert_eq!(fixture.step().action() == Action::Grant, alive, "{news:?}");
    }
}

/// (R15) After a gap a renewal may be as old as the gap.
#[test]
fn a_renewal_that_a_list_brings_is_no_ack() {
    for (news, alive) in [(NewsSource::Watch, true), (NewsSource::List, false)] {
        let mut fixture = open();
        fixture.list("a", "1.1.0");
        fixture.pass(10.0);
        let renew = Some(fixture.wall());
        fixture.change_by(news, "a", |candidate| candidate.renew = renew);
        assert_eq!(fixture.step().action() == Action::Grant, alive, "{news:?}");
    }
}

/// (R15) The acks of an object end with it: one of the same name that a list shows is another.
#[test]
fn an_object_created_anew_during_a_gap_has_not_acked() {
    let mut fixture = open();
    fixture.register("a", "1.1.0");
    fixture.change_by(NewsSource::List, "a", |candidate| {
        candidate.uid = Uid::new("another");
    });
    assert_eq!(pinged(&fixture.step()), ["a"]);
}

/// (R4, R15) The revision known, told again, takes nothing back; an older one counts only from a list.
#[test]
fn candidates_are_known_by_their_newest_revision() {
    let mut fixture = open();
    fixture.register("a", "1.1.0");
    let same = fixture.election.candidates().next().unwrap().clone();
    let mut older = same.clone();
    older.version = ResourceVersion(1);
    older.spec = CandidateSpec::parse("1.40.0", "1.0.0", "OldestEmulationVersion").into();
    for news in [NewsSource::List, NewsSource::Watch, NewsSource::OwnWrite] {
        fixture
            .election
            .handle_candidate(fixture.now, same.clone(), news);
    }
    for news in [NewsSource::Watch, NewsSource::OwnWrite] {
        fixture
            .election
            .handle_candidate(fixture.now, older.clone(), news);
    }
    let known = |fixture: &ElectionFixture| fixture.election.candidates().next().cloned();
    assert_eq!(known(&fixture), Some(same));
    assert_eq!(fixture.step().action(), Action::Grant, "it still is alive");

    let before = Some(ResourceVersion(1));
    fixture.election.handle_candidate_gone(&id("a"), before);
    assert!(known(&fixture).is_some(), "a deletion of long ago");

    // A store restored from a backup: what the list shows is what there is.
    fixture
        .election
        .handle_candidate(fixture.now, older.clone(), NewsSource::List);
    assert_eq!(known(&fixture), Some(older));
    assert_eq!(pinged(&fixture.step()), ["a"]);
}

/// (R15) The former holder is pinged again, since what it said before it let go is old, and then waited for if need be.
#[test]
fn a_former_holder_is_pinged_anew_and_waited_for_when_there_is_no_other() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.pass(6.0);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a"]);
    assert_eq!(awaited(&fixture), ["a"]);
    assert_eq!(
        fixture.step().wake_at(),
        Some(fixture.now.after(Duration::from_secs(2)))
    );
    fixture.pass(0.5);
    fixture.ack("a");
    assert_eq!(fixture.step().action(), Action::Grant);
}

/// (R15) Pings are repeated when *no candidate* has acked for 30 s, those of the candidates passed over (R5) included.
#[test]
fn the_pings_of_those_passed_over_are_repeated_too() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let grant = fixture.grant_to("a");
    fixture.lease(grant);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    fixture.pass(6.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a"]);
    fixture.pass(29.999);
    assert_eq!(pinged(&fixture.step()), Vec::<String>::new());
    fixture.pass(0.001);
    assert_eq!(pinged(&fixture.step()), ["a"]);
}

/// (R15) While one candidate still has time to ack, no ping is repeated.
#[test]
fn no_ping_is_repeated_while_an_ack_is_awaited() {
    let mut fixture = open();
    fixture.list("a", "1.1.0");
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.pass(30.0);
    fixture.list("b", "1.2.0");
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["b"]);
    assert_eq!(pinged(&fixture.step()), Vec::<String>::new());
    fixture.pass(2.0);
    assert_eq!(pinged(&fixture.step()), ["a"], "`b` was pinged 2 s ago");
}

/// (R15) A preference is no such need: a better candidate that is silent is not pinged again under a holder that
/// renews.
#[test]
fn no_ping_is_repeated_for_the_sake_of_a_preference() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.list("a", "1.1.0");
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a"]);
    for _ in 0..60 {
        fixture.keep(1);
        assert_eq!(pinged(&fixture.step()), Vec::<String>::new());
    }
}

/// (R15) One write is enough in a step, for the round of pings and for maintenance.
#[test]
fn a_candidate_is_pinged_once_in_a_step() {
    let mut fixture = open();
    fixture.list("a", "1.1.0");
    fixture.pass(901.0);
    assert_eq!(pinged(&fixture.step()), ["a"]);
}

/// (R15) The ack of the next leader goes stale before the lease may be granted: both moments wake the elector.
#[test]
fn the_elector_wakes_for_the_stale_ack_and_for_the_end_of_the_wait() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(12.0);
    fixture.ack("a");
    let decision = fixture.step();
    assert_eq!(lease_write(&decision), None);
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(3))),
        "the proof"
    );
}

/// (R16) Among equals the incumbent comes first, then the older object, then the name.
#[test]
fn equals_are_told_apart_by_incumbency_age_and_name() {
    let electee = |prepare: fn(&mut ElectionFixture)| {
        let mut fixture = ElectionFixture::new();
        for name in ["a", "b", "c"] {
            fixture.register(name, "1.2.0");
        }
        prepare(&mut fixture);
        for name in ["a", "b", "c"] {
            fixture.ack(name);
        }
        match fixture.step().reason {
            Reason::Granted { to, .. } => to.to_string(),
            reason => panic!("{reason}"),
        }
    };
    let by_name: fn(&mut ElectionFixture) = |fixture| fixture.lease(LeaseRecord::born(None));
    let by_age: fn(&mut ElectionFixture) = |fixture| {
        fixture.change("c", |candidate| candidate.created = Timestamp::MIN);
        fixture.lease(LeaseRecord::born(None));
    };
    let by_incumbency: fn(&mut ElectionFixture) = |fixture| {
        fixture.change("c", |candidate| candidate.created = Timestamp::MIN);
        fixture.lease(LeaseRecord {
            holder: Some(id("b")),
            duration_seconds: Some(15),
            renew_time: Some(fixture.wall()),
            ..LeaseRecord::default()
        });
        fixture.pass(15.0);
        fixture.now = fixture.now.after(Duration::from_secs(1));
    };
    assert_eq!(electee(by_name), "a");
    assert_eq!(electee(by_age), "c");
    assert_eq!(electee(by_incumbency), "b");
}

/// (R16) The lower emulation version, then the lower binary version.
#[test]
fn the_binary_version_decides_between_equal_emulation_versions() {
    let mut fixture = open();
    fixture.register("a", "1.2.0");
    fixture.register("b", "1.2.0");
    fixture.change("b", |candidate| {
        candidate.spec = CandidateSpec::parse("1.39.0", "1.2.0", "OldestEmulationVersion").into();
    });
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("b")));
}

/// (R16) 0.0.0 stands for no emulation version, which the built-in strategy cannot rank.
#[test]
fn an_emulation_version_of_zero_is_none() {
    let mut fixture = open();
    fixture.register("a", "0.0.0");
    fixture.register("b", "1.2.0");
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("b")));
}
