//! L9: the moves for balance within a group.

use std::sync::Arc;

use elector_api::annotation;
use elector_protocol::{LeaseKey, ResourceVersion};
use serde_json::{Value, json};

use super::histories::{Continued, created, gone, second, wire, with};
use crate::{
    Beginning, ElectorSight, EntryContent, History, HistoryEntry, Invariant, Limits, Participants,
    RecordedWriter, Verdict, WriterRole, verify,
};

/// The name and identity of the candidate of a member for a part.
fn name(member: &str, part: &str) -> String {
    format!("{member}.{part}")
}

fn candidate(at: f64, version: u64, member: &str, part: &str) -> HistoryEntry {
    offering(at, version, (member, part), &json!({}), &json!({}))
}

fn offering(
    at: f64,
    version: u64,
    (member, part): (&str, &str),
    words: &Value,
    offer: &Value,
) -> HistoryEntry {
    let mut annotations = json!({"elector.dev/protocol": "1", "elector.dev/member": member});
    for (key, value) in words.as_object().unwrap() {
        annotations[key] = value.clone();
    }
    let name = name(member, part);
    let mut object = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
            "labels": {"elector.dev/group": "web"}, "annotations": annotations,
        },
        "spec": {"leaseName": part, "renewTime": wire(at)},
    });
    for (key, value) in offer.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    let candidate = serde_json::from_value(object).unwrap();
    HistoryEntry {
        at: second(at),
        content: EntryContent::Candidate(name, Arc::new(candidate)),
    }
}

/// A revision of a part: its holder in a term, accepted as it is, and the candidate that is preferred.
fn part(
    at: f64,
    version: u64,
    part: &str,
    (member, term): (&str, i32),
    preferred: Option<&str>,
) -> HistoryEntry {
    let mut metadata = json!({
        "name": part, "namespace": "ns", "uid": part, "resourceVersion": version.to_string(),
        "labels": {"elector.dev/group": "web"},
        "annotations": {"elector.dev/token": "1", "elector.dev/token-term": term.to_string()},
    });
    if let Some(member) = preferred {
        metadata["annotations"]["elector.dev/preferred-holder"] = name(member, part).into();
    }
    let object = json!({"metadata": metadata, "spec": {
        "holderIdentity": name(member, part), "leaseTransitions": term, "leaseDurationSeconds": 15,
        "acquireTime": wire(0.0), "renewTime": wire(at),
    }});
    let lease = serde_json::from_value(object).unwrap();
    HistoryEntry {
        at: second(at),
        content: EntryContent::Lease(part.to_owned(), Arc::new(lease)),
    }
}

/// Two members that stand for four parts, of which `a` has some.
fn group(of_a: usize) -> Vec<HistoryEntry> {
    let parts = ["p0", "p1", "p2", "p3"];
    let mut entries = Vec::new();
    for ((index, name), version) in parts.into_iter().enumerate().zip((10..).step_by(10)) {
        entries.push(candidate(0.0, version, "a", name));
        entries.push(candidate(0.0, version + 1, "b", name));
        let holder = if index < of_a { "a" } else { "b" };
        entries.push(part(1.0, version + 2, name, (holder, 1), None));
    }
    entries
}

fn judged(entries: Vec<HistoryEntry>, beginning: Beginning) -> Verdict {
    judged_with(entries, beginning, |_| {})
}

fn judged_with(
    entries: Vec<HistoryEntry>,
    beginning: Beginning,
    with: impl FnOnce(&mut Participants),
) -> Verdict {
    let history = History::from(entries).with_beginning(beginning);
    let mut participants = Participants::deduce(&history, Limits::default());
    with(&mut participants);
    verify(&history, &participants)
}

/// The messages of L9 about a history from its beginning.
fn needless_of(entries: Vec<HistoryEntry>) -> Vec<String> {
    needless(&judged(entries, Beginning::Empty))
}

/// The messages of L9.
fn needless(verdict: &Verdict) -> Vec<String> {
    let of_balance = |breach: &&crate::Breach| breach.invariant == Invariant::L9;
    let breaches = verdict.breaches().filter(of_balance);
    breaches.map(|breach| breach.message.clone()).collect()
}

