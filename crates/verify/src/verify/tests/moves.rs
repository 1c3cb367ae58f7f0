//! Each change of the Lease that no rule allows is found, and those that one allows are not.

use elector_protocol::ResourceVersion;
use serde_json::json;

use super::story::{
    a_leads, and_then, assert_fault, candidate, event, faults, gone, held, judge, key, lease,
    verdict,
};
use crate::{Act, EventKind, Invariant, Level, Maker, Roster};

#[test]
fn a_crash_and_a_hand_over_are_legal() {
    let crash = and_then(
        a_leads(),
        [
            event(4.0, "a", EventKind::Killed),
            candidate(13.4, 13, "b", 13.4),
            lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None),
            lease(18.5, 15, &held("b", 2, 15, 18.4, 18.5), Some((14, 2))),
            event(18.5, "b", EventKind::Leading),
        ],
    );
    assert_eq!(faults(&crash), [""; 0]);

    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["strategy"] = "OldestEmulationVersion".into();
    preferring["preferredHolder"] = "b".into();
    let mut granted = held("b", 2, 5, 4.1, 4.1);
    granted["strategy"] = "OldestEmulationVersion".into();
    let hand_over = and_then(
        a_leads(),
        [
            lease(4.0, 14, &preferring, Some((11, 1))),
            event(4.0, "a", EventKind::WorkStopped),
            lease(4.1, 15, &granted, None),
            lease(4.2, 16, &held("b", 2, 15, 4.1, 4.2), Some((15, 2))),
            event(4.2, "b", EventKind::Leading),
        ],
    );
    assert_eq!(faults(&hand_over), [""; 0]);
}

#[test]
fn a_live_record_must_not_be_granted() {
    let grant = |at: f64| {
        and_then(
            a_leads(),
            [
                candidate(at, 13, "b", at),
                lease(at, 14, &held("b", 2, 5, at, at), None),
            ],
        )
    };
    assert_fault(&grant(17.0), "granted 13.7");
    assert_eq!(faults(&grant(18.3)), [""; 0]);
    // Clocks of one machine agree to 20 ms.
    assert_eq!(faults(&grant(18.285)), [""; 0]);
    assert_fault(&grant(18.275), "granted 14.975");
}

#[test]
fn what_a_stranger_wrote_counts_from_when_it_was_seen() {
    // Its renewTime is an hour old, or lies in the future.
    for renewed in [-3600.0, 3600.0] {
        let grant = |at: f64| {
            let story = [
                lease(4.0, 14, &held("x", 2, 15, renewed, renewed), None),
                candidate(at, 15, "b", at),
                lease(at, 16, &held("b", 3, 5, at, at), None),
            ];
            let mut roster = super::story::roster();
            roster.foreign(ResourceVersion(14));
            judge(&and_then(a_leads(), story), &roster)
        };
        let early = grant(15.0);
        assert!(
            early.len() == 1 && early[0].contains("granted 11.000 s after x renewed"),
            "{early:?}"
        );
        assert_eq!(grant(19.0), [""; 0]);
    }
}

#[test]
fn a_grant_needs_an_answer() {
    let silent = and_then(
        a_leads(),
        [lease(18.4, 14, &held("c", 2, 5, 18.4, 18.4), None)],
    );
    assert_fault(&silent, "granted to c, who is no candidate (R15)");
    let mut stale = a_leads();
    stale.remove(1);
    stale.insert(0, candidate(-10.0, 3, "b", -10.0));
    let stale = and_then(stale, [lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None)]);
    assert_fault(&stale, "who last answered 28.4 s before (R15)");
    // An answer counts as long as nobody has renewed since, whenever the question was.
    let early = [
        candidate(5.0, 14, "b", 5.0),
        lease(18.4, 15, &held("b", 2, 5, 18.4, 18.4), None),
    ];
    assert_eq!(faults(&and_then(a_leads(), early)), [""; 0]);
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
            lease(
                4.0,
                14,
                &json!({"holderIdentity": "", "leaseTransitions": 1}),
                token,
            ),
            "S6: lease /work @14: a release must",
        ),
    ] {
        assert_fault(&and_then(a_leads(), [after]), expected);
    }
}

