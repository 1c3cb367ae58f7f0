//! Acts of plain holders, client-go and strangers are reported, or left to them, and going on after them is no breach.

use elector_protocol::ResourceVersion;
use serde_json::json;

use super::histories::{
    Continued, a_leads, assert_breach, breaches, candidate, event, held, key, lease, messages,
    verdict,
};
use crate::{
    EventKind, GuaranteeLevel, HistoryEntry, Implementation, Invariant, LeaseChangeKind,
    Participants,
};

#[test]
fn what_a_stranger_wrote_counts_from_when_it_was_seen() {
    // Its renewTime is an hour old, or lies in the future; a record without a duration lasts as long as any may.
    for (renewed, duration) in [
        (-3600.0, json!(15)),
        (3600.0, json!(15)),
        (3600.0, json!(null)),
    ] {
        let grant = |at: f64, is_known: bool| {
            let mut of_stranger = held("x", 2, 15, renewed - 1.0, renewed);
            of_stranger["leaseDurationSeconds"] = duration.clone();
            let history = [
                lease(4.0, 14, &of_stranger, None),
                candidate(at, 15, "b", at),
                lease(at, 16, &held("b", 3, 5, at, at), None),
            ];
            let mut participants = super::histories::participants();
            if is_known {
                participants.add_foreign(ResourceVersion(14));
            }
            messages(&a_leads().then(history), &participants)
        };
        for is_known in [true, false] {
            let early = grant(15.0, is_known).pop().unwrap();
            assert!(
                early.contains("granted 11.000 s after x renewed"),
                "{early}"
            );
        }
        assert_eq!(grant(19.0, true), [""; 0]);
    }
}

/// A stranger renews at 8.0 in the name of `a`, writes that time, and this is what happens next. The second value says
/// what a recording shows that does not know of the stranger.
fn renewed_in_the_name_of_a(written: f64, next: &[HistoryEntry]) -> [Vec<String>; 2] {
    let renewed = lease(8.0, 14, &held("a", 1, 15, 0.2, written), Some((11, 1)));
    let history = a_leads().then([&[renewed], next].concat());
    let mut declared = super::histories::participants();
    declared.add_foreign(ResourceVersion(14));
    [messages(&history, &declared), breaches(&history)]
}

/// (R4) The holder may be dead: its record is waited for all the same, from when the renewal was seen.
#[test]
fn a_record_that_a_stranger_renewed_is_waited_for() {
    let granted = |at: f64| {
        [
            candidate(at, 15, "b", at),
            lease(at, 16, &held("b", 2, 5, at, at), None),
        ]
    };
    for written in [8.0, -3600.0, 3600.0] {
        let [early, _] = renewed_in_the_name_of_a(written, &granted(20.0));
        let holds = early.len() == 1 && early[0].contains("granted 12.000 s after a renewed");
        assert!(holds, "{written}: {early:?}");
        let [late, _] = renewed_in_the_name_of_a(written, &granted(23.0));
        assert_eq!(late, [""; 0], "{written}");
    }
}

/// (R8) A renewal that the holder did not send prolongs nothing. Where the stranger is not known it counts as the
/// holder's, since a record does not name its writer.
#[test]
fn what_a_stranger_renewed_is_no_sign_of_the_holder() {
    let worked = [event(20.0, "a", EventKind::WorkStopped)];
    let [declared, undeclared] = renewed_in_the_name_of_a(8.0, &worked);
    assert_eq!(
        declared,
        [
            "S2: lease /work: a worked until 16.700 s after it sent its last renewal @13, 15 s are allowed"
        ]
    );
    assert_eq!(undeclared, [""; 0]);
}

#[test]
fn what_a_stranger_wrote_breaks_no_rule() {
    let history = [lease(0.0, 1, &held("a", 0, 15, 0.0, 0.0), None)];
    let mut participants = Participants::default();
    participants.add(key(), "a", Implementation::Elector);
    assert_eq!(messages(&history, &participants).len(), 1);
    participants.add_foreign(ResourceVersion(1));
    assert_eq!(messages(&history, &participants), [""; 0]);
    // Nor is a lease without participants.
    assert_eq!(messages(&history, &Participants::default()), [""; 0]);
}