fn unjudged(verdict: &Verdict, part: &str) -> Vec<String> {
    let lease = &verdict.leases[&LeaseKey::new("ns", part)];
    let of_balance = lease
        .unjudged
        .iter()
        .filter(|it| it.invariant == Invariant::L9);
    of_balance.map(|it| it.why.clone()).collect()
}

/// `p0` is to go from `a` to `b`, and goes.
fn p0_moves() -> [HistoryEntry; 2] {
    [
        part(5.0, 100, "p0", ("a", 1), Some("b")),
        part(5.2, 101, "p0", ("b", 2), None),
    ]
}

#[test]
fn a_move_is_needed_where_the_loads_differ_by_two() {
    let needed = judged(group(3).then(p0_moves()), Beginning::Empty);
    assert_eq!(needless(&needed), [""; 0]);
    let verdict = &needed.leases[&LeaseKey::new("ns", "p0")];
    assert_eq!(verdict.extent.group.as_deref(), Some("web"));

    let equal = judged(group(2).then(p0_moves()), Beginning::Empty);
    assert_eq!(
        needless(&equal),
        [
            "b.p0 is preferred for balance, although its member has 2 parts of group web and the holder's has 2"
        ]
    );
    let breaches = &equal.leases[&LeaseKey::new("ns", "p0")].breaches;
    assert!(breaches.len() > 1 && breaches.is_sorted_by_key(|breach| breach.at));
    assert_eq!(needless_of(group(1).then(p0_moves())).len(), 1);
    // `a` has the only part.
    let alone = group(1)[..3].to_vec().then(p0_moves());
    assert_eq!(needless_of(alone).len(), 1);
}

#[test]
fn a_part_that_is_about_to_move_counts_as_moved() {
    let second_move = part(7.0, 102, "p1", ("a", 1), Some("b"));
    let first = part(5.0, 100, "p0", ("a", 1), Some("b"));
    let entries = group(3).then([first, second_move]);
    assert_eq!(needless_of(entries).len(), 1);
}

#[test]
fn a_part_that_was_deleted_counts_for_nobody() {
    let deleted = gone(part(3.0, 99, "p1", ("a", 1), None));
    let entries = group(3).then([deleted]).then(p0_moves());
    assert_eq!(needless_of(entries).len(), 1);
}

#[test]
fn a_preference_that_stands_is_no_second_move() {
    let asked = part(5.0, 100, "p0", ("a", 1), Some("b"));
    let other_went_over = part(6.0, 101, "p1", ("b", 2), None);
    let renewed = part(9.0, 102, "p0", ("a", 1), Some("b"));
    let entries = [asked, other_went_over, renewed];
    assert_eq!(needless_of(group(3).then(entries)), [""; 0]);
}

#[test]
fn news_may_reach_an_elector_late_and_a_part_that_is_late_may_go_to_anybody() {
    // A second before, the part p2 was still with `a`.
    let p2_goes = |at| part(at, 99, "p2", ("b", 2), None);
    let at_once = group(3).then([p2_goes(4.5)]).then(p0_moves());
    assert_eq!(needless_of(at_once), [""; 0]);
    let long_ago = group(3).then([p2_goes(3.9)]).then(p0_moves());
    assert_eq!(needless_of(long_ago).len(), 1);

    // `a` has one part, and one that was last renewed ten seconds ago may be about to become its own.
    let late = [
        part(10.0, 97, "p1", ("a", 1), None),
        part(10.0, 98, "p2", ("b", 1), None),
        part(11.0, 99, "p1", ("a", 1), Some("b")),
    ];
    assert_eq!(needless_of(group(2).then(late.clone())), [""; 0]);
    let touched = HistoryEntry {
        at: second(9.0),
        ..part(1.0, 96, "p3", ("b", 1), None)
    };
    let entries = group(2).then([touched]).then(late.clone());
    assert_eq!(needless_of(entries), [""; 0]);
    // It is late by its own duration.
    let longer = |entry| with(entry, |lease| lease.spec.lease_duration_seconds = Some(16));
    let longer = group(2).into_iter().map(longer).collect::<Vec<_>>();
    assert_eq!(needless_of(longer.then(late.clone())).len(), 1);
    let renewed = [
        part(10.0, 95, "p3", ("b", 1), None),
        part(10.0, 96, "p0", ("a", 1), None),
    ];
    let all = group(2).then(renewed).then(late);
    assert_eq!(needless_of(all).len(), 1);
}

