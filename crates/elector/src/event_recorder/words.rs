//! The words of Events: a reason in CamelCase, and a sentence.

use elector_api::{PREFERENCE_HELD_BACK, hold_back_note};
use elector_protocol::elector::{HoldBackNotice, Reason};
use elector_protocol::{Identity, LeaseKey, LeaseSnapshot};
use elector_runtime::{EventSeverity, RecordedEvent};

use crate::leadership_change::{ChangeCause, LeadershipChange};
use crate::view::LimitHit;

/// An Event's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventWords {
    pub(super) reason: &'static str,
    severity: EventSeverity,
    action: &'static str,
    note: String,
}

/// `action` of what is told of elections.
const ELECT: &str = "Elect";
/// `action` of what is told of preferences.
const PREFER: &str = "Prefer";

// === impl EventWords ===

impl EventWords {
    pub(super) fn of_change(change: &LeadershipChange) -> Self {
        use EventSeverity::{Normal, Warning};

        let (reason, severity) = match change.cause {
            ChangeCause::Elected => ("Elected", Normal),
            ChangeCause::Expired => ("Expired", Warning),
            ChangeCause::NotAccepted => ("NotAccepted", Warning),
            ChangeCause::HandedOver => ("HandedOver", Normal),
            ChangeCause::Acquired => ("Acquired", Normal),
            ChangeCause::Released => ("Released", Normal),
            ChangeCause::Removed => ("Removed", Warning),
            ChangeCause::Deleted => ("Deleted", Warning),
        };
        let (term, why) = (change.term.0, &change.reason);
        let note = match &change.holder {
            Some(holder) => format!("{holder} leads in term {term}: {why}"),
            None => format!("nobody leads: {why}"),
        };
        Self {
            reason,
            severity,
            action: ELECT,
            note,
        }
    }

    /// The words where nothing is elected, `None` where that is not so.
    pub(super) fn of_standstill(reason: &Reason) -> Option<Self> {
        use EventSeverity::{Normal, Warning};

        let (word, severity) = match reason {
            Reason::StrategyConflict(_) => ("StrategyConflict", Warning),
            Reason::NoEligible { .. } => ("NoEligibleCandidate", Warning),
            Reason::NoAck(_) => ("NoCandidateAnswers", Warning),
            Reason::ForeignStrategy(_) => ("ForeignStrategy", Normal),
            Reason::Frozen { .. } => ("Frozen", Normal),
            _ => return None,
        };
        Some(Self {
            reason: word,
            severity,
            action: ELECT,
            note: reason.to_string(),
        })
    }

    pub(super) fn of_builtin(controller: &Identity) -> Self {
        Self {
            reason: "BuiltinController",
            severity: EventSeverity::Normal,
            action: ELECT,
            note: format!(
                "the built-in controller is electing: this lease is left to it while {controller} renews its lock"
            ),
        }
    }

    pub(super) fn of_limit(hit: &LimitHit) -> Self {
        let (reason, note) = match hit {
            LimitHit::Lease { considered, .. } => (
                "CandidatesWait",
                format!(
                    "more candidates than are considered: the holder, the preferred one and the oldest are, up to \
                     {considered}, and the others wait"
                ),
            ),
            LimitHit::Namespace {
                lease, candidates, ..
            } => (
                "NamespaceFull",
                format!(
                    "namespace {} has more candidates than are kept: {candidates} are, and those that came last, as one \
                     of this lease, are left out",
                    lease.namespace
                ),
            ),
            LimitHit::Writes { lease } => (
                "NamespaceHeldUp",
                format!(
                    "the leases of namespace {} cost more requests than one namespace may: they wait for each other",
                    lease.namespace
                ),
            ),
        };
        Self {
            reason,
            severity: EventSeverity::Warning,
            action: ELECT,
            note,
        }
    }

    pub(super) fn of_hold_back(holder: &Identity, notice: &HoldBackNotice) -> Self {
        Self {
            reason: PREFERENCE_HELD_BACK,
            severity: EventSeverity::Warning,
            action: PREFER,
            note: hold_back_note(holder, notice),
        }
    }

    pub(super) fn event(self, key: &LeaseKey, lease: Option<&LeaseSnapshot>) -> RecordedEvent {
        RecordedEvent {
            lease: key.clone(),
            uid: lease.map(|lease| lease.uid.clone()),
            version: None,
            severity: self.severity,
            reason: self.reason,
            action: self.action,
            note: self.note,
            related: None,
        }
    }
}