#[test]
fn the_built_in_elector_counts_no_terms_for_client_go() {
    let history = [
        candidate(0.0, 2, "go", 0.0),
        candidate(0.0, 3, "gone", 0.0),
        lease(0.1, 10, &held("go", 0, 15, 0.1, 0.1), None),
        lease(15.2, 11, &held("gone", 0, 5, 15.2, 15.2), None),
    ];
    let mut participants = super::histories::participants();
    participants.add(key(), "gone", Implementation::ClientGo);
    let verdict = crate::verify(&crate::History::from(history.to_vec()), &participants);
    let breach = verdict.breaches().next().unwrap();
    let expected = (Invariant::S3, GuaranteeLevel::AsClientGo);
    assert_eq!((breach.invariant, breach.level), expected);
    assert!(verdict.holds());
}

/// A plain client-go process holds the lease; it has written twice.
fn go_leads() -> Vec<HistoryEntry> {
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
    assert_breach(
        &go_leads().then([asked.clone()]),
        "S11: lease /work @12: go, which is no candidate",
    );
    let candidate = candidate(0.0, 3, "go", 0.0);
    assert_eq!(
        breaches(&vec![candidate].then(go_leads().then([asked]))),
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
    let lease_verdict = |verdict: crate::Verdict| verdict.leases[&key()].clone();
    let late = lease_verdict(taken(19.1));
    assert_eq!(late.extent.changes[&LeaseChangeKind::Take], 1);
    // It was created with a holder; that is all.
    assert_eq!(late.breaches.len(), 1);
    // It compares whole seconds, and so may see a renewal a second early.
    assert_eq!(
        lease_verdict(taken(18.1)).extent.changes[&LeaseChangeKind::Take],
        1
    );
    let early = lease_verdict(taken(10.0));
    let breach = early.breaches.last().unwrap();
    let expected = (Invariant::S3, GuaranteeLevel::AsClientGo);
    assert_eq!((breach.invariant, breach.level), expected);
    assert_eq!(breach.after, Some(ResourceVersion(13)));
}

#[test]
fn a_term_of_client_go_may_shrink_but_is_told() {
    let history = go_leads().then([lease(4.0, 12, &held("go", 0, 5, 0.1, 4.0), None)]);
    let verdict = verdict(&history);
    assert!(verdict.holds());
    let breach = verdict.breaches().next().unwrap();
    let expected = (Invariant::S10, GuaranteeLevel::AsClientGo);
    assert_eq!((breach.invariant, breach.level), expected);
}

#[test]
fn the_duration_of_a_grant_is_not_yet_that_of_the_term() {
    let history = [
        candidate(0.0, 2, "go", 0.0),
        lease(0.1, 10, &json!({"holderIdentity": ""}), None),
        lease(0.2, 11, &held("go", 1, 5, 0.2, 0.2), None),
        lease(0.3, 12, &held("go", 1, 3, 0.2, 0.3), None),
    ];
    assert_eq!(verdict(&history).breaches().count(), 0);
}

/// A stranger blanks the record of `a` with this duration, and the lease is granted at that time.
fn blanked(duration: i32, token: Option<(u64, i32)>, granted: f64) -> Vec<String> {
    let blank = json!({
        "holderIdentity": "", "leaseDurationSeconds": duration, "leaseTransitions": 1,
    });
    let history = a_leads().then([
        lease(4.0, 14, &blank, token),
        candidate(granted, 15, "b", granted),
        lease(granted, 16, &held("b", 2, 5, granted, granted), None),
    ]);
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(14));
    messages(&history, &participants)
}

#[test]
fn a_stranger_that_blanks_brings_no_leader_earlier() {
    for (duration, token) in [(15, None), (15, Some((11, 1))), (1, Some((11, 1)))] {
        assert_eq!(blanked(duration, token, 18.3), [""; 0]);
        let early = blanked(duration, token, 5.0);
        let holds = early[0].contains("granted 1.700 s after a renewed");
        assert!(holds, "{early:?}");
    }
}

