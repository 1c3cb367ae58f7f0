//! The fixed settings of a holder: its name, the lengths of its waits, and the source of its terms.

use std::time::Duration;

use crate::names::{Identity, LifeId};
use crate::strategy::name::StrategyName;
use crate::timing::CandidateTiming;

/// The fixed settings of a holder. The duration of a term cannot change under it ([R11](crate::rules#r11)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HolderConfig {
    /// The identity of this process ([R1](crate::rules#r1)).
    pub identity: Identity,
    /// The lengths of its waits.
    pub timing: CandidateTiming,
    /// The source of its terms.
    pub mode: HolderMode,
    /// The life of this process, where it keeps an instance lock ([R21](crate::rules#r21)).
    pub life: Option<LifeId>,
}

/// The source of a process's terms ([R18](crate::rules#r18)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HolderMode {
    /// It accepts grants, and acquires nothing.
    Elected,
    /// It accepts grants, and acquires a lease that has been free for this time: the elector is away, or may not write.
    Auto {
        /// An elector's time for its grant. 5 s.
        fallback: Duration,
        /// Its way to acquire.
        acquisition: Acquisition,
    },
    /// It acquires a lease as soon as that is free, and accepts no grant.
    Plain(Acquisition),
}

/// A process's way to acquire a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquisition {
    /// The strategy that a Lease is created with, that of the own candidate. A process without a candidate has none.
    pub strategy: Option<StrategyName>,
    /// `W_max` at least: the longest lease duration that any client uses. 15 s ([R6](crate::rules#r6)).
    pub max_lease_duration: Duration,
    /// Overrides the wait for a Lease that is missing or unproven; less than `W_max` counts only where its record has
    /// no strategy. Unset: `W_max` ([R6](crate::rules#r6)).
    pub absent_lease_grace: Option<Duration>,
    /// Which living holders are replaced at once.
    pub takeover: TakeoverPolicy,
}

/// The living holders that an acquisition does not wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TakeoverPolicy {
    /// None: every holder is waited for until its record has expired.
    #[default]
    None,
    /// All but electors, for the lock of the elector that is built into kube-apiserver.
    ///
    /// The one that is displaced goes on for a while, so the process that takes its lock has to wait before it acts.
    /// Two electors at once are harmless ([R17](crate::rules#r17)), so the record of another one counts only for half a
    /// renew deadline: the built-in one has been waiting since the last renewal, and would come first.
    AllButElectors,
}

// === impl HolderMode ===

impl HolderMode {
    /// True if grants are accepted.
    pub(super) const fn accepts(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }

    /// The way to acquire leases, and the wait after they became free.
    pub(super) const fn acquisition(&self) -> Option<(&Acquisition, Duration)> {
        match self {
            Self::Elected => None,
            Self::Auto {
                fallback,
                acquisition,
            } => Some((acquisition, *fallback)),
            Self::Plain(acquisition) => Some((acquisition, Duration::ZERO)),
        }
    }
}

// === impl Acquisition ===

impl Acquisition {
    /// For a process that stands for a lease without a LeaseCandidate: no strategy, the usual waits.
    pub const fn plain() -> Self {
        Self {
            strategy: None,
            max_lease_duration: Duration::from_secs(15),
            absent_lease_grace: None,
            takeover: TakeoverPolicy::None,
        }
    }
}
