//! What an elector tells its observer.

use std::sync::Arc;

use elector_protocol::{Identity, LeaseKey};

use crate::leadership::LeadershipChange;

/// What an elector sees and decides, as values. The log says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Leases and candidates have all been listed: from now on it decides.
    Listed {
        /// How many leases exist or are named by a candidate.
        leases: usize,
    },
    /// A lease changed hands, whoever wrote it.
    LeadershipChanged(LeadershipChange),
    /// A holder is being asked to make room for a better candidate. Told again when the request has to be repeated.
    Preferred {
        /// The lease.
        lease: LeaseKey,
        /// Who holds it.
        holder: Identity,
        /// Who is to follow.
        preferred: Identity,
        /// Why, in one line.
        reason: String,
    },
}

/// Whoever is told what happens.
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;
