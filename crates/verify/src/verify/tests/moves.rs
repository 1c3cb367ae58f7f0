//! Each change of the Lease that no rule allows is found, and those that one allows are not.

use elector_protocol::ResourceVersion;
use serde_json::json;

use super::histories::{
    Continued, a_crashes, a_leads, assert_breach, breaches, candidate, event, gone, held, lease,
    messages, second,
};
use crate::{EventKind, HistoryEntry};

#[test]
fn a_crash_and_a_hand_over_are_legal() {
    assert_eq!(breaches(&a_crashes()), [""; 0]);

    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["strategy"] = "OldestEmulationVersion".into();
    preferring["preferredHolder"] = "b".into();
    let mut granted = held("b", 2, 5, 4.1, 4.1);
    granted["strategy"] = "OldestEmulationVersion".into();
    let hand_over = a_leads().then([
        lease(4.0, 14, &preferring, Some((11, 1))),
        event(4.0, "a", EventKind::WorkStopped),
        lease(4.1, 15, &granted, None),
        lease(4.2, 16, &held("b", 2, 15, 4.1, 4.2), Some((15, 2))),
        event(4.2, "b", EventKind::Leading),
    ]);
    assert_eq!(breaches(&hand_over), [""; 0]);
}

#[test]
fn a_live_record_must_not_be_granted() {
    let grant = |at: f64| {
        a_leads().then([
            candidate(at, 13, "b", at),
            lease(at, 14, &held("b", 2, 5, at, at), None),
        ])
    };
    assert_breach(&grant(17.0), "granted 13.7");
    assert_eq!(breaches(&grant(18.3)), [""; 0]);
    // Clocks of one machine agree to 20 ms.
    assert_eq!(breaches(&grant(18.285)), [""; 0]);
    assert_breach(&grant(18.275), "granted 14.975");
    // An expired record may go to another candidate than the preferred one.
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["preferredHolder"] = "c".into();
    let mut expired = grant(18.3);
    expired.insert(7, lease(4.0, 14, &preferring, Some((11, 1))));
    expired[9] = lease(18.3, 15, &held("b", 2, 5, 18.3, 18.3), None);
    assert_eq!(breaches(&expired), [""; 0]);
}

#[test]
fn a_grant_needs_an_answer() {
    let silent = a_leads().then([lease(18.4, 14, &held("c", 2, 5, 18.4, 18.4), None)]);
    assert_breach(&silent, "granted to c, which is no candidate (R15)");
    let mut stale = a_leads();
    stale.remove(1);
    stale.insert(0, candidate(-10.0, 3, "b", -10.0));
    let stale = stale.then([lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None)]);
    assert_breach(&stale, "which last answered 28.4 s before (R15)");
    // A write of the candidate that says no new time is no answer.
    let mut touched = stale.clone();
    touched.insert(1, candidate(18.0, 4, "b", -10.0));
    assert_breach(&touched, "which last answered 28.4 s before (R15)");
    // The age of an answer ends with the grant, however late the recorder saw that.
    let late = HistoryEntry {
        at: second(3.0),
        ..lease(0.2, 11, &held("a", 1, 5, 0.2, 0.2), None)
    };
    let born = lease(0.1, 10, &json!({"holderIdentity": ""}), None);
    assert_eq!(
        breaches(&[candidate(-5.5, 2, "a", -5.5), born, late]),
        [""; 0]
    );
    // An answer counts as long as no holder has renewed since, whenever the question was.
    let early = [
        candidate(5.0, 14, "b", 5.0),
        lease(18.4, 15, &held("b", 2, 5, 18.4, 18.4), None),
    ];
    assert_eq!(breaches(&a_leads().then(early)), [""; 0]);
    // The last renewal was recorded after the answer that followed it.
    let mut late = a_leads();
    late.pop();
    let answered = [
        candidate(5.0, 14, "b", 5.0),
        lease(7.0, 13, &held("a", 1, 15, 0.2, 3.3), Some((11, 1))),
        lease(22.1, 15, &held("b", 2, 5, 22.1, 22.1), None),
    ];
    assert_eq!(breaches(&late.then(answered)), [""; 0]);
}

#[test]
fn each_kind_of_illegal_write_is_found() {
    let token = Some((11, 1));
    for (after, expected) in [
        (
            lease(4.0, 14, &held("a", 2, 15, 0.2, 3.3), None),
            "S3: lease /work @14: a grant must",
        ),
        (
            lease(4.0, 14, &held("a", 1, 10, 0.2, 4.0), token),
            "S10: lease /work @14: the duration shrank from 15 s to 10 s within term 1",
        ),
        (
            lease(4.0, 14, &held("a", 1, 30, 0.2, 3.3), token),
            "S4: lease /work @14: an elector",
        ),
        (
            lease(4.0, 14, &held("a", 1, 15, 0.3, 4.0), token),
            "S4: lease /work @14: a renewal must",
        ),
        (
            lease(
                4.0,
                14,
                &json!({"holderIdentity": "", "leaseTransitions": 1}),
                token,
            ),
            "S6: lease /work @14: a release must",
        ),
    ] {
        assert_breach(&a_leads().then([after]), expected);
    }
}

