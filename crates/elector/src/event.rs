//! Events for an elector's observer.

use std::sync::Arc;

use elector_protocol::elector::Reason;
use elector_protocol::{Identity, LeaseKey, Term};
use tracing::{info, warn};

use crate::leadership_change::LeadershipChange;
use crate::view::LimitHit;

/// A finding or decision of an elector. The log says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Leases and candidates have all been listed: from now on it decides.
    Listed {
        /// The leases that exist or are named by a candidate.
        leases: usize,
    },
    /// This elector leads the electors: it acts, and the others stand by. Only with leader election among electors.
    Leading {
        /// The lock of the electors.
        lease: LeaseKey,
        /// Its term.
        term: Term,
    },
    /// This elector does not lead the electors: it watches and writes nothing. Only with leader election among electors;
    /// reported for each elector that leads in its place.
    StandingBy {
        /// The lock of the electors.
        lease: LeaseKey,
        /// The elector that holds it, where that is another one.
        holder: Option<Identity>,
        /// Why, in one line.
        reason: String,
    },
    /// A lease changed hands; this elector or any other process wrote it.
    LeadershipChanged(LeadershipChange),
    /// A holder is being asked to make room for a better candidate. Reported again when the request has to be repeated.
    Preferred {
        /// The lease.
        lease: LeaseKey,
        /// Its holder.
        holder: Identity,
        /// The candidate that is to follow.
        preferred: Identity,
        /// Why, in one line.
        reason: String,
    },
    /// More candidates name a lease than are considered: the holder, the preferred one and the oldest objects are, and the
    /// others wait. Reported again only after a quarter of the places was free.
    CandidatesWait {
        /// The lease.
        lease: LeaseKey,
        /// The number considered.
        considered: usize,
    },
    /// A namespace has more candidates than are kept; those that came last are left out until leases and candidates are
    /// listed again. Reported again only after a tenth of the room was free.
    NamespaceFull {
        /// The lease that the first candidate names which is left out.
        lease: LeaseKey,
        /// The candidates kept.
        candidates: usize,
        /// About how many bytes are kept of them.
        bytes: usize,
    },
    /// The leases of a namespace have had all the requests that a namespace may cost, and wait from time to time until
    /// there is room again. Reported at most every ten minutes.
    NamespaceHeldUp {
        /// The lease whose requests were too many.
        lease: LeaseKey,
    },
}

/// The function that receives each event.
pub(crate) type ElectorObserver = Arc<dyn Fn(&Event) + Send + Sync>;

// === impl Event ===

impl Event {
    /// The limit that was hit.
    pub(crate) fn of_limit(hit: LimitHit) -> Self {
        match hit {
            LimitHit::Lease { lease, considered } => Self::CandidatesWait { lease, considered },
            LimitHit::Namespace {
                lease,
                candidates,
                bytes,
            } => Self::NamespaceFull {
                lease,
                candidates,
                bytes,
            },
            LimitHit::Writes { lease } => Self::NamespaceHeldUp { lease },
        }
    }

    /// The request to a holder that follows from a decision for this reason, if one does.
    pub(crate) fn of_preference(lease: &LeaseKey, reason: &Reason) -> Option<Self> {
        let Reason::Preferred {
            preferred, holder, ..
        } = reason
        else {
            return None;
        };
        Some(Self::Preferred {
            lease: lease.clone(),
            holder: holder.clone(),
            preferred: preferred.clone(),
            reason: reason.to_string(),
        })
    }

    /// One line about what happened; a decision has one of its own. `left_out` lines of the namespace were left out
    /// before, if any.
    pub(crate) fn log(&self, left_out: Option<u64>) {
        match self {
            Self::Listed { leases } => info!(leases, "leases and candidates are listed"),
            Self::Leading { lease, term } => {
                info!(lease = %lease, term = term.0, "leading the electors");
            }
            Self::StandingBy { lease, reason, .. } => {
                info!(lease = %lease, reason, "standing by");
            }
            Self::LeadershipChanged(change) => {
                let name = |identity: &Option<Identity>| {
                    identity
                        .as_ref()
                        .map_or_else(String::new, Identity::to_string)
                };
                info!(
                    lease = %change.lease,
                    holder = name(&change.holder),
                    term = change.term.0,
                    previous = name(&change.previous),
                    reason = change.reason,
                    left_out,
                    "leadership changed"
                );
            }
            Self::Preferred { .. } => {}
            Self::CandidatesWait { lease, considered } => warn!(
                lease = %lease,
                considered,
                "too many candidates: the holder, the preferred one and the oldest are considered, the others are not"
            ),
            Self::NamespaceFull {
                lease,
                candidates,
                bytes,
            } => warn!(
                namespace = %lease.namespace,
                candidates,
                bytes,
                "too many candidates in the namespace: those that came last are not kept"
            ),
            Self::NamespaceHeldUp { lease } => warn!(
                namespace = %lease.namespace,
                lease = %lease.name,
                "request limit of the namespace reached: requests for its leases are delayed"
            ),
        }
    }
}
