//! Waits of a process before it leads, for people: a wait is reported, and decides nothing.

use std::fmt;
use std::time::Duration;

use crate::names::Identity;
use crate::time::Instant;

/// A wait for the next term of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why it waits. Another reason is another wait.
    pub reason: WaitReason,
    /// When this process acquires the lease if nothing else happens, on the holder's clock. `None` where it acquires
    /// nothing.
    pub until: Option<Instant>,
}

/// Why a process does not lead yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// No holder is known, and nothing proves yet that no process leads ([R6](crate::rules#r6)).
    Unproven {
        /// For how long a holder may believe that is not known.
        longest: Duration,
    },
    /// The lease is free, and an elector has its time for a grant ([R18](crate::rules#r18)).
    Fallback,
    /// Another process holds the lease; if it renews no more, that ends with its record ([R4](crate::rules#r4)).
    Held(Identity),
    /// Another life of this identity holds the lease ([R8](crate::rules#r8)).
    FormerLife,
    /// This process acquires nothing: an elector has to grant the lease.
    Elector,
    /// An operator wants this process not to lead ([R16](crate::rules#r16)).
    StandDown,
}

// === impl WaitReason ===

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unproven { longest } => write!(
                f,
                "a process whose Lease was deleted or emptied may still lead, for up to {longest:?}"
            ),
            Self::Fallback => f.write_str("the lease is free, and an elector may grant it"),
            Self::Held(holder) => write!(f, "{holder} holds the lease"),
            Self::FormerLife => f.write_str("an earlier process of this identity holds the lease"),
            Self::Elector => f.write_str("an elector has to grant the lease"),
            Self::StandDown => f.write_str("an operator wants this candidate to stand down"),
        }
    }
}