#[test]
fn what_a_strategy_or_an_operator_asks_for_is_no_move_for_balance() {
    for (member, words, offer, expected) in [
        ("b", json!({}), json!({}), 1),
        ("b", json!({}), json!({"emulationVersion": "0.9.0"}), 0),
        ("b", json!({}), json!({"binaryVersion": "0.9.0"}), 0),
        ("b", json!({}), json!({"strategy": "a/b"}), 0),
        ("b", json!({}), json!({"preferredStrategies": ["a/b"]}), 0),
        ("b", json!({annotation::PRIORITY: "3"}), json!({}), 0),
        ("a", json!({annotation::STAND_DOWN: "true"}), json!({}), 0),
    ] {
        let changed = offering(2.0, 90, (member, "p0"), &words, &offer);
        let entries = group(2).then([changed]).then(p0_moves());
        assert_eq!(needless_of(entries).len(), expected, "{words} {offer}");
    }
    let wishing = |entry: HistoryEntry, wished: &str| {
        with(entry, |lease| {
            let wish = format!("{wished} until {}", wire(600.0));
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::PREFER.to_owned(), wish);
        })
    };
    let before = || part(4.0, 99, "p0", ("a", 1), None);
    let asked = || part(5.0, 100, "p0", ("a", 1), Some("b"));
    for (entries, expected) in [
        ([before(), wishing(asked(), "b.p0")], 0),
        ([wishing(before(), "b.p0"), asked()], 0),
        ([before(), wishing(asked(), "c.p0")], 1),
    ] {
        assert_eq!(needless_of(group(2).then(entries)).len(), expected);
    }
    // It is asked for where a term goes on.
    let begun = part(5.0, 100, "p0", ("a", 2), Some("b"));
    assert_eq!(needless_of(group(2).then([begun])), [""; 0]);
}

#[test]
fn a_part_may_move_to_a_member_that_gives_another_away() {
    // `c` stands for p3 alone, and may get it once `b` has another part.
    let joins = |version| candidate(2.0, version, "c", "p3");
    let entries = group(2).then([joins(90)]).then(p0_moves());
    assert_eq!(needless_of(entries), [""; 0]);
    let entries = group(2).then([joins(90), gone(joins(91))]).then(p0_moves());
    assert_eq!(needless_of(entries).len(), 1);
    // Each of the three stands for other parts than the next.
    let leaves = gone(candidate(2.0, 91, "b", "p1"));
    let entries = group(2).then([joins(90), leaves]).then(p0_moves());
    assert_eq!(needless_of(entries), [""; 0]);
}

/// The same entry in another namespace.
fn elsewhere(mut entry: HistoryEntry) -> HistoryEntry {
    let metadata = match &mut entry.content {
        EntryContent::Lease(_, lease) => &mut Arc::make_mut(lease).metadata,
        EntryContent::Candidate(_, candidate) => &mut Arc::make_mut(candidate).metadata,
        content => unreachable!("{content}"),
    };
    metadata.namespace = Some("other".to_owned());
    entry
}

/// Two members have as many parts, and one is preferred to the other.
#[test]
fn a_preference_is_for_balance_within_one_group_and_one_life_of_a_lease() {
    let asked = || part(5.0, 100, "p0", ("a", 1), Some("b"));
    let with_uid =
        |entry, uid: Option<&str>| with(entry, |lease| lease.metadata.uid = uid.map(str::to_owned));
    let unreadable = with_uid(part(4.0, 99, "p0", ("a", 1), None), None);
    let of_member_b = json!({"elector.dev/member": "b"});
    let of_same_member = offering(2.0, 90, ("a", "p0"), &of_member_b, &json!({}));
    let elsewhere = group(4).into_iter().map(elsewhere).take(11).collect();
    for (entries, expected) in [
        (vec![asked()], 1),
        (vec![with_uid(asked(), Some("another"))], 0),
        (vec![unreadable, asked()], 0),
        (
            vec![of_same_member, part(3.0, 99, "p2", ("a", 2), None), asked()],
            0,
        ),
        (Vec::then(elsewhere, [asked()]), 1),
        (
            vec![
                part(4.3, 98, "p2", ("a", 2), None),
                part(4.6, 99, "p2", ("b", 3), None),
                asked(),
            ],
            0,
        ),
    ] {
        assert_eq!(needless_of(group(2).then(entries)).len(), expected);
    }
    let foreign = judged_with(group(2).then([asked()]), Beginning::Empty, |it| {
        it.add_foreign(ResourceVersion(100));
    });
    assert_eq!(needless(&foreign), [""; 0]);
}

