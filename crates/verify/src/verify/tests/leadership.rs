//! A process that leads too early, too long, twice or beside another is found.

use std::time::Duration;

use elector_protocol::{LeaseKey, ResourceVersion};
use serde_json::json;

use super::histories::{
    Continued, a_leads, assert_breach, breaches, candidate, event, gone, held, key, lease,
    messages, of_term, participants, second, verdict, wire,
};
use crate::{
    EntryContent, EventKind, GuaranteeLevel, History, HistoryEntry, Invariant, Participants,
    TraceCoverage, verify,
};

#[test]
fn two_candidates_must_not_lead_at_once() {
    let history = a_leads().then([
        event(4.0, "b", EventKind::Leading),
        event(5.5, "a", EventKind::Lost),
    ]);
    assert_breach(&history, "a led for 1.500 s longer when b began");
    let client_go = a_leads().then([event(4.0, "go", EventKind::Leading)]);
    assert_eq!(breaches(&client_go), [""; 0]);
    // Work that ends after the loss counts to its end.
    let late = [
        event(4.0, "a", EventKind::Lost),
        event(4.5, "a", EventKind::WorkStopped),
        event(4.2, "b", EventKind::Leading),
    ];
    assert_breach(&a_leads().then(late), "a led for 0.300 s longer");
    // A process that leads to the end may not be followed.
    assert_breach(
        &a_leads().then([event(4.0, "b", EventKind::Leading)]),
        "two believed at once",
    );
}

#[test]
fn a_leader_has_accepted() {
    let mut early = a_leads();
    // The event comes before the accept.
    early[5] = event(0.25, "a", EventKind::Leading);
    assert_breach(&early, "S2: lease /work: a led without having accepted");
}

#[test]
fn an_accept_without_a_token_makes_no_leader() {
    let mut history = a_leads();
    history.truncate(4);
    let history = history.then([
        lease(0.3, 12, &held("a", 1, 15, 0.2, 0.3), None),
        event(0.3, "a", EventKind::Leading),
    ]);
    assert_breach(&history, "S2: lease /work: a led without having accepted");
}

#[test]
fn a_process_that_was_only_said_to_be_killed_has_no_trace() {
    let killed = untraced().then([event(4.0, "a", EventKind::Killed)]);
    let mut participants = participants();
    participants.limits.renew_deadline = Some(Duration::from_secs(20));
    assert_eq!(messages(&killed, &participants).len(), 1);
}

#[test]
fn an_event_is_about_its_own_lease() {
    let about = |mut entry: HistoryEntry, lease: &str| {
        if let EntryContent::Event(event) = &mut entry.content {
            event.lease = Some(LeaseKey::new("", lease));
        }
        entry
    };
    let mut history = a_leads();
    history[5] = about(event(0.3, "a", EventKind::Leading), "work");
    // That the work for another lease ends does not end this one.
    let history = history.then([
        about(event(3.4, "a", EventKind::WorkStopped), "other"),
        about(event(4.0, "b", EventKind::Leading), "work"),
    ]);
    assert_breach(&history, "a led and leads on when b began");
    let ended = history.then([about(event(4.0, "a", EventKind::WorkStopped), "work")]);
    assert!(!breaches(&ended).iter().any(|it| it.starts_with("S1")));
}

#[test]
fn client_go_too_leads_by_a_write_of_its_own() {
    let history = |from: f64| {
        verdict(&[
            candidate(0.0, 2, "go", 0.0),
            lease(0.1, 10, &json!({"holderIdentity": ""}), None),
            lease(0.2, 11, &held("go", 1, 5, 0.2, 0.2), None),
            lease(1.3, 12, &held("go", 1, 15, 0.2, 1.3), None),
            event(from, "go", EventKind::Leading),
        ])
    };
    let early = |from| {
        let levels: Vec<_> = history(from)
            .breaches()
            .filter(|breach| breach.invariant == Invariant::S2)
            .map(|breach| breach.level)
            .collect();
        levels
    };
    assert_eq!(early(1.4), []);
    // The grant alone makes no leader.
    assert_eq!(early(1.0), [GuaranteeLevel::AsClientGo]);
}

