//! A record that is unheld, late or expired, as a grant looks at it.

use crate::elector::decision::GrantCause;
use crate::elector::wake::WakeReason;
use crate::lease_watch::ObservedLease;
use crate::names::Identity;
use crate::time::Instant;

/// A record that is unheld, late or expired: to be granted now or soon.
pub(super) struct FreeLease<'a> {
    pub(super) watched: &'a ObservedLease,
    pub(super) cause: GrantCause,
    /// When the round of pings began: late, unheld or expired.
    pub(super) round: Instant,
    /// When the lease may be granted.
    pub(super) ready_at: Instant,
    /// The late, expired or former holder. It is pinged too, but no grant waits for it.
    pub(super) previous_holder: Option<&'a Identity>,
}

// === impl FreeLease ===

impl FreeLease<'_> {
    /// The electee of a grant that expires without an accept.
    pub(super) fn failed(&self) -> Option<&Identity> {
        match &self.cause {
            GrantCause::NotAccepted { holder, .. } => Some(holder),
            _ => None,
        }
    }

    /// The event that frees the lease for a grant.
    pub(super) fn ready_when(&self) -> WakeReason {
        match self.cause {
            GrantCause::Expired { .. } => WakeReason::Expiry,
            GrantCause::NotAccepted { .. } => WakeReason::AcceptWindow,
            GrantCause::Released | GrantCause::Unheld => WakeReason::ProofOfAbsence,
        }
    }
}
