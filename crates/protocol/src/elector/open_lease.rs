//! A record that is unheld, late or expired: to be granted, now or soon.

use crate::elector::decision::Vacancy;
use crate::elector::wake::WakeReason;
use crate::lease_watch::ObservedLease;
use crate::names::Identity;
use crate::time::Instant;

/// An unheld, late or expired record.
pub(super) struct OpenLease<'a> {
    pub(super) watched: &'a ObservedLease,
    pub(super) vacancy: Vacancy,
    /// When the round of pings began: late, unheld or expired.
    pub(super) round: Instant,
    /// When the lease may be granted.
    pub(super) ready_at: Instant,
    /// The late, expired or former holder. It is pinged too, but no grant waits for it.
    pub(super) previous_holder: Option<&'a Identity>,
}

// === impl OpenLease ===

impl OpenLease<'_> {
    /// The electee of a grant that expires without an accept.
    pub(super) fn failed(&self) -> Option<&Identity> {
        match &self.vacancy {
            Vacancy::NotAccepted { holder, .. } => Some(holder),
            _ => None,
        }
    }

    /// The event that frees the lease for a grant.
    pub(super) fn ready_when(&self) -> WakeReason {
        match self.vacancy {
            Vacancy::Expired { .. } => WakeReason::Expiry,
            Vacancy::NotAccepted { .. } => WakeReason::AcceptWindow,
            Vacancy::Released | Vacancy::Unheld => WakeReason::ProofOfAbsence,
        }
    }
}
