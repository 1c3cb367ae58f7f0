//! Terms that their holders acquire themselves (R18): each legal move, and what lies next to it.

use elector_protocol::ResourceVersion;
use serde_json::{Value, json};

use super::histories::{
    Continued, assert_breach, breaches, candidate, event, gone, held, key, lease, messages,
    of_term, participants, verdict, wire, with,
};
use crate::{EventKind, HistoryEntry, LeaseChangeKind, RecordedEnd};

/// No candidate: a born record, which `a` acquires, and renews once.
pub(super) fn a_acquires() -> Vec<HistoryEntry> {
    vec![
        lease(0.1, 10, &json!({"holderIdentity": ""}), None),
        acquired(0.2, 11, "a", 1, 10),
        of_term(event(0.3, "a", EventKind::Leading), 1, 10),
        lease(3.3, 12, &held("a", 1, 15, 0.2, 3.3), Some((10, 1))),
    ]
}

/// The acquisition of a term on the revision of this version.
pub(super) fn acquired(
    at: f64,
    version: u64,
    holder: &str,
    term: i32,
    replaced: u64,
) -> HistoryEntry {
    let spec = held(holder, term, 15, at, at);
    signed(lease(at, version, &spec, Some((replaced, term))))
}

/// The same revision, whose token names the holder of the record.
pub(super) fn signed(entry: HistoryEntry) -> HistoryEntry {
    with(entry, |lease| {
        let holder = lease.spec.holder_identity.clone().unwrap();
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert("elector.dev/token-holder".to_owned(), holder);
    })
}

/// `a` is killed, and `b` acquires this number of seconds after its last renewal.
pub(super) fn followed(seconds: f64) -> Vec<HistoryEntry> {
    a_acquires().then([
        event(4.0, "a", EventKind::Killed),
        acquired(3.3 + seconds, 13, "b", 2, 12),
        of_term(event(3.4 + seconds, "b", EventKind::Leading), 2, 12),
    ])
}

/// `a` stops and releases.
fn released() -> Vec<HistoryEntry> {
    let spec = json!({
        "holderIdentity": "", "leaseTransitions": 1, "leaseDurationSeconds": 1,
        "acquireTime": wire(4.1), "renewTime": wire(4.1),
    });
    a_acquires().then([
        event(4.0, "a", EventKind::WorkStopped),
        lease(4.1, 13, &spec, None),
    ])
}

#[test]
fn a_new_record_is_acquired_at_once_and_needs_neither_candidate_nor_ack() {
    let verdict = verdict(&a_acquires());
    assert!(verdict.holds(), "{verdict}");
    let lease_verdict = &verdict.leases[&key()];
    assert_eq!(lease_verdict.unjudged, []);
    assert_eq!(
        lease_verdict.extent.changes[&LeaseChangeKind::AcquireUnheld],
        1
    );
    // It counts as accepted from the beginning.
    let [term] = &lease_verdict.terms[..] else {
        panic!("{:?}", lease_verdict.terms)
    };
    assert_eq!(term.accepted, Some(term.granted));
    assert_eq!((term.renewals, &term.end), (1, &RecordedEnd::Lasts));
}

/// R21: the term before its holder's lease is over, where both lives are of one instance, and the first is dead.
#[test]
fn a_term_is_rejoined_by_a_later_life_of_its_instance_alone() {
    let early = "S3: lease /work @13: acquired 1.000 s after a renewed";
    let (first, second) = (
        "00000000000000aa-0000000000000001",
        "00000000000000aa-0000000000000002",
    );
    for (life, breach) in [
        (second, None),
        (first, Some(early)),
        ("00000000000000ab-0000000000000002", Some(early)),
        ("", Some(early)),
    ] {
        let of_life = |entry: HistoryEntry, life: &str| {
            with(entry, |lease| {
                let annotations = lease.metadata.annotations.get_or_insert_default();
                annotations.insert("elector.dev/life".to_owned(), life.to_owned());
            })
        };
        let mut history = a_acquires();
        for index in [1, 3] {
            history[index] = of_life(history[index].clone(), first);
        }
        let killed = event(4.0, "a", EventKind::Killed);
        let rejoined = of_life(acquired(4.3, 13, "b", 2, 12), life);
        let history = history.then([killed, rejoined]);
        match breach {
            Some(breach) => assert_breach(&history, breach),
            None => {
                let lease = verdict(&history).leases[&key()].clone();
                let expected = (&[][..], &RecordedEnd::Died);
                assert_eq!((&lease.breaches[..], &lease.terms[0].end), expected);
                assert_eq!(lease.extent.changes[&LeaseChangeKind::Rejoin], 1);
            }
        }
    }
}

