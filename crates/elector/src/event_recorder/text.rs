//! The texts of Events: a reason in CamelCase, and a sentence.

use elector_api::{PREFERENCE_HELD_BACK, hold_back_note};
use elector_protocol::elector::{HoldBackNotice, Reason};
use elector_protocol::{Identity, LeaseKey, LeaseSnapshot};
use elector_runtime::EventSeverity::{self, Normal, Warning};
use elector_runtime::RecordedEvent;

use crate::leadership_change::{ChangeCause, LeadershipChange};
use crate::view::LimitHit;

/// `action` of Events about elections.
const ELECT: &str = "Elect";
/// `action` of Events about preferences.
const PREFER: &str = "Prefer";

/// An Event about an election.
fn event(
    key: &LeaseKey,
    lease: Option<&LeaseSnapshot>,
    severity: EventSeverity,
    reason: &'static str,
    note: String,
) -> RecordedEvent {
    RecordedEvent {
        lease: key.clone(),
        uid: lease.map(|lease| lease.uid.clone()),
        version: None,
        severity,
        reason,
        action: ELECT,
        note,
        related: None,
    }
}

pub(super) fn of_change(change: &LeadershipChange, lease: Option<&LeaseSnapshot>) -> RecordedEvent {
    let (reason, severity) = match change.cause {
        ChangeCause::Elected => ("Elected", Normal),
        ChangeCause::Expired => ("Expired", Warning),
        ChangeCause::NotAccepted => ("NotAccepted", Warning),
        ChangeCause::HandedOver => ("HandedOver", Normal),
        ChangeCause::Acquired => ("Acquired", Normal),
        ChangeCause::Resumed => ("Resumed", Normal),
        ChangeCause::Rejoined => ("Rejoined", Normal),
        ChangeCause::Released => ("Released", Normal),
        ChangeCause::Removed => ("Removed", Warning),
        ChangeCause::Deleted => ("Deleted", Warning),
    };
    let (term, why) = (change.term.0, &change.reason);
    let note = match &change.holder {
        Some(holder) => format!("{holder} leads in term {term}: {why}"),
        None => format!("no leader: {why}"),
    };
    RecordedEvent {
        // One with a count would show the leader of the first.
        version: lease.map(|lease| lease.version),
        ..event(&change.lease, lease, severity, reason, note)
    }
}

/// The Event where nothing is elected, `None` where that is not so.
pub(super) fn of_standstill(
    key: &LeaseKey,
    lease: Option<&LeaseSnapshot>,
    reason: &Reason,
) -> Option<RecordedEvent> {
    let (word, severity) = match reason {
        Reason::StrategyConflict(_) => ("StrategyConflict", Warning),
        Reason::NoEligible { .. } => ("NoEligibleCandidate", Warning),
        Reason::NoAck(_) => ("NoCandidateAnswers", Warning),
        Reason::ForeignStrategy(_) => ("ForeignStrategy", Normal),
        Reason::Frozen { .. } => ("Frozen", Normal),
        _ => return None,
    };
    Some(event(key, lease, severity, word, reason.to_string()))
}

pub(super) fn of_builtin(
    key: &LeaseKey,
    lease: Option<&LeaseSnapshot>,
    controller: &Identity,
) -> RecordedEvent {
    let note = format!(
        "the built-in controller is electing: this lease is left to it while {controller} renews its lock"
    );
    event(key, lease, Normal, "BuiltinController", note)
}

pub(super) fn of_limit(hit: &LimitHit, lease: Option<&LeaseSnapshot>) -> RecordedEvent {
    let (reason, note) = match hit {
        LimitHit::Lease { considered, .. } => (
            "CandidatesWait",
            format!(
                "too many candidates: the holder, the preferred one and the oldest are considered, up to {considered}, \
                 the others are not"
            ),
        ),
        LimitHit::Namespace {
            lease, candidates, ..
        } => (
            "NamespaceFull",
            format!(
                "namespace {} has too many candidates: {candidates} are kept, and those that came last, one of this \
                 lease among them, are not",
                lease.namespace
            ),
        ),
        LimitHit::Writes { lease } => (
            "NamespaceHeldUp",
            format!(
                "namespace {} has reached the request limit of a namespace: requests for its leases are delayed",
                lease.namespace
            ),
        ),
    };
    event(hit.lease(), lease, Warning, reason, note)
}

pub(super) fn of_hold_back(
    key: &LeaseKey,
    lease: Option<&LeaseSnapshot>,
    holder: &Identity,
    notice: &HoldBackNotice,
) -> RecordedEvent {
    let note = hold_back_note(holder, notice);
    RecordedEvent {
        // One with a count would show the end of the first.
        version: lease.map(|lease| lease.version),
        action: PREFER,
        ..event(key, lease, Warning, PREFERENCE_HELD_BACK, note)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elector_protocol::{Rejection, StrategyName, Term};

    use super::*;

    #[test]
    fn obstacles_are_events_and_other_reasons_are_not() {
        let id = |name: &str| Identity::new(name).unwrap();
        let remaining = Duration::from_secs(60);
        let strategy = StrategyName::parse("example.com/mine").unwrap();
        for (reason, expected) in [
            (
                Reason::NoEligible {
                    name: id("a"),
                    rejection: Rejection::NoRenewTime,
                    others: 0,
                },
                Some(("NoEligibleCandidate", Warning)),
            ),
            (
                Reason::NoAck(vec![id("a")]),
                Some(("NoCandidateAnswers", Warning)),
            ),
            (
                Reason::ForeignStrategy(strategy),
                Some(("ForeignStrategy", Normal)),
            ),
            (
                Reason::Frozen {
                    holder: id("a"),
                    better: id("b"),
                    remaining,
                },
                Some(("Frozen", Normal)),
            ),
            (Reason::HolderIsBest(id("a")), None),
            (Reason::Missing, None),
        ] {
            let event = of_standstill(&LeaseKey::new("ns", "l"), None, &reason);
            let kind = event.as_ref().map(|event| (event.reason, event.severity));
            assert_eq!(kind, expected);
            assert!(event.is_none_or(|event| event.note == reason.to_string()));
        }
    }

    #[test]
    fn a_change_of_leader_is_a_warning_where_its_holder_did_not_give_the_lease_away() {
        use ChangeCause as Cause;

        for (cause, reason, severity) in [
            (Cause::Elected, "Elected", Normal),
            (Cause::Expired, "Expired", Warning),
            (Cause::NotAccepted, "NotAccepted", Warning),
            (Cause::HandedOver, "HandedOver", Normal),
            (Cause::Acquired, "Acquired", Normal),
            (Cause::Resumed, "Resumed", Normal),
            (Cause::Rejoined, "Rejoined", Normal),
            (Cause::Released, "Released", Normal),
            (Cause::Removed, "Removed", Warning),
            (Cause::Deleted, "Deleted", Warning),
        ] {
            let change = LeadershipChange {
                lease: LeaseKey::new("ns", "l"),
                holder: None,
                term: Term(1),
                previous: None,
                cause,
                reason: "because".to_owned(),
            };
            let event = of_change(&change, None);
            assert_eq!((event.reason, event.severity), (reason, severity));
            assert_eq!(event.note, "no leader: because");
        }
    }
}
