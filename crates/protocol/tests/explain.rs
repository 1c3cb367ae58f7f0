//! An elector's next action, judged from the objects alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::elector::{
    Action, Explanation, HoldBackCause, HoldBackNotice, Objects, Settings, assign_groups,
};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, LeaseKey, LeaseRecord, LeaseSnapshot, Membership,
    ResourceVersion, StrategyName, Timestamp, Uid,
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
        overrides: elector_protocol::OperatorOverrides::default(),
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

fn born(age: i64) -> Option<(LeaseSnapshot, Timestamp)> {
    Some((mk_lease(LeaseRecord::born(None)), at(-age)))
}

/// A missing Lease by the grant that follows its creation, an open ping as old as it says, a live holder as its renewal,
/// and an unheld record as its creation.
#[test]
fn the_next_action_follows_from_the_ages_of_the_objects() {
    let a = |ping, renew| candidate("a", "1.1.0", ping, renew);
    let b = |renew| candidate("b", "1.2.0", None, renew);
    let (silent, both) = (|| vec![a(None, -100)], || vec![a(None, -100), b(-1)]);
    let (acked, answering) = (vec![b(-1), a(None, -1)], vec![a(Some(-3), -100), b(-1)]);
    let quiet = vec![a(None, -100), b(-100)];
    let pinged = |renew| vec![a(Some(-8), renew), b(-100)];
    for (lease, candidates, action, holder, ping) in [
        (None, acked, Action::Grant, Some("a"), None),
        (None, quiet, Action::Ping, None, Some("a")),
        (None, vec![a(Some(-1), -100)], Action::Wait, None, None),
        (None, answering, Action::Grant, Some("b"), None),
        (held("a", -3), both(), Action::None, Some("a"), None),
        // The late holder is pinged as well, and not waited for.
        (held("a", -12), both(), Action::Ping, Some("a"), Some("a")),
        (held("a", -15), both(), Action::Grant, Some("b"), Some("a")),
        (held("a", -20), silent(), Action::Ping, Some("a"), Some("a")),
        // An ack of this round counts for longer than one without a ping.
        (held("b", -20), pinged(-7), Action::Grant, Some("a"), None),
        (held("b", -20), pinged(-8), Action::Grant, Some("a"), None),
        (born(14), vec![a(None, -1)], Action::Wait, None, None),
        (born(15), vec![a(None, -1)], Action::Grant, Some("a"), None),
    ] {
        let explained = explain(lease, candidates);
        let reason = &explained.reason;
        let expected = (action, holder.map(id));
        assert_eq!((explained.action, explained.holder), expected, "{reason}");
        let ping: Vec<_> = ping.map(id).into_iter().collect();
        assert_eq!(explained.ping, ping, "{reason}");
    }
}

#[test]
fn candidates_are_explained_in_their_order_and_with_what_they_lack() {
    let missing = "spec.emulationVersion is missing, and the strategy needs it";
    let of = |name, emulation| candidate(name, emulation, None, -1);
    let explained = explain(None, vec![of("b", "1.2.0"), of("c", ""), of("a", "1.1.0")]);
    let older = "has the older emulation version 1.1.0 (not 1.2.0)";
    let ranked = explained.candidates.iter();
    let ranked: Vec<_> = ranked
        .map(|it| (it.name.as_str(), it.eligible, it.rank, it.reason.as_str()))
        .collect();
    let worse = format!("a {older}");
    let expected = [
        ("a", true, Some(1), older),
        ("b", true, Some(2), worse.as_str()),
        ("c", false, None, missing),
    ];
    assert_eq!(ranked, expected);
}

#[test]
fn a_better_candidate_is_preferred_when_it_acks() {
    let better = candidate("a", "1.1.0", Some(-2), -1);
    let explained = explain(
        held("b", -3),
        vec![better, candidate("b", "1.2.0", None, -50)],
    );
    let expected = (Action::Prefer, Some(id("b")));
    assert_eq!((explained.action, explained.holder), expected);
    assert_eq!(explained.preferred_holder, Some(id("a")));
}

/// When a preference was written is in no object, so it has stood for as long as any elector would let it.
#[test]
fn a_preference_for_a_candidate_that_is_no_better_is_withdrawn() {
    let mut lease = held("b", -1);
    lease.as_mut().unwrap().0.record.preferred_holder = Some(id("a"));
    let both = ["a", "b"].map(|name| candidate(name, "1.2.0", None, -1));
    assert_eq!(explain(lease, both.into()).action, Action::Withdraw);
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
    let explained = explain(None, vec![foreign]);
    assert_eq!((explained.action, explained.holder), (Action::Create, None));
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
    let explain = |objects: &Objects| Explanation::of(objects, at(0), &Settings::default());
    let explained = explain(&objects);
    assert_eq!(
        explained.reason.to_string(),
        "b is better, but steady is not asked to make room for another 35.0s: the last hand-over was not accepted"
    );
    let wake = explained.wake.unwrap().to_string();
    assert_eq!(wake, "in 9.0s, when the holder is late");
    // One that was created since then waits for longer.
    objects.candidates[1].created = at(-10);
    assert_eq!(
        explain(&objects).reason.to_string(),
        "b is better, but steady is not asked to make room for another 575.0s: it appeared or changed after a hand-over \
         that was not accepted, and has never led"
    );
    objects.earlier.clear();
    assert_eq!(explain(&objects).action, Action::Prefer);
}