#[test]
fn an_expired_record_is_acquired_and_no_earlier() {
    assert_eq!(breaches(&followed(15.0)), [""; 0]);
    let terms = verdict(&followed(15.0)).leases[&key()].clone();
    assert_eq!(terms.extent.changes[&LeaseChangeKind::AcquireExpired], 1);
    assert_eq!(terms.terms[0].end, RecordedEnd::Replaced);
    assert_breach(
        &followed(14.9),
        "S3: lease /work @13: acquired 14.900 s after a renewed, which is before its 15 s are over (R4, R6, R18)",
    );
}

#[test]
fn a_released_record_is_acquired_at_once() {
    let next = released().then([
        acquired(4.2, 14, "b", 2, 13),
        of_term(event(4.2, "b", EventKind::Leading), 2, 13),
    ]);
    assert_eq!(breaches(&next), [""; 0]);
}

#[test]
fn a_lease_that_a_stranger_deleted_or_emptied_is_owed_to_its_holder() {
    let deleted = |at| {
        let last = lease(4.0, 13, &held("a", 1, 15, 0.2, 3.3), Some((10, 1)));
        let history = [
            gone(last),
            event(4.1, "a", EventKind::Lost),
            lease(4.2, 14, &json!({"holderIdentity": ""}), None),
            acquired(at, 15, "b", 1, 14),
        ];
        messages(&a_acquires().then(history), &participants())
    };
    let emptied = |at| {
        let blank = json!({"holderIdentity": "", "leaseTransitions": 1});
        let history = [
            lease(4.2, 14, &blank, Some((10, 1))),
            event(4.3, "a", EventKind::Lost),
            acquired(at, 15, "b", 2, 14),
        ];
        let mut participants = participants();
        participants.add_foreign(ResourceVersion(14));
        messages(&a_acquires().then(history), &participants)
    };
    for history in [&deleted as &dyn Fn(f64) -> Vec<String>, &emptied] {
        assert_eq!(history(18.3), [""; 0]);
        let early = history(17.0);
        assert!(
            early[0].contains("S3") && early[0].contains("acquired 13.700 s after a renewed"),
            "{early:?}"
        );
    }
}

#[test]
fn a_born_record_is_created_with_a_strategy_or_none_whoever_posts_it() {
    let ours = "OldestEmulationVersion";
    for strategy in [Value::Null, ours.into()] {
        let born = json!({"holderIdentity": "", "strategy": strategy});
        let mut spec = held("a", 1, 15, 0.2, 0.2);
        spec["strategy"] = strategy;
        let history = [
            candidate(0.0, 2, "a", 0.0),
            lease(0.1, 10, &born, None),
            signed(lease(0.2, 11, &spec, Some((10, 1)))),
        ];
        assert_eq!(breaches(&history), [""; 0]);
    }
    // With a holder it is no born record, not even the writer's own.
    let held = acquired(0.1, 10, "a", 0, 9);
    assert_breach(
        &[held],
        "S3: lease /work @10: created with the holder a (R2)",
    );
}

#[test]
fn each_field_of_an_acquisition_is_checked() {
    let spec = |field: &str, value: Value| {
        let mut spec = held("b", 2, 15, 18.4, 18.4);
        spec[field] = value;
        signed(lease(18.4, 13, &spec, Some((12, 2))))
    };
    let unsigned = |token| lease(18.4, 13, &held("b", 2, 15, 18.4, 18.4), Some(token));
    let token = |token| signed(unsigned(token));
    for (after, expected) in [
        (
            acquired(18.4, 13, "b", 3, 12),
            "S3: lease /work @13: acquired by b: leaseTransitions is 3 where the next term is 2 (R18)",
        ),
        (
            acquired(18.4, 13, "b", 1, 12),
            "S3: lease /work @13: b was written over a without a new term",
        ),
        (
            acquired(18.4, 13, "b", 0, 12),
            "S5: lease /work @13: the term fell from 1 to 0",
        ),
        (
            spec("acquireTime", wire(0.2).into()),
            "S3: lease /work @13: acquired by b: acquireTime and renewTime are not the same time (R18)",
        ),
        (
            signed(lease(18.4, 13, &held("b", 2, 15, 3.3, 3.3), Some((12, 2)))),
            "S3: lease /work @13: acquired by b: renewTime is that of the record before (R18)",
        ),
        (
            spec("leaseDurationSeconds", 0.into()),
            "S3: lease /work @13: acquired by b: leaseDurationSeconds is missing or zero (R18)",
        ),
        (
            spec("preferredHolder", "a".into()),
            "S3: lease /work @13: acquired by b: preferredHolder is still there (R18)",
        ),
        (
            spec("strategy", "OldestEmulationVersion".into()),
            "S3: lease /work @13: acquired by b: strategy is another than before (R18)",
        ),
        (
            token((11, 2)),
            "S5: lease /work @13: acquired by b: elector.dev/token does not name @12",
        ),
        (
            token((12, 1)),
            "S5: lease /work @13: acquired by b: elector.dev/token-term does not name the term 2 (R14, R18)",
        ),
        (
            unsigned((12, 2)),
            "S5: lease /work @13: acquired by b: elector.dev/token-holder does not name it (R14, R18)",
        ),
        (
            acquired(18.4, 13, "c", 2, 12),
            "S3: lease /work @13: acquired by c, which is no participant of ours (R18)",
        ),
        (
            lease(18.4, 13, &held("b", 2, 15, 18.4, 18.4), None),
            // Without a token it is a grant, and of those each has to be asked for.
            "S7: lease /work @13: granted to b, which is no candidate (R15)",
        ),
    ] {
        assert_breach(&a_acquires().then([after]), expected);
    }
}

