//! An elector's next action, judged from the objects alone.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::time::Duration;

use elector_protocol::elector::{
    Action, Explanation, HoldBackCause, HoldBackNotice, Objects, Settings,
};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, LeaseRecord, LeaseSnapshot, ResourceVersion,
    StrategyName, Timestamp, Uid,
};

const SECOND: i64 = 1_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000 * SECOND + seconds * SECOND).unwrap()
}

fn candidate(name: &str, emulation: &str, ping: Option<i64>, renew: i64) -> CandidateRecord {
    CandidateRecord {
        ping: ping.map(at),
        renew: Some(at(renew)),
        created: at(-60),
        name: id(name),
        uid: Uid::new(name),
        version: ResourceVersion(1),
        marked: true,
        announced: None,
        deleting: false,
        spec: CandidateSpec::parse("1.40.0", emulation, StrategyName::OLDEST_EMULATION_VERSION)
            .into(),
    }
}

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn held(holder: &str, renewed: i64) -> Option<(LeaseSnapshot, Timestamp)> {
    let record = LeaseRecord {
        holder: Some(id(holder)),
        duration_seconds: Some(15),
        acquire_time: Some(at(-60)),
        renew_time: Some(at(renewed)),
        ..LeaseRecord::default()
    };
    Some((mk_lease(record), at(-60)))
}

fn mk_lease(record: LeaseRecord) -> LeaseSnapshot {
    LeaseSnapshot {
        uid: Uid::new("1"),
        version: ResourceVersion(7),
        record,
        word: elector_protocol::OperatorWord::default(),
    }
}

fn explain(
    lease: Option<(LeaseSnapshot, Timestamp)>,
    candidates: Vec<CandidateRecord>,
) -> Explanation {
    let objects = Objects {
        lease,
        candidates,
        ..Objects::default()
    };
    Explanation::of(&objects, at(0), &Settings::default())
}

#[test]
fn a_missing_lease_is_explained_by_the_grant_that_follows_its_creation() {
    let told = explain(
        None,
        vec![
            candidate("b", "1.2.0", None, -1),
            candidate("a", "1.1.0", None, -1),
        ],
    );
    assert_eq!((told.action, told.holder), (Action::Grant, Some(id("a"))));
    let ranks: Vec<_> = told
        .candidates
        .iter()
        .map(|c| (c.name.as_str(), c.rank))
        .collect();
    assert_eq!(ranks, [("a", Some(1)), ("b", Some(2))]);
    assert_eq!(
        told.candidates[0].reason,
        "has the older emulation version 1.1.0 (not 1.2.0)"
    );
    assert_eq!(
        told.candidates[1].reason,
        "a has the older emulation version 1.1.0 (not 1.2.0)"
    );
}

#[test]
fn candidates_that_have_not_acked_lately_are_pinged() {
    let told = explain(
        None,
        vec![
            candidate("a", "1.1.0", None, -100),
            candidate("b", "1.2.0", None, -100),
        ],
    );
    assert_eq!(
        (told.action, told.holder, told.ping),
        (Action::Ping, None, vec![id("a")])
    );
}

#[test]
fn an_open_ping_is_as_old_as_it_says() {
    let told = explain(None, vec![candidate("a", "1.1.0", Some(-1), -100)]);
    assert_eq!(
        (told.action, told.reason.to_string()),
        (Action::Wait, "waiting for the ack of a".to_owned())
    );
    let told = explain(
        None,
        vec![
            candidate("a", "1.1.0", Some(-3), -100),
            candidate("b", "1.2.0", None, -1),
        ],
    );
    assert_eq!((told.action, told.holder), (Action::Grant, Some(id("b"))));
}

#[test]
fn a_live_holder_is_as_old_as_its_renewal() {
    let two = || {
        vec![
            candidate("a", "1.1.0", None, -100),
            candidate("b", "1.2.0", None, -1),
        ]
    };
    assert_eq!(explain(held("a", -3), two()).action, Action::None);
    let late = explain(held("a", -12), two());
    assert_eq!(
        late.reason.to_string(),
        "a is late with its renewal; b is next"
    );
    // The late holder is pinged as well, and not waited for.
    assert_eq!((late.action, late.ping), (Action::Ping, vec![id("a")]));
    let expired = explain(held("a", -15), two());
    assert_eq!(
        (expired.action, expired.holder),
        (Action::Grant, Some(id("b")))
    );
}