#[test]
fn a_deleted_lease_is_owed_to_its_holder() {
    let again = |at: f64| {
        let last = lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)));
        and_then(
            a_leads(),
            [
                gone(last),
                event(4.1, "a", EventKind::Lost),
                lease(4.2, 15, &json!({"holderIdentity": ""}), None),
                candidate(at, 16, "b", at),
                lease(at, 17, &held("b", 1, 5, at, at), None),
            ],
        )
    };
    assert_fault(&again(17.0), "granted 13.700 s after a renewed");
    assert_eq!(faults(&again(18.3)), [""; 0]);
}

#[test]
fn tokens_must_grow() {
    let again = lease(4.0, 14, &held("a", 1, 15, 0.2, 4.0), Some((10, 1)));
    let faults = faults(&and_then(a_leads(), [again]));
    assert!(
        faults
            .iter()
            .any(|fault| fault.contains("token 10 after 11")),
        "{faults:?}"
    );
}

#[test]
fn a_new_lease_names_nobody() {
    assert_fault(&[lease(0.0, 1, &held("a", 0, 15, 0.0, 0.0), None)], "R2");
    assert_fault(&[lease(0.0, 1, &json!({}), None)], "must be an empty text");
    assert_fault(
        &[lease(
            0.0,
            1,
            &json!({"holderIdentity": "", "leaseDurationSeconds": 5}),
            None,
        )],
        "R2",
    );
    assert_eq!(
        faults(&[lease(0.0, 1, &held("go", 0, 15, 0.0, 0.0), None)]),
        [""; 0]
    );
}

#[test]
fn what_a_stranger_wrote_is_nobodys_fault() {
    let story = [lease(0.0, 1, &held("a", 0, 15, 0.0, 0.0), None)];
    let mut roster = Roster::default();
    roster.enrol(key(), "a", Maker::Ours);
    assert_eq!(judge(&story, &roster).len(), 1);
    roster.foreign(ResourceVersion(1));
    assert_eq!(judge(&story, &roster), [""; 0]);
    // Nor is a lease that nobody here is about.
    assert_eq!(judge(&story, &Roster::default()), [""; 0]);
}
#[test]
fn a_token_is_the_revision_that_the_accept_replaced() {
    let mut story = a_leads();
    story[4] = lease(0.3, 12, &held("a", 1, 15, 0.2, 0.3), Some((10, 1)));
    assert_fault(&story, "S5: lease /work @12: the accept replaced @11");
}

#[test]
fn tokens_grow_over_a_deletion() {
    let story = and_then(
        a_leads(),
        [
            gone(lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)))),
            event(4.1, "a", EventKind::Lost),
            lease(4.2, 15, &json!({"holderIdentity": ""}), None),
            candidate(18.3, 16, "b", 18.3),
            lease(18.3, 17, &held("b", 1, 5, 18.3, 18.3), None),
            lease(18.4, 18, &held("b", 1, 15, 18.3, 18.4), Some((11, 1))),
        ],
    );
    assert_fault(&story, "S5: lease /work @18: token 11 after 11");
}

#[test]
fn terms_never_fall() {
    let fallen = lease(4.0, 14, &held("a", 0, 15, 0.2, 4.0), Some((11, 0)));
    assert_fault(
        &and_then(a_leads(), [fallen]),
        "S5: lease /work @14: the term fell from 1 to 0",
    );
}

#[test]
fn a_holder_has_a_term_of_its_own() {
    let replaced = lease(18.4, 14, &held("b", 1, 5, 18.4, 18.4), None);
    assert_fault(
        &and_then(a_leads(), [candidate(18.3, 13, "b", 18.3), replaced]),
        "S3: lease /work @14: b was written over a without a new term",
    );
}

#[test]
fn the_built_in_elector_counts_no_terms_for_client_go() {
    let story = [
        candidate(0.0, 2, "go", 0.0),
        candidate(0.0, 3, "gone", 0.0),
        lease(0.1, 10, &held("go", 0, 15, 0.1, 0.1), None),
        lease(15.2, 11, &held("gone", 0, 5, 15.2, 15.2), None),
    ];
    let mut roster = super::story::roster();
    roster.enrol(key(), "gone", Maker::ClientGo);
    let verdict = crate::verify(&crate::History::from(story.to_vec()), &roster);
    let finding = verdict.findings().next().unwrap();
    assert_eq!(
        (finding.invariant, finding.level),
        (Invariant::S3, Level::AsClientGo)
    );
    assert!(verdict.holds());
}