#[test]
fn a_duration_that_vanishes_from_a_term_has_shrunk() {
    let mut bare = held("a", 1, 15, 0.2, 4.0);
    bare.as_object_mut().unwrap().remove("leaseDurationSeconds");
    assert_breach(
        &a_leads().then([lease(4.0, 14, &bare, Some((11, 1)))]),
        "S10: lease /work @14: the duration shrank from 15 s to 0 s within term 1",
    );
}

#[test]
fn a_deleted_lease_is_owed_to_its_holder() {
    let again = |at: f64| {
        let last = lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)));
        a_leads().then([
            gone(last),
            event(4.1, "a", EventKind::Lost),
            lease(4.2, 15, &json!({"holderIdentity": ""}), None),
            candidate(at, 16, "b", at),
            lease(at, 17, &held("b", 1, 5, at, at), None),
        ])
    };
    assert_breach(&again(17.0), "granted 13.700 s after a renewed");
    assert_eq!(breaches(&again(18.3)), [""; 0]);
}

#[test]
fn tokens_must_grow() {
    let again = lease(4.0, 14, &held("a", 1, 15, 0.2, 4.0), Some((10, 1)));
    let breaches = breaches(&a_leads().then([again]));
    assert!(
        breaches
            .iter()
            .any(|broken_rule| broken_rule.contains("token 10 after 11")),
        "{breaches:?}"
    );
}

#[test]
fn a_new_lease_names_no_holder() {
    assert_breach(&[lease(0.0, 1, &held("a", 0, 15, 0.0, 0.0), None)], "R2");
    assert_breach(&[lease(0.0, 1, &json!({}), None)], "must be an empty text");
    assert_breach(
        &[lease(
            0.0,
            1,
            &json!({"holderIdentity": "", "leaseDurationSeconds": 5}),
            None,
        )],
        "R2",
    );
    assert_eq!(
        breaches(&[lease(0.0, 1, &held("go", 0, 15, 0.0, 0.0), None)]),
        [""; 0]
    );
}

#[test]
fn a_token_is_the_revision_that_the_accept_replaced() {
    let mut history = a_leads();
    history[4] = lease(0.3, 12, &held("a", 1, 15, 0.2, 0.3), Some((10, 1)));
    assert_breach(&history, "S5: lease /work @12: the accept replaced @11");
}

#[test]
fn tokens_grow_over_a_deletion() {
    let history = a_leads().then([
        gone(lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)))),
        event(4.1, "a", EventKind::Lost),
        lease(4.2, 15, &json!({"holderIdentity": ""}), None),
        candidate(18.3, 16, "b", 18.3),
        lease(18.3, 17, &held("b", 1, 5, 18.3, 18.3), None),
        lease(18.4, 18, &held("b", 1, 15, 18.3, 18.4), Some((11, 1))),
    ]);
    assert_breach(&history, "S5: lease /work @18: token 11 after 11");
}

#[test]
fn terms_never_fall() {
    let fallen = lease(4.0, 14, &held("a", 0, 15, 0.2, 4.0), Some((11, 0)));
    assert_breach(
        &a_leads().then([fallen]),
        "S5: lease /work @14: the term fell from 1 to 0",
    );
}

#[test]
fn a_holder_has_a_term_of_its_own() {
    let replaced = lease(18.4, 14, &held("b", 1, 5, 18.4, 18.4), None);
    assert_breach(
        &a_leads().then([candidate(18.3, 13, "b", 18.3), replaced]),
        "S3: lease /work @14: b was written over a without a new term",
    );
}

#[test]
fn the_largest_term_is_followed_by_the_first() {
    let history = [
        candidate(0.0, 2, "a", 0.0),
        candidate(0.0, 3, "b", 0.0),
        lease(0.1, 10, &held("a", i32::MAX, 15, 0.1, 0.1), None),
        candidate(15.2, 11, "b", 15.2),
        lease(15.2, 12, &held("b", 0, 5, 15.2, 15.2), None),
    ];
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(10));
    assert_eq!(messages(&history, &participants), [""; 0]);
}

#[test]
fn a_hand_over_goes_to_a_candidate() {
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["preferredHolder"] = "c".into();
    let history = a_leads().then([
        lease(4.0, 14, &preferring, Some((11, 1))),
        event(4.0, "a", EventKind::WorkStopped),
        lease(4.1, 15, &held("c", 2, 5, 4.1, 4.1), None),
    ]);
    assert_breach(
        &history,
        "S7: lease /work @15: handed over to c, which is no candidate",
    );
}

/// A holder whose work takes a while renews with the preference that it found.
#[test]
fn a_stranger_may_prefer_what_is_no_candidate() {
    let preferring = |renewed| {
        let mut record = held("a", 1, 15, 0.2, renewed);
        record["preferredHolder"] = "c".into();
        record
    };
    let history = a_leads().then([
        lease(4.0, 14, &preferring(3.3), Some((11, 1))),
        lease(6.6, 15, &preferring(6.6), Some((11, 1))),
        event(7.0, "a", EventKind::WorkStopped),
        lease(7.1, 16, &held("c", 2, 5, 7.1, 7.1), None),
    ]);
    assert_breach(
        &history,
        "S7: lease /work @16: handed over to c, which is no candidate",
    );
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(14));
    assert_eq!(messages(&history, &participants), [""; 0]);
}