#[test]
fn a_ping_of_an_expired_holder_is_explained_with_its_name() {
    let told = explain(held("a", -20), vec![candidate("a", "1.1.0", None, -100)]);
    assert_eq!((told.action, told.ping), (Action::Ping, vec![id("a")]));
    assert_eq!(told.reason.to_string(), "waiting for the ack of a");
}

#[test]
fn a_better_candidate_is_preferred_when_it_acks() {
    let told = explain(
        held("b", -3),
        vec![
            candidate("a", "1.1.0", Some(-2), -1),
            candidate("b", "1.2.0", None, -50),
        ],
    );
    assert_eq!(
        (told.action, told.holder, told.preferred_holder),
        (Action::Prefer, Some(id("b")), Some(id("a")))
    );
}

#[test]
fn an_unheld_record_is_as_old_as_its_creation() {
    let born = |age: i64| Some((mk_lease(LeaseRecord::born(None)), at(-age)));
    let one = || vec![candidate("a", "1.1.0", None, -1)];
    assert_eq!(explain(born(14), one()).action, Action::Wait);
    assert_eq!(explain(born(15), one()).action, Action::Grant);
}

#[test]
fn a_candidate_that_cannot_be_elected_is_told_why() {
    let told = explain(None, vec![candidate("a", "", None, -1)]);
    assert_eq!(
        (
            told.action,
            told.candidates[0].eligible,
            told.candidates[0].rank
        ),
        (Action::None, false, None)
    );
    assert_eq!(
        told.candidates[0].reason,
        "spec.emulationVersion is missing, and the strategy needs it"
    );
}

#[test]
fn times_at_both_ends_of_the_calendar_are_no_trouble() {
    let mut ancient = candidate("a", "1.1.0", None, 0);
    ancient.renew = Some(Timestamp::MIN);
    let mut future = candidate("b", "1.2.0", None, 0);
    (future.renew, future.ping) = (Some(Timestamp::MAX), Some(Timestamp::MAX));
    let mut lease = held("a", 0);
    lease.as_mut().unwrap().0.record.renew_time = Some(Timestamp::MIN);
    assert_eq!(explain(lease, vec![ancient, future]).holder, Some(id("b")));
}

#[test]
fn a_candidate_that_is_given_twice_is_taken_in_its_newest_revision() {
    let mut newer = candidate("a", "1.1.0", None, -1);
    newer.version = ResourceVersion(2);
    let older = candidate("a", "", None, -1);
    for pair in [vec![newer.clone(), older.clone()], vec![older, newer]] {
        assert_eq!(explain(None, pair).holder, Some(id("a")));
    }
}

#[test]
fn a_missing_lease_of_a_foreign_strategy_is_created_unheld() {
    let mut foreign = candidate("a", "1.1.0", None, -1);
    foreign.spec = CandidateSpec::parse("1.40.0", "1.1.0", "example.com/mine").into();
    let told = explain(None, vec![foreign]);
    assert_eq!((told.action, told.holder), (Action::Create, None));
}