#[test]
fn the_largest_term_is_followed_by_the_first() {
    let story = [
        candidate(0.0, 2, "a", 0.0),
        candidate(0.0, 3, "b", 0.0),
        lease(0.1, 10, &held("a", i32::MAX, 15, 0.1, 0.1), None),
        candidate(15.2, 11, "b", 15.2),
        lease(15.2, 12, &held("b", 0, 5, 15.2, 15.2), None),
    ];
    let mut roster = super::story::roster();
    roster.foreign(ResourceVersion(10));
    assert_eq!(judge(&story, &roster), [""; 0]);
}

#[test]
fn a_hand_over_goes_to_a_candidate() {
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["preferredHolder"] = "c".into();
    let story = and_then(
        a_leads(),
        [
            lease(4.0, 14, &preferring, Some((11, 1))),
            event(4.0, "a", EventKind::WorkStopped),
            lease(4.1, 15, &held("c", 2, 5, 4.1, 4.1), None),
        ],
    );
    assert_fault(
        &story,
        "S7: lease /work @15: handed over to c, who is no candidate",
    );
}

/// A plain client-go process holds the lease; it has written twice.
fn go_leads() -> Vec<crate::Entry> {
    vec![
        candidate(0.0, 2, "a", 0.0),
        lease(0.1, 10, &held("go", 0, 15, 0.1, 0.1), None),
        lease(2.1, 11, &held("go", 0, 15, 0.1, 2.1), None),
    ]
}

#[test]
fn a_holder_that_is_no_candidate_is_not_asked_to_make_room() {
    let mut preferring = held("go", 0, 15, 0.1, 2.1);
    preferring["preferredHolder"] = "a".into();
    let asked = lease(3.0, 12, &preferring, None);
    assert_fault(
        &and_then(go_leads(), [asked.clone()]),
        "S11: lease /work @12: go, who is no candidate",
    );
    let candidate = candidate(0.0, 3, "go", 0.0);
    assert_eq!(
        faults(&and_then(vec![candidate], and_then(go_leads(), [asked]))),
        [""; 0]
    );
}

#[test]
fn a_plain_client_may_take_what_has_expired() {
    let taken = |at: f64| {
        let left = lease(4.0, 12, &held("a", 1, 15, 0.2, 4.0), None);
        verdict(&[
            candidate(0.0, 2, "a", 0.0),
            left,
            lease(at, 13, &held("go", 2, 15, at, at), None),
        ])
    };
    let case = |verdict: crate::Verdict| verdict.cases[&key()].clone();
    let late = case(taken(19.1));
    assert_eq!(late.extent.acts[&Act::Take], 1);
    // It was created with a holder; that is all.
    assert_eq!(late.findings.len(), 1);
    // It compares whole seconds, and so may see a renewal a second early.
    assert_eq!(case(taken(18.1)).extent.acts[&Act::Take], 1);
    let early = case(taken(10.0));
    let finding = early.findings.last().unwrap();
    assert_eq!(
        (finding.invariant, finding.level),
        (Invariant::S3, Level::AsClientGo)
    );
    assert_eq!(finding.after, Some(ResourceVersion(13)));
}

#[test]
fn a_term_of_client_go_may_shrink_but_is_told() {
    let story = and_then(
        go_leads(),
        [lease(4.0, 12, &held("go", 0, 5, 0.1, 4.0), None)],
    );
    let verdict = verdict(&story);
    assert!(verdict.holds());
    let finding = verdict.findings().next().unwrap();
    assert_eq!(
        (finding.invariant, finding.level),
        (Invariant::S10, Level::AsClientGo)
    );
}

/// A stranger blanks the record of `a` with this duration, and the lease is granted at that time.
fn blanked(duration: i32, token: Option<(u64, i32)>, granted: f64) -> Vec<String> {
    let blank = json!({
        "holderIdentity": "", "leaseDurationSeconds": duration, "leaseTransitions": 1,
    });
    let story = and_then(
        a_leads(),
        [
            lease(4.0, 14, &blank, token),
            candidate(granted, 15, "b", granted),
            lease(granted, 16, &held("b", 2, 5, granted, granted), None),
        ],
    );
    let mut roster = super::story::roster();
    roster.foreign(ResourceVersion(14));
    judge(&story, &roster)
}