#[test]
fn a_grant_after_what_a_stranger_made_look_like_a_release_breaks_no_rule() {
    assert_eq!(blanked(1, None, 5.0), [""; 0]);
}

#[test]
fn a_holder_may_restore_its_term_after_a_stranger() {
    let token = Some((11, 1));
    let restored = |foreign, after| {
        let mut participants = super::histories::participants();
        participants.add_foreign(ResourceVersion(14));
        messages(&a_leads().then([foreign, after]), &participants)
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
    // A term over which another was written is lost.
    let replaced = lease(4.0, 14, &held("b", 2, 15, 0.2, 3.3), token);
    let renewed = lease(6.6, 16, &held("a", 1, 15, 0.2, 6.6), token);
    let lost = restored(replaced, renewed);
    assert!(lost[0].contains("the term fell from 2 to 1"), "{lost:?}");
}

#[test]
fn a_holder_may_restore_its_term_after_an_elector_has_seen_to_the_signals() {
    let [signalled, renewed] = [3.3, 6.6].map(|renewed| {
        let mut record = held("a", 1, 15, 0.2, renewed);
        record["strategy"] = "OldestEmulationVersion".into();
        record["preferredHolder"] = "b".into();
        record
    });
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(14));
    let history = a_leads().then([
        lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), None),
        lease(4.1, 15, &signalled, None),
        lease(6.6, 16, &renewed, Some((11, 1))),
    ]);
    assert_eq!(messages(&history, &participants), [""; 0]);
}

#[test]
fn a_holder_may_restore_its_term_after_strangers_made_it_unreadable_first() {
    let mut unreadable = held("a", 1, 15, 0.2, 3.3);
    unreadable["leaseDurationSeconds"] = "soon".into();
    let history = a_leads().then([
        lease(4.0, 14, &unreadable, Some((11, 1))),
        lease(4.2, 15, &held("a", 1, 1, 0.2, 3.3), Some((11, 1))),
        lease(6.6, 16, &held("a", 1, 15, 0.2, 6.6), Some((11, 1))),
    ]);
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(14));
    participants.add_foreign(ResourceVersion(15));
    assert_eq!(messages(&history, &participants), [""; 0]);
}

#[test]
fn a_holder_makes_room_for_whomever_a_stranger_prefers() {
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["strategy"] = "OldestEmulationVersion".into();
    preferring["preferredHolder"] = "nobody-knows-him".into();
    let mut granted = held("nobody-knows-him", 2, 5, 4.1, 4.1);
    granted["strategy"] = "OldestEmulationVersion".into();
    let mut again = held("a", 3, 5, 9.2, 9.2);
    again["strategy"] = "OldestEmulationVersion".into();
    // The recorder is late: the grant was written at 4.1.
    let history = a_leads().then([
        lease(4.0, 14, &preferring, Some((11, 1))),
        event(4.0, "a", EventKind::WorkStopped),
        lease(8.0, 15, &granted, None),
        candidate(9.0, 16, "a", 9.0),
        lease(9.2, 17, &again, None),
    ]);
    assert_breach(&history, "which is no candidate");
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(14));
    assert_eq!(messages(&history, &participants), [""; 0]);
}

#[test]
fn a_term_whose_number_a_stranger_set_back_has_a_token_of_its_own() {
    let history = |token| {
        a_leads().then([
            lease(4.0, 14, &json!({}), None),
            candidate(19.0, 15, "a", 19.0),
            lease(19.1, 16, &held("a", 1, 5, 19.1, 19.1), None),
            lease(19.2, 17, &held("a", 1, 15, 19.1, 19.2), Some((token, 1))),
        ])
    };
    let mut participants = super::histories::participants();
    participants.add_foreign(ResourceVersion(14));
    assert_eq!(messages(&history(16), &participants), [""; 0]);
    assert!(!messages(&history(11), &participants).is_empty());
}
