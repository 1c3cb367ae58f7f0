//! Signs of life that count, and the order of the candidates that gave one (R15, R16).

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{LeaseRecord, ResourceVersion, Timestamp, Uid};

use crate::fixture::{ElectionChange, ElectionFixture, assert_reason, held, id, spec};

/// (R15) A creation that the watch delivers, or a change of renewTime in a revision later than a ping of this round.
#[test]
fn signs_of_life_that_count_and_those_that_do_not() {
    let histories: [(&str, Action, ElectionChange); 13] = [
        ("created", Action::Grant, |it| it.register("a", 1)),
        ("listed", Action::Ping, |it| it.list("a", 1)),
        ("shown by a reply", Action::Ping, |it| {
            it.register_by(NewsSource::OwnWrite, "a", 1);
        }),
        ("created anew during a gap", Action::Ping, |it| {
            it.register("a", 1);
            it.change_by(NewsSource::List, "a", |a| a.uid = Uid::new("another"));
        }),
        (
            "fresh, and pinged by another elector",
            Action::Grant,
            |it| {
                it.register("a", 1);
                it.change("a", |a| a.ping = a.next_ping());
            },
        ),
        ("a renewal without a ping", Action::Grant, |it| {
            it.list("a", 1);
            it.pass(10.0);
            it.ack("a");
        }),
        ("a renewal as old as a gap", Action::Ping, |it| {
            it.list("a", 1);
            it.pass(10.0);
            it.ack_by(NewsSource::List, "a");
        }),
        ("an ack of a slow clock, not settled", Action::Grant, |it| {
            it.list("a", 1);
            it.ping();
            it.change("a", |a| a.renew = Timestamp::from_micros(7));
            it.pass(6.0);
        }),
        ("another elector cleared its ping", Action::Grant, |it| {
            it.list("a", 1);
            it.ping();
            let wall = it.wall();
            it.change("a", |a| (a.renew, a.ping) = (wall.next(), None));
            it.pass(6.0);
        }),
        ("its ping was taken back", Action::Ping, |it| {
            it.list("a", 1);
            it.ping();
            it.change("a", |a| a.ping = None);
            it.pass(3.0);
        }),
        ("ping and renewal in one revision", Action::Wait, |it| {
            it.list("a", 1);
            let renew = Timestamp::from_micros(7);
            it.change_by(NewsSource::OwnWrite, "a", |a| {
                (a.renew, a.ping) = (renew, renew.and_then(Timestamp::next));
            });
            it.pass(5.0);
        }),
        ("listed with another elector's ping", Action::Wait, |it| {
            let mut a = it.mk_candidate("a", 1);
            a.ping = a.next_ping();
            it.election.handle_candidate(it.now, a, NewsSource::List);
        }),
        ("what it said as a holder", Action::Ping, |it| {
            it.register("a", 1);
            it.grants("a");
            it.accept();
            it.release();
        }),
    ];
    for (text, action, history) in histories {
        let mut fixture = ElectionFixture::open(&[]);
        history(&mut fixture);
        assert_eq!(fixture.action(), action, "{text}: {}", fixture.reason());
    }
}

/// (R15) An ack of a ping of an earlier round is as old as that round.
#[test]
fn an_ack_of_an_earlier_round_does_not_count() {
    let mut fixture = ElectionFixture::led(&[("a", 2), ("b", 1)]);
    fixture.pass(4.0);
    fixture.change("b", |candidate| candidate.ping = candidate.next_ping());
    fixture.ack("b");
    fixture.pass(7.0);
    // Late since a second: the ack is 7 s old, and the ping is older than the round.
    assert_eq!(fixture.pinged(), ["b", "a"]);
}

/// (R15) The ack window is 2 s for marked candidates and 5 s for others, whatever revisions come meanwhile.
#[test]
fn an_unmarked_candidate_has_longer_to_ack() {
    for (marked, window) in [(true, 2.0), (false, 5.0)] {
        let mut fixture = ElectionFixture::open(&[("a", 1)]);
        fixture.change("a", |candidate| candidate.marked = marked);
        fixture.ping();
        fixture.pass(window - 0.001);
        fixture.change("a", |candidate| candidate.announced = None);
        assert_reason!(fixture, Reason::AwaitAck(_));
        fixture.pass(0.001);
        assert_eq!(fixture.reason(), Reason::NoAck(vec![id("a")]));
    }
}

/// (R4, R15) The revision known, seen again, takes nothing back; an older one counts only from a list.
#[test]
fn candidates_are_known_by_their_newest_revision() {
    use NewsSource::{List, OwnWrite, Watch};
    let mut fixture = ElectionFixture::open(&[]);
    fixture.register("a", 1);
    let same = fixture.candidate("a");
    let mut older = same.clone();
    older.version = ResourceVersion(1);
    older.spec = spec("1.40.0", "1.0.0").into();
    for (news, candidate) in [
        (List, &same),
        (Watch, &same),
        (OwnWrite, &same),
        (Watch, &older),
        (OwnWrite, &older),
    ] {
        let now = fixture.now;
        fixture
            .election
            .handle_candidate(now, candidate.clone(), news);
    }
    let before = Some(ResourceVersion(1));
    fixture.election.handle_candidate_gone(&id("a"), before);
    assert_eq!(fixture.candidate("a"), same);
    assert_eq!(fixture.action(), Action::Grant, "it still is alive");

    // A store restored from a backup: what the list shows is what there is.
    fixture
        .election
        .handle_candidate(fixture.now, older.clone(), List);
    assert_eq!(fixture.candidate("a"), older);
    assert_eq!(fixture.pinged(), ["a"]);
}

/// (R16) The emulation version, the binary version, then the incumbent, the older object and the name.
#[test]
fn the_order_of_candidates_that_acked() {
    let changes: [(&str, &str, ElectionChange); 6] = [
        ("by name", "a", |_| {}),
        ("the older object", "c", |it| {
            it.change("c", |candidate| candidate.created = Timestamp::MIN);
        }),
        ("the incumbent, though younger", "b", |it| {
            it.change("c", |candidate| candidate.created = Timestamp::MIN);
            it.lease(held("b", Some(15)));
            it.pass(16.0);
        }),
        ("the lower binary version", "b", |it| {
            it.change_version("b", "1.39.0", "1.2.0");
        }),
        ("the lower emulation version before it", "c", |it| {
            it.change_version("b", "1.39.0", "1.2.0");
            it.change_version("c", "1.40.0", "1.1.0");
        }),
        ("no emulation version is not the lowest", "b", |it| {
            it.change_version("a", "1.40.0", "0.0.0");
        }),
    ];
    for (text, electee, change) in changes {
        let mut fixture = ElectionFixture::new();
        for name in ["a", "b", "c"] {
            fixture.register(name, 2);
        }
        fixture.lease(LeaseRecord::born(None));
        change(&mut fixture);
        for name in ["a", "b", "c"] {
            fixture.ack(name);
        }
        println!("{text}");
        fixture.grants(electee);
    }
}