/// `p0` moves to `b`, `b` takes two more, and `p0` is to go back at this second.
fn moves_back(at: f64) -> Vec<HistoryEntry> {
    back(at, p0_moves())
}

/// The same after other moves.
fn back(at: f64, moves: impl IntoIterator<Item = HistoryEntry>) -> Vec<HistoryEntry> {
    let mut entries = group(3).then(moves);
    for (version, name) in [(102, "p1"), (103, "p2"), (104, "p3")] {
        entries.push(part(at - 3.0, version, name, ("b", 2), None));
    }
    entries.push(part(at - 3.0, 105, "p0", ("b", 2), None));
    entries.push(part(at, 106, "p0", ("b", 2), Some("a")));
    entries
}

#[test]
fn a_part_rests_for_ten_minutes_after_a_move() {
    assert_eq!(
        needless_of(moves_back(500.0)),
        [
            "a.p0 is preferred for balance 494.8 s after this part was last moved for it, which is within 600s"
        ]
    );
    // The recorder may be a second late, and clocks may run a tenth faster.
    let with_drift = |at, drift| {
        let verdict = judged_with(moves_back(at), Beginning::Empty, |participants| {
            participants.limits.drift = drift;
        });
        needless(&verdict).len()
    };
    for (at, drift, expected) in [(604.1, 1.0, 1), (604.2, 1.0, 0), (560.0, 1.1, 0)] {
        assert_eq!(with_drift(at, drift), expected, "{at} {drift}");
    }
    // It is renewed by the holder that is asked to make room.
    let mut entries = moves_back(500.0);
    entries.insert(group(3).len(), part(4.5, 99, "p0", ("a", 1), Some("b")));
    assert_eq!(needless_of(entries).len(), 1);
}

/// Where the holder was no longer asked to make room when the part went over, it may go back where the loads say so.
#[test]
fn a_part_that_went_over_after_the_preference_was_withdrawn_was_not_moved() {
    let [_, went_over] = p0_moves();
    let asked = part(5.0, 99, "p0", ("a", 1), Some("b"));
    let withdrawn = part(5.1, 100, "p0", ("a", 1), None);
    let deleted = gone(withdrawn.clone());
    let to_another = part(5.1, 100, "p0", ("c", 2), None);
    let released = with(withdrawn.clone(), |lease| {
        lease.spec.holder_identity = Some(String::new());
    });
    for (meanwhile, expected) in [(withdrawn, 0), (deleted, 0), (to_another, 0), (released, 1)] {
        let entries = back(500.0, [asked.clone(), meanwhile, went_over.clone()]);
        assert_eq!(needless_of(entries).len(), expected);
    }
}