/// (R23) What an elector reported of its memory is held back for as long as it said, and no longer.
#[test]
fn what_an_elector_holds_back_is_explained_by_its_own_notice() {
    let notice = |candidate, because| HoldBackNotice {
        candidate: id(candidate),
        because,
        until: at(35),
        reported: at(-10),
    };
    let explain = |notices: Vec<HoldBackNotice>, now: i64, created: i64| {
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
        // It holds for every candidate, whichever it was reported for.
        let held_back = explain(vec![notice("other", cause)], 0, -60);
        let text = "b is better, but steady is not asked to make room for another 35.0s: ";
        let reason = held_back.reason.to_string();
        assert!(reason.starts_with(text), "{reason}");
        assert_eq!(held_back.action, Action::None);
        for now in [35, -11] {
            let explained = explain(vec![notice("b", cause)], now, -60);
            assert_eq!(explained.action, Action::Prefer, "{now}");
        }
    }
    let withdrawn = HoldBackCause::Withdrawn { times: 3 };
    for (now, action) in [(0, Action::None), (34, Action::None), (35, Action::Prefer)] {
        let explained = explain(vec![notice("b", withdrawn)], now, -60);
        assert_eq!(explained.action, action, "{now} {}", explained.reason);
    }
    // This one holds for the candidate that it was reported for, and for those that came later.
    let new = HoldBackCause::NewSinceFailure;
    for (candidate, created, action) in [
        ("b", -60, Action::None),
        ("other", -60, Action::Prefer),
        ("other", -10, Action::None),
    ] {
        let explained = explain(vec![notice(candidate, new)], 0, created);
        assert_eq!(explained.action, action, "{candidate} {created}");
    }
    // Of several the newest counts.
    let older = HoldBackNotice {
        until: at(5),
        reported: at(-20),
        ..notice("b", in_vain)
    };
    let explained = explain(vec![notice("b", many), older], 0, -60);
    let reason = explained.reason.to_string();
    assert!(reason.contains("another 35.0s: leaders have made room"));
    // One whose time is over hides none.
    let longer = HoldBackNotice {
        until: at(50),
        reported: at(-20),
        ..notice("b", in_vain)
    };
    let explained = explain(vec![notice("b", many), longer], 35, -60);
    let reason = explained.reason.to_string();
    assert!(reason.contains("another 15.0s: "), "{reason}");
}

/// (R16) A member has settled by the age of its oldest candidate, and takes one of two parts then.
#[test]
fn the_parts_of_a_group_are_assigned_by_the_ages_of_their_candidates() {
    let member = |part: &str, member: &str, created| {
        let mut candidate = candidate(&format!("{part}-{member}"), "1.1.0", None, -1);
        let mut spec = candidate.offer().unwrap().clone();
        spec.membership = Some(Arc::new(Membership {
            group: "web".into(),
            member: id(member),
        }));
        candidate.spec = Arc::new(Ok(spec));
        candidate.created = at(created);
        candidate
    };
    // The candidates that parts a and b are assigned, which m0 leads, where m1 has been there for so long.
    let assigned = |of_a, of_b| {
        let part = |name: &str, created| Objects {
            lease: held(&format!("{name}-m0"), -1),
            candidates: vec![member(name, "m0", -90), member(name, "m1", created)],
            ..Objects::default()
        };
        let labelled = Objects {
            group: Some("other".into()),
            ..part("c", of_a)
        };
        let alone = Objects {
            candidates: vec![candidate("d", "1.1.0", None, -1)],
            ..Objects::default()
        };
        let key = |name| LeaseKey::new("ns", name);
        let elections = [
            (key("a"), part("a", of_a)),
            (key("b"), part("b", of_b)),
            (LeaseKey::new("ns2", "a"), part("a", -90)),
            (key("c"), labelled),
            (key("d"), alone),
        ];
        let mut elections = BTreeMap::from(elections);
        let groups = assign_groups(&mut elections, at(0), &Settings::default());
        let names: Vec<_> = groups
            .keys()
            .map(|(space, name)| [&**space, name])
            .collect();
        assert_eq!(names, [["ns", "other"], ["ns", "web"], ["ns2", "web"]]);
        let members = groups[&("ns".into(), "web".into())].members();
        let members: Vec<_> = members.map(|(name, ..)| name.to_string()).collect();
        assert_eq!(members, ["m0", "m1"]);
        let of = |key| elections[&key].assigned.as_ref().map(ToString::to_string);
        let elsewhere = [of(LeaseKey::new("ns2", "a")), of(key("c")), of(key("d"))];
        assert_eq!(elsewhere, [Some("a-m0".to_owned()), None, None]);
        [of(key("a")).unwrap(), of(key("b")).unwrap()]
    };
    assert_eq!(assigned(-29, -29), ["a-m0", "b-m0"]);
    for (of_a, of_b) in [(-30, -29), (-29, -30)] {
        assert_eq!(assigned(of_a, of_b), ["a-m1", "b-m0"]);
    }
}
