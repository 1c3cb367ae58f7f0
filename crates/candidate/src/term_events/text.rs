//! The texts of Events about terms: a reason in CamelCase, and a sentence.

use elector_protocol::Identity;
use elector_runtime::EventSeverity;

use crate::event::TermOrigin;
use crate::outcome::TermEnd;

/// The content of an Event about a term.
pub(super) struct TermEventText {
    pub(super) reason: &'static str,
    pub(super) severity: EventSeverity,
    pub(super) action: &'static str,
    pub(super) note: String,
}

// === impl TermEventText ===

impl TermEventText {
    pub(super) fn of_begin(identity: &Identity, term: i32, token: u64, by: TermOrigin) -> Self {
        let how = match by {
            TermOrigin::Acquired { .. } => "acquired without an elector",
            TermOrigin::Resumed => "nobody had taken the lease since it lapsed",
            TermOrigin::Rejoined => "an earlier life of this instance held the lease, and is dead",
            TermOrigin::Granted | TermOrigin::Disabled => "granted by an elector",
        };
        Self {
            reason: "BecameLeader",
            severity: EventSeverity::Normal,
            action: "Lead",
            note: format!("{identity} became leader in term {term}, token {token}: {how}"),
        }
    }

    pub(super) fn of_end(identity: &Identity, term: i32, end: &TermEnd) -> Self {
        use EventSeverity::{Normal, Warning};

        let (reason, severity, note) = match end {
            TermEnd::HandedOver { to } => (
                "LeadershipHandedOver",
                Normal,
                format!("{identity} handed the lease over to {to} after term {term}"),
            ),
            TermEnd::Released => (
                "LeadershipReleased",
                Normal,
                format!("{identity} released the lease after term {term}"),
            ),
            TermEnd::Lost(loss) => (
                "LeadershipLost",
                Warning,
                format!(
                    "{identity} lost the lease in term {term}, {}: {loss}",
                    end.cause()
                ),
            ),
            TermEnd::Unconfirmed => (
                "LeadershipUnconfirmed",
                Warning,
                format!(
                    "{identity} gave the lease up after term {term}, unconfirmed by the server"
                ),
            ),
            TermEnd::WorkStillRuns => (
                "WorkStillRuns",
                Warning,
                format!(
                    "{identity} leaves the lease to expire after term {term}: the work does not stop"
                ),
            ),
        };
        Self {
            reason,
            severity,
            action: "StopLeading",
            note,
        }
    }
}