#[test]
fn an_elector_is_held_to_the_moves_that_it_saw() {
    let judged_by = |entries: Vec<HistoryEntry>, (at, version, rate), blind: &[(f64, f64)]| {
        let blind = blind
            .iter()
            .map(|(from, to)| (second(*from), second(*to)))
            .collect();
        let elector = RecordedWriter {
            role: WriterRole::Elector(ElectorSight {
                preemptions: None,
                answers: Vec::new(),
                blind,
            }),
            born: second(0.0),
            sent: second(at),
            rate,
            longest_lease: None,
        };
        let verdict = judged_with(entries, Beginning::Empty, |participants| {
            participants.add_writer(ResourceVersion(version), elector);
        });
        needless(&verdict).len()
    };
    for (rate, blind, expected) in [
        (1.0, &[][..], 1),
        (1.25, &[], 0),
        (1.0, &[(0.0, 4.9), (5.3, 6.0)], 1),
        (1.0, &[(0.0, 5.1)], 0),
        (1.0, &[(5.1, 6.0)], 0),
    ] {
        let judged = judged_by(moves_back(500.0), (500.0, 106, rate), blind);
        assert_eq!(judged, expected, "{rate} {blind:?}");
    }
    // A part that is late by the clock of the elector may go to anybody.
    for (rate, expected) in [(1.0, 1), (1.25, 0)] {
        let asked = [
            part(9.0, 97, "p1", ("a", 1), None),
            part(9.0, 98, "p2", ("b", 1), None),
            part(9.2, 99, "p1", ("a", 1), Some("b")),
        ];
        let judged = judged_by(group(2).then(asked), (9.2, 99, rate), &[]);
        assert_eq!(judged, expected, "{rate}");
    }
    // News are seen within two seconds, unless it was blind by then: so p2 may still be with `a`.
    for (blind, expected) in [
        (&[(2.0, 2.9)][..], 1),
        (&[(2.0, 3.0)], 0),
        (&[(2.0, 2.7), (2.6, 3.5)], 0),
    ] {
        let p2_goes = part(2.5, 99, "p2", ("b", 2), None);
        let entries = group(3).then([p2_goes]).then(p0_moves());
        assert_eq!(
            judged_by(entries, (5.0, 100, 1.0), blind),
            expected,
            "{blind:?}"
        );
    }
}

#[test]
fn what_a_recording_lacks_is_said() {
    // No candidate, and so no member.
    let mut entries = group(2).then(p0_moves());
    entries.retain(
        |entry| !matches!(&entry.content, EntryContent::Candidate(name, _) if name == "b.p0"),
    );
    let verdict = judged(entries, Beginning::Empty);
    assert_eq!(needless(&verdict), [""; 0]);
    let expected = ["the member of b.p0, whose LeaseCandidate was not recorded"];
    assert_eq!(unjudged(&verdict, "p0"), expected);
    // A part of the group.
    let mut entries = group(2).then(p0_moves());
    entries.retain(|entry| !matches!(&entry.content, EntryContent::Lease(name, _) if name == "p3"));
    let verdict = judged(entries, Beginning::Empty);
    assert_eq!(needless(&verdict), [""; 0]);
    let expected = ["the loads of group web: ns/p3 was not recorded"];
    assert_eq!(unjudged(&verdict, "p0"), expected);
    // The time before.
    let verdict = judged(group(3).then(p0_moves()), Beginning::Midway);
    assert_eq!(needless(&verdict), [""; 0]);
    assert_eq!(
        unjudged(&verdict, "p0"),
        [
            "whether this part was moved for balance within 600s before revision @100, of which the recording has not all"
        ]
    );
    assert_eq!(unjudged(&verdict, "p1"), [""; 0]);
}

#[test]
fn what_was_before_a_recording_counts_for_ten_minutes_and_not_for_what_is_younger() {
    let p0_created = |at| {
        group(3)
            .then(p0_moves())
            .into_iter()
            .map(move |it| created(it, at))
    };
    for (entries, expected) in [
        (p0_created(-1.0).collect(), 1),
        (p0_created(0.0).collect(), 0),
        (back(500.0, []), 1),
        (back(601.0, []), 0),
    ] {
        let verdict = judged(entries, Beginning::Midway);
        assert_eq!(unjudged(&verdict, "p0").len(), expected);
    }
    // A move in a gap is none that is known.
    for (at, expected) in [(500.0, 1), (605.2, 0)] {
        let mut history = History::from(moves_back(at));
        history.gap_before(ResourceVersion(101));
        let participants = Participants::deduce(&history, Limits::default());
        let verdict = verify(&history, &participants);
        assert_eq!(unjudged(&verdict, "p0").len(), expected);
        assert_eq!(needless(&verdict), [""; 0]);
    }
    // The load of a part that was not yet recorded is missing, unless there was none.
    for (beginning, at, expected) in [
        (Beginning::Midway, 5.0, 0),
        (Beginning::Midway, 6.0, 1),
        (Beginning::Empty, 5.0, 1),
    ] {
        let mut entries = group(2);
        entries.pop();
        let late = created(part(6.0, 103, "p3", ("b", 1), None), at);
        let verdict = judged(entries.then(p0_moves()).then([late]), beginning);
        assert_eq!(needless(&verdict).len(), expected, "{beginning:?} {at}");
    }
}