#[test]
fn a_stranger_that_blanks_makes_nobody_leader_earlier() {
    for (duration, token) in [(15, None), (15, Some((11, 1))), (1, Some((11, 1)))] {
        assert_eq!(blanked(duration, token, 18.3), [""; 0]);
        let early = blanked(duration, token, 5.0);
        assert!(
            early[0].contains("granted 1.700 s after a renewed"),
            "{early:?}"
        );
    }
}

#[test]
fn no_elector_is_blamed_for_what_a_stranger_made_look_like_a_release() {
    assert_eq!(blanked(1, None, 5.0), [""; 0]);
}

#[test]
fn a_holder_may_restore_its_term_after_a_stranger() {
    let token = Some((11, 1));
    let restored = |foreign, after| {
        let mut roster = super::story::roster();
        roster.foreign(ResourceVersion(14));
        judge(&and_then(a_leads(), [foreign, after]), &roster)
    };
    let prolonged = lease(4.0, 14, &held("a", 1, 22, 0.2, 3.3), token);
    let stripped = lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), None);
    for foreign in [prolonged, stripped] {
        let renewed = lease(6.6, 16, &held("a", 1, 15, 0.2, 6.6), token);
        assert_eq!(restored(foreign.clone(), renewed), [""; 0]);
        // Only as it was.
        let shortened = lease(6.6, 15, &held("a", 1, 10, 0.2, 6.6), token);
        assert_ne!(restored(foreign.clone(), shortened), [""; 0]);
        let another = lease(6.6, 15, &held("a", 1, 15, 0.2, 6.6), Some((12, 1)));
        assert_ne!(restored(foreign, another), [""; 0]);
    }
}

#[test]
fn a_holder_may_restore_its_term_after_an_elector_has_seen_to_the_signals() {
    let mut signalled = held("a", 1, 15, 0.2, 3.3);
    signalled["strategy"] = "OldestEmulationVersion".into();
    let mut renewed = held("a", 1, 15, 0.2, 6.6);
    renewed["strategy"] = "OldestEmulationVersion".into();
    let mut roster = super::story::roster();
    roster.foreign(ResourceVersion(14));
    let story = and_then(
        a_leads(),
        [
            lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), None),
            lease(4.1, 15, &signalled, None),
            lease(6.6, 16, &renewed, Some((11, 1))),
        ],
    );
    assert_eq!(judge(&story, &roster), [""; 0]);
}

#[test]
fn a_holder_makes_room_for_whomever_a_stranger_prefers() {
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["strategy"] = "OldestEmulationVersion".into();
    preferring["preferredHolder"] = "nobody-knows-him".into();
    let mut granted = held("nobody-knows-him", 2, 5, 4.1, 4.1);
    granted["strategy"] = "OldestEmulationVersion".into();
    let story = and_then(
        a_leads(),
        [
            lease(4.0, 14, &preferring, Some((11, 1))),
            event(4.0, "a", EventKind::WorkStopped),
            lease(4.1, 15, &granted, None),
        ],
    );
    assert_fault(&story, "who is no candidate");
    let mut roster = super::story::roster();
    roster.foreign(ResourceVersion(14));
    assert_eq!(judge(&story, &roster), [""; 0]);
}

#[test]
fn a_term_whose_number_a_stranger_set_back_has_a_token_of_its_own() {
    let story = |token| {
        and_then(
            a_leads(),
            [
                lease(4.0, 14, &json!({}), None),
                candidate(19.0, 15, "a", 19.0),
                lease(19.1, 16, &held("a", 1, 5, 19.1, 19.1), None),
                lease(19.2, 17, &held("a", 1, 15, 19.1, 19.2), Some((token, 1))),
            ],
        )
    };
    let mut roster = super::story::roster();
    roster.foreign(ResourceVersion(14));
    assert_eq!(judge(&story(16), &roster), [""; 0]);
    assert!(!judge(&story(11), &roster).is_empty());
}