/// (R23) Where a hand-over in vain is among the revisions, the explanation says what it costs, and until when.
#[test]
fn earlier_revisions_tell_of_hand_overs_that_were_in_vain() {
    let steady = |renewed| held("steady", renewed).unwrap().0.record;
    let preferring = steady(-31).preferring(Some(id("a")), None);
    let handed_over = preferring.granted(id("a"), Duration::from_secs(5), at(-30));
    let granted = handed_over.granted(id("steady"), Duration::from_secs(5), at(-25));
    let accepted = LeaseRecord {
        duration_seconds: Some(15),
        renew_time: Some(at(-1)),
        ..granted.clone()
    };
    let revision = |(version, record)| LeaseSnapshot {
        version: ResourceVersion(version),
        ..mk_lease(record)
    };
    let mut objects = Objects {
        lease: Some((revision((9, accepted)), at(-60))),
        // They may come in any order.
        earlier: [
            (8, granted),
            (4, steady(-40)),
            (5, preferring),
            (6, handed_over),
        ]
        .map(revision)
        .into(),
        candidates: vec![
            candidate("steady", "1.2.0", None, -1),
            candidate("b", "1.1.0", None, -1),
        ],
        ..Objects::default()
    };
    let told = Explanation::of(&objects, at(0), &Settings::default());
    assert_eq!(
        told.reason.to_string(),
        "b is better, but steady is not asked to make room for another 35.0s: the last hand-over was not accepted"
    );
    assert_eq!(
        told.wake.unwrap().to_string(),
        "in 9.0s, when the holder is late"
    );
    // One that was created since then waits for longer.
    objects.candidates[1].created = at(-10);
    let told = Explanation::of(&objects, at(0), &Settings::default());
    assert_eq!(
        told.reason.to_string(),
        "b is better, but steady is not asked to make room for another 575.0s: it appeared or changed after a hand-over \
         that was not accepted, and has never led"
    );
    objects.earlier.clear();
    let told = Explanation::of(&objects, at(0), &Settings::default());
    assert_eq!(told.action, Action::Prefer);
}

/// (R23) What an elector told of its memory is held back for as long as it said, and no longer.
#[test]
fn what_an_elector_holds_back_is_explained_by_its_own_notice() {
    let notice = |candidate, because| HoldBackNotice {
        candidate: id(candidate),
        because,
        until: at(35),
        told: at(-10),
    };
    let told = |notices: Vec<HoldBackNotice>, now: i64, created: i64| {
        let mut better = candidate("b", "1.1.0", None, now - 1);
        better.created = at(created);
        let objects = Objects {
            lease: held("steady", now - 1),
            candidates: vec![candidate("steady", "1.2.0", None, now - 1), better],
            notices,
            ..Objects::default()
        };
        Explanation::of(&objects, at(now), &Settings::default())
    };
    let many = HoldBackCause::Preemptions {
        count: 6,
        within: Duration::from_secs(600),
    };
    let in_vain = HoldBackCause::FailedHandOver { failures: 3 };
    for cause in [in_vain, many] {
        // It holds for every candidate, whichever it was told of.
        let held_back = told(vec![notice("other", cause)], 0, -60);
        let text = "b is better, but steady is not asked to make room for another 35.0s: ";
        let reason = held_back.reason.to_string();
        assert!(reason.starts_with(text), "{reason}");
        assert_eq!(
            (held_back.action, held_back.preferred_holder),
            (Action::None, None)
        );
        assert_eq!(
            told(vec![notice("b", cause)], 35, -60).action,
            Action::Prefer
        );
        assert_eq!(
            told(vec![notice("b", cause)], -11, -60).action,
            Action::Prefer
        );
    }
    let withdrawn = HoldBackCause::Withdrawn { times: 3 };
    for (now, action) in [(0, Action::None), (34, Action::None), (35, Action::Prefer)] {
        let explained = told(vec![notice("b", withdrawn)], now, -60);
        assert_eq!(explained.action, action, "{now} {}", explained.reason);
    }
    // This one holds for the candidate that it was told of, and for those that came later.
    let new = HoldBackCause::NewSinceFailure;
    for (candidate, created, action) in [
        ("b", -60, Action::None),
        ("other", -60, Action::Prefer),
        ("other", -9, Action::None),
    ] {
        let explained = told(vec![notice(candidate, new)], 0, created);
        assert_eq!(explained.action, action, "{candidate} {created}");
    }
    // Of several the newest counts.
    let older = HoldBackNotice {
        until: at(5),
        told: at(-20),
        ..notice("b", in_vain)
    };
    let explained = told(vec![notice("b", many), older], 0, -60);
    assert!(
        explained
            .reason
            .to_string()
            .contains("another 35.0s: leaders have made room")
    );
}