#[test]
fn an_event_is_about_its_own_term() {
    let leads = |term, token| {
        let mut history = a_leads();
        history[5] = of_term(event(0.3, "a", EventKind::Leading), term, token);
        history
    };
    assert_eq!(breaches(&leads(1, 11)), [""; 0]);
    assert_breach(
        &leads(2, 11),
        "S2: lease /work: a led without having accepted",
    );
    assert_breach(
        &leads(1, 10),
        "S2: lease /work: a led without having accepted",
    );
}

#[test]
fn work_ends_with_the_lease() {
    let until = |end: f64| a_leads().then([event(end, "a", EventKind::WorkStopped)]);
    assert_eq!(breaches(&until(19.3)), [""; 0]);
    // However late the recorder saw that renewal.
    let mut late = until(25.0);
    late[6].at = second(12.0);
    assert_breach(
        &late,
        "S2: lease /work: a worked until 21.700 s after it sent its last renewal @13, 15 s are allowed",
    );
    let mut participants = participants();
    participants.limits.renew_deadline = Some(Duration::from_secs(10));
    let strict = messages(&until(19.0), &participants);
    let holds = strict[0].contains("15.700 s after it sent its last renewal @13, 10 s are allowed");
    assert!(holds, "{strict:?}");
}

#[test]
fn a_lost_lease_is_not_the_losers_to_release() {
    let released = lease(
        4.0,
        14,
        &json!({
            "holderIdentity": "", "leaseTransitions": 1, "leaseDurationSeconds": 1,
            "acquireTime": wire(4.0), "renewTime": wire(4.0),
        }),
        None,
    );
    let own = [
        event(3.9, "a", EventKind::WorkStopped),
        released.clone(),
        event(4.1, "a", EventKind::Lost),
    ];
    assert_eq!(breaches(&a_leads().then(own)), [""; 0]);
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["preferredHolder"] = "b".into();
    let preferring = lease(3.9, 13, &preferring, Some((11, 1)));
    let handed_over = lease(4.0, 14, &held("b", 2, 5, 4.0, 4.0), None);
    for (last, word) in [(released, "released"), (handed_over, "handed over")] {
        let mut anothers = a_leads();
        anothers.pop();
        let anothers = anothers.then([
            preferring.clone(),
            last,
            event(4.1, "a", EventKind::Lost),
            event(4.2, "a", EventKind::WorkStopped),
        ]);
        let expected = format!("S6: lease /work @14: term 1 of a was {word} by another writer");
        assert_breach(&anothers, &expected);
    }
}

#[test]
fn one_identity_is_one_life() {
    let again = |from| of_term(event(from, "a", EventKind::Leading), 1, 11);
    let mut twice = a_leads();
    twice[5] = again(0.3);
    let twice = twice.then([event(4.0, "a", EventKind::Killed), again(5.0)]);
    assert_breach(
        &twice,
        "S9: lease /work: two processes of a led with the token 11",
    );
    let beside = a_leads().then([event(5.0, "a", EventKind::Leading)]);
    assert_breach(
        &beside,
        "S9: lease /work: two believed at once: a led and leads on when a began",
    );
}

/// `a` led, without a trace of it; `b` is granted when its record has expired, and accepts.
fn untraced() -> Vec<HistoryEntry> {
    let mut history = a_leads();
    history.remove(5);
    history.then([
        candidate(18.3, 14, "b", 18.3),
        lease(18.4, 15, &held("b", 2, 5, 18.4, 18.4), None),
        lease(18.5, 16, &held("b", 2, 15, 18.4, 18.5), Some((15, 2))),
    ])
}