#[test]
fn a_lease_whose_strategy_belongs_to_another_elector_is_not_acquired() {
    let history = |strategy: &str| {
        let mut spec = held("a", 1, 15, 0.2, 0.2);
        spec["strategy"] = strategy.into();
        [
            lease(
                0.1,
                10,
                &json!({"holderIdentity": "", "strategy": strategy}),
                None,
            ),
            signed(lease(0.2, 11, &spec, Some((10, 1)))),
        ]
    };
    assert_eq!(breaches(&history("OldestEmulationVersion")), [""; 0]);
    assert_breach(
        &history("example.com/newest"),
        "S3: lease /work @11: acquired by a: strategy example.com/newest belongs to another elector (R18)",
    );
}

#[test]
fn an_acquisition_keeps_what_elector_does_not_know() {
    let labelled = |label: &str, annotation: &str, field: i64| {
        let (label, annotation) = (label.to_owned(), annotation.to_owned());
        move |lease: &mut elector_api::Lease| {
            let metadata = &mut lease.metadata;
            metadata
                .labels
                .get_or_insert_default()
                .insert(label, "x".to_owned());
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert("example.com/note".to_owned(), annotation);
            lease
                .spec
                .other
                .insert("futureField".to_owned(), field.into());
        }
    };
    let history = |label, annotation, field| {
        let blank = lease(0.1, 10, &json!({"holderIdentity": ""}), None);
        [
            with(blank, labelled("web", "kept", 7)),
            // Its first own write brings the label of its group.
            with(
                with(
                    acquired(0.2, 11, "a", 1, 10),
                    labelled(label, annotation, field),
                ),
                labelled("elector.dev/group", annotation, field),
            ),
        ]
    };
    assert_eq!(breaches(&history("web", "kept", 7)), [""; 0]);
    for (history, expected) in [
        (
            history("other", "kept", 7),
            "a label that was there is gone",
        ),
        (
            history("web", "lost", 7),
            "metadata.annotations of other writers",
        ),
        (
            history("web", "kept", 8),
            "a field of the spec that Elector does not know",
        ),
    ] {
        assert_breach(&history, expected);
    }
}

#[test]
fn an_acquired_term_is_renewed_and_released_like_any_other() {
    let after = |entry| a_acquires().then([entry]);
    let token = Some((10, 1));
    let renewed = lease(6.6, 13, &held("a", 1, 15, 0.2, 6.6), token);
    assert_eq!(breaches(&after(renewed)), [""; 0]);
    assert_breach(
        &after(lease(6.6, 13, &held("a", 1, 10, 0.2, 6.6), token)),
        "S10: lease /work @13: the duration shrank from 15 s to 10 s within term 1",
    );
    assert_breach(
        &after(lease(6.6, 13, &held("a", 1, 15, 0.2, 6.6), Some((12, 1)))),
        "S5: lease /work @13: token 12 after 10",
    );
    assert_eq!(breaches(&released()), [""; 0]);
    // An elector that is back grants what has expired, and clears the token.
    let granted = vec![candidate(0.0, 2, "b", 0.0)].then(followed_by_a_grant());
    assert_eq!(breaches(&granted), [""; 0]);
}

/// `a` is killed, and an elector grants to `b`, which has acked.
fn followed_by_a_grant() -> Vec<HistoryEntry> {
    a_acquires().then([
        event(4.0, "a", EventKind::Killed),
        candidate(14.0, 13, "b", 14.0),
        lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None),
        lease(18.5, 15, &held("b", 2, 15, 18.4, 18.5), Some((14, 2))),
    ])
}
