//! The setup of a system whose processes acquire leases themselves.

use std::time::Duration;

use elector_protocol::StrategyName;
use elector_protocol::holder::{Acquisition, HolderMode, TakeoverPolicy};

/// Processes that acquire, and what is unusual about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct AcquisitionSetup {
    /// The way of the processes to their terms.
    pub(in super::super) mode: ModelMode,
    /// The longest lease duration given to the processes; W, if none.
    pub(in super::super) flag: Option<Duration>,
    /// Overrides the wait for a Lease that is missing or unproven.
    pub(in super::super) grace: Option<Duration>,
    /// True if the first process bears another name in every second life.
    pub(in super::super) renames: bool,
    /// True if an elector may ping at any time, whatever becomes of it.
    pub(in super::super) pinged: bool,
    /// True if the electors may write the Lease.
    pub(in super::super) electors_write: bool,
    /// True if the first candidate is better than the others, so that they are asked to make room.
    pub(in super::super) ranked: bool,
    /// Where the lease is a lock of electors, of which two may believe (R17).
    pub(in super::super) lock: Option<ModelLock>,
}

/// The way of a process to its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ModelMode {
    /// It acquires as soon as the lease is free.
    Plain,
    /// It accepts grants, and acquires after the fallback.
    Auto,
}

/// A lock that electors hold, at times beside the elector that is built into kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct ModelLock {
    /// The number of electors; the other processes are built-in ones. That one waits as any holder does, and it
    /// goes on until its own deadline where its watch lags as far.
    pub(in super::super) electors: usize,
    /// True if a holder that is no elector is replaced at once.
    pub(in super::super) displaces: bool,
    /// The wait of an elector that took the lock, before it acts.
    pub(in super::super) quiet: Duration,
}

/// More than an acquisition may be delayed without a look at the Lease (R18).
const LATE: Duration = Duration::from_secs(1);

/// The time for which a lease is free before a process in auto mode takes it: a tick of any clock.
pub(super) const FALLBACK: Duration = Duration::from_secs(2);

// === impl AcquisitionSetup ===

impl AcquisitionSetup {
    /// Processes in plain mode.
    pub(in super::super) const PLAIN: Self = Self {
        mode: ModelMode::Plain,
        flag: None,
        grace: None,
        renames: false,
        pinged: false,
        electors_write: true,
        ranked: false,
        lock: None,
    };
    /// Processes in auto mode.
    pub(in super::super) const AUTO: Self = Self {
        mode: ModelMode::Auto,
        ..Self::PLAIN
    };

    /// True if its waits are those of the rules.
    pub(in super::super) fn is_as_shipped(self) -> bool {
        self.grace.is_none() || self.lock.is_some()
    }

    /// True if the process of an index is an elector that holds a lock.
    pub(super) fn is_elector(&self, index: usize) -> bool {
        self.lock.is_some_and(|lock| index < lock.electors)
    }

    /// True if the process of an index is the elector that is built in.
    pub(super) fn is_builtin(&self, index: usize) -> bool {
        self.lock.is_some_and(|lock| index >= lock.electors)
    }

    /// The mode of the production holder of an index.
    pub(super) fn holder_mode(&self, index: usize, longest: Duration) -> HolderMode {
        let acquisition = |strategy| Acquisition {
            strategy,
            max_lease_duration: self.flag.unwrap_or(longest),
            absent_lease_grace: self.grace.filter(|_| !self.is_builtin(index)),
            takeover: if self.is_elector(index) && self.lock.is_some_and(|lock| lock.displaces) {
                TakeoverPolicy::AllButElectors
            } else {
                TakeoverPolicy::None
            },
        };
        match self.mode {
            ModelMode::Plain => HolderMode::Plain(acquisition(None)),
            ModelMode::Auto => HolderMode::Auto {
                fallback: FALLBACK,
                acquisition: acquisition(Some(StrategyName::oldest_emulation_version())),
            },
        }
    }

    /// The longest wait of a process after what it saw, and until its acquisition is late.
    pub(super) fn longest_wait(&self, longest: Duration) -> Duration {
        LATE + match self.mode {
            ModelMode::Plain => longest,
            ModelMode::Auto => longest + FALLBACK,
        }
    }
}