#[test]
fn without_a_trace_belief_lasts_as_long_as_the_lease_allows() {
    assert_eq!(breaches(&untraced()), [""; 0]);
    // An accept is seen within the delay of the recorder.
    let traced = [(0.3, EventKind::Leading), (19.0, EventKind::WorkStopped)];
    let traced = traced.map(|(at, kind)| event(at, "a", kind));
    assert_eq!(breaches(&untraced().then(traced)), [""; 0]);
    let mut participants = participants();
    participants.limits.renew_deadline = Some(Duration::from_secs(20));
    assert_eq!(
        messages(&untraced(), &participants),
        [
            "S1: lease /work: two may have believed at once: a could lead for 4.800 s longer when b began"
        ]
    );
    // A holder that runs slower than the times of this history leads longer.
    participants.limits.renew_deadline = Some(Duration::from_secs(14));
    assert_eq!(messages(&untraced(), &participants), [""; 0]);
    participants.limits.drift = 1.2;
    assert_eq!(messages(&untraced(), &participants).len(), 1);
}

#[test]
fn without_a_trace_one_name_is_one_life() {
    let mut history = a_leads();
    history.remove(5);
    let history = history.then([
        gone(lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)))),
        lease(18.2, 15, &json!({"holderIdentity": ""}), None),
        candidate(18.3, 16, "a", 18.3),
        lease(18.3, 17, &held("a", 1, 5, 18.3, 18.3), None),
        lease(18.4, 18, &held("a", 1, 15, 18.3, 18.4), Some((17, 1))),
    ]);
    let mut participants = participants();
    participants.limits.renew_deadline = Some(Duration::from_secs(20));
    assert_eq!(messages(&history, &participants), [""; 0]);
}

#[test]
fn a_holder_that_gave_the_lease_away_had_stopped() {
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["preferredHolder"] = "b".into();
    let mut history = a_leads();
    history.remove(5);
    let history = history.then([
        lease(4.0, 14, &preferring, Some((11, 1))),
        lease(4.1, 15, &held("b", 2, 5, 4.1, 4.1), None),
        lease(4.2, 16, &held("b", 2, 15, 4.1, 4.2), Some((15, 2))),
    ]);
    assert_eq!(breaches(&history), [""; 0]);
}

#[test]
fn a_killed_process_says_nothing() {
    let history = untraced().then([event(18.5, "b", EventKind::Leading)]);
    let killed = history.then([event(0.3, "a", EventKind::Leading)]);
    assert_breach(
        &killed,
        "two believed at once: a led and leads on when b began",
    );
    let partial = History::from(killed).with_trace_coverage(TraceCoverage::Partial);
    assert!(verify(&partial, &participants()).holds());
    let mut longer = participants();
    longer.limits.renew_deadline = Some(Duration::from_secs(20));
    assert!(!verify(&partial, &longer).holds());
    // The next life of that name is the end of this one.
    let mut partial = partial;
    partial.extend([event(10.0, "a", EventKind::Start)]);
    assert!(verify(&partial, &longer).holds());
}

#[test]
fn clocks_of_work_traces_may_be_apart() {
    let history = [
        event(4.0, "b", EventKind::Leading),
        event(4.3, "a", EventKind::WorkStopped),
    ];
    let history = a_leads().then(history);
    let mut participants = participants();
    let overlap = |participants: &Participants| {
        messages(&history, participants)
            .iter()
            .any(|broken_rule| broken_rule.contains("S1"))
    };
    assert!(overlap(&participants));
    participants.limits.trace_clock_difference = Duration::from_millis(300);
    assert!(!overlap(&participants));
}

/// `a` works until 6.0; a stranger names `b` at 4.0, which accepts and leads.
fn seized() -> Vec<HistoryEntry> {
    a_leads().then([
        lease(4.0, 14, &held("b", 2, 15, 4.0, 4.0), None),
        lease(4.1, 15, &held("b", 2, 15, 4.0, 4.1), Some((14, 2))),
        event(4.1, "b", EventKind::Leading),
        event(6.0, "a", EventKind::Lost),
    ])
}

