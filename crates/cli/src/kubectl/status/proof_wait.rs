//! The wait for the proof that no former holder leads any more (R6): of a Lease that is missing, or was born unheld.

use std::time::Duration;

use elector_protocol::elector::{Explanation, Objects, Reason, Settings};
use elector_protocol::{LONGEST_LEASE, Timestamp};

/// The longest wait for a lease, as far as objects tell.
#[derive(Debug)]
pub(super) struct ProofWait {
    /// When it is free at the latest.
    pub(super) until: Timestamp,
    /// The reason of the wait.
    pub(super) why: String,
}

// === impl ProofWait ===

impl ProofWait {
    /// The wait of that lease at `now`, if it is waited for. No object tells since when a Lease is missing, so that wait may
    /// begin now; that of a born record began when it was created.
    pub(super) fn of(
        election: &Objects,
        told: &Explanation,
        now: Timestamp,
        settings: &Settings,
    ) -> Option<Self> {
        let (remaining, why) = match (&election.lease, &told.reason) {
            (Some(_), reason @ Reason::AwaitProof { remaining }) => {
                (*remaining, reason.to_string())
            }
            (None, reason @ (Reason::Granted { .. } | Reason::AwaitAck(_) | Reason::NoAck(_))) => {
                let longest = longest_lease(election, settings);
                let next = match reason {
                    Reason::Granted { to, because, .. } => format!("{to} {because}"),
                    other => other.to_string(),
                };
                let seconds = longest.as_secs();
                (
                    longest,
                    format!(
                        "no Lease exists, and one that was deleted may have a leader for another {seconds}s; {next}"
                    ),
                )
            }
            _ => return None,
        };
        let micros = i64::try_from(remaining.as_micros()).ok()?;
        Some(Self {
            until: Timestamp::from_micros(now.as_micros().saturating_add(micros))?,
            why,
        })
    }
}

/// `W_max`, where electors have their usual flag.
fn longest_lease(election: &Objects, settings: &Settings) -> Duration {
    let announced = election.candidates.iter();
    let announced = announced.filter_map(|candidate| candidate.announced).max();
    announced
        .unwrap_or_default()
        .max(settings.timing.max_lease_duration)
        .min(LONGEST_LEASE)
}
