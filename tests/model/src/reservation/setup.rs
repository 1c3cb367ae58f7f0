//! The setup of a system with holders as client-go makes them.

use std::time::Duration;

use super::super::timing::Timing;

/// Candidates of unmodified client-go, and electors that may reserve (R3 d).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Reservation {
    /// Which electors reserve.
    pub(in super::super) by: [bool; 2],
    /// From where a holder counts its deadline.
    pub(in super::super) counts: Counts,
    /// W of the holders, and `W_max` of the electors.
    pub(in super::super) duration: Duration,
}

/// From where a holder counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Counts {
    /// From the sending of its last successful write.
    FromSend,
    /// From the reply, which it waits for as long as this.
    FromReply(Duration),
}

/// W of the holders, unless a run says otherwise.
const LEASE_DURATION: Duration = Duration::from_secs(Timing::USUAL.lease);

// === impl Reservation ===

impl Reservation {
    /// Every elector reserves, and holders count from the send.
    pub(in super::super) const RULES: Self = Self {
        by: [true, true],
        counts: Counts::FromSend,
        duration: LEASE_DURATION,
    };
}