#[test]
fn a_strangers_write_that_names_a_holder_is_the_one_exemption() {
    let mut participants = participants();
    let lease_verdict = |history: Vec<HistoryEntry>, participants: &Participants| {
        verify(&History::from(history), participants).leases[&key()].clone()
    };
    // Not declared, it is a grant that comes too early.
    let undeclared = lease_verdict(seized(), &participants);
    assert_eq!(undeclared.breaches.len(), 1);
    assert_eq!(undeclared.breaches[0].invariant, Invariant::S3);
    assert_eq!(undeclared.excused[0].by, ResourceVersion(14));

    participants.add_foreign(ResourceVersion(14));
    let declared = lease_verdict(seized(), &participants);
    assert_eq!(declared.breaches, []);
    assert_eq!(declared.excused.len(), 1);
    assert_eq!(declared.excused[0].by, ResourceVersion(14));
    assert_eq!(declared.excused[0].breach.invariant, Invariant::S1);

    // W later it excuses nothing.
    let mut late = seized();
    late.truncate(9);
    let late = late.then([
        event(20.0, "b", EventKind::Leading),
        event(21.0, "a", EventKind::Lost),
    ]);
    let late = lease_verdict(late, &participants);
    assert!(
        late.breaches
            .iter()
            .any(|breach| breach.invariant == Invariant::S1)
    );
}

#[test]
fn a_strangers_write_that_shortens_a_duration_or_removes_it_is_an_exemption_too() {
    // `b` leads beside `a` from 8.2 on, after a stranger wrote this duration into the record of `a`.
    let excused = |duration: Option<i32>| {
        let mut of_stranger = held("a", 1, 15, 0.2, 3.3);
        of_stranger["leaseDurationSeconds"] = json!(duration);
        let history = a_leads().then([
            lease(4.0, 14, &of_stranger, Some((11, 1))),
            candidate(8.0, 15, "b", 8.0),
            lease(8.1, 16, &held("b", 2, 5, 8.1, 8.1), None),
            lease(8.2, 17, &held("b", 2, 15, 8.1, 8.2), Some((16, 2))),
            event(8.2, "b", EventKind::Leading),
            event(10.0, "a", EventKind::Lost),
        ]);
        let mut participants = participants();
        participants.add_foreign(ResourceVersion(14));
        participants.limits.longest_lease = Duration::from_secs(3);
        let verdict = verify(&History::from(history), &participants);
        let by = verdict.leases[&key()].excused.iter();
        by.map(|excused| excused.by).collect::<Vec<_>>()
    };
    assert_eq!(excused(Some(3)), [ResourceVersion(14)]);
    assert_eq!(excused(None), [ResourceVersion(14)]);
    // A stranger that leaves the duration or lengthens it excuses nothing; the grant is too early, and names a holder.
    assert_eq!(excused(Some(15)), [ResourceVersion(16)]);
    assert_eq!(excused(Some(20)), [ResourceVersion(16)]);
}

#[test]
fn a_stranger_that_blanks_or_lengthens_exempts_nothing() {
    let blank = json!({"holderIdentity": "", "leaseDurationSeconds": 15, "leaseTransitions": 1});
    let bare = json!({"holderIdentity": "", "leaseTransitions": 1});
    for record in [blank, bare, held("a", 1, 20, 0.2, 3.3)] {
        let history = a_leads().then([
            lease(4.0, 14, &record, Some((11, 1))),
            event(4.1, "b", EventKind::Leading),
            event(6.0, "a", EventKind::Lost),
        ]);
        let mut participants = participants();
        participants.add_foreign(ResourceVersion(14));
        let breaches = messages(&history, &participants);
        let is_found = breaches.iter().any(|breach| breach.starts_with("S1"));
        assert!(is_found, "{record}: {breaches:?}");
    }
}

#[test]
fn an_overlap_with_client_go_is_told_and_not_promised() {
    let history = a_leads().then([event(4.0, "go", EventKind::Leading)]);
    let verdict = verdict(&history);
    assert!(verdict.holds());
    let breach = verdict.breaches().next().unwrap();
    let expected = (Invariant::S1, GuaranteeLevel::AsClientGo);
    assert_eq!((breach.invariant, breach.level), expected);
    let beside = history.then([event(4.1, "b", EventKind::Leading)]);
    let expected = "S1: lease /work: two believed at once: a led and leads on when b began\n\
                    S2: lease /work: b led without having accepted";
    assert_eq!(
        verify(&History::from(beside), &participants()).to_string(),
        expected
    );
}
