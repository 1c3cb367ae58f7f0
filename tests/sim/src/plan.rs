//! The plan of a run: its processes and its faults, as plain data, drawn from a seed, that can be printed and shrunk.

mod draw;
mod draw_group;
mod draw_wishes;
mod fault;
mod strategy;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::draw::ClockBound;
pub use self::fault::{
    Applied, CandidateTampering, FaultKind, LeaseTampering, PlannedFault, PlannedWord,
    ProcessIndex, Requests, RestartName, WatchClose, WorkEnd,
};
pub use self::strategy::PlannedStrategy;
use crate::names::{ELECTOR_LOCK, lease_name};

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The seed of its draw, and of the jitter of the network.
    pub seed: u64,
    /// The processes and the server.
    pub setup: Setup,
    /// The faults, in the order of time.
    pub faults: Vec<PlannedFault>,
    /// When every fault is over.
    pub faults_end: Duration,
}

/// The processes and the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// True if the server keeps `spec.strategy` and `spec.preferredHolder`.
    pub feature_gate: bool,
    /// True if LeaseCandidates are custom resources.
    pub custom: bool,
    /// True if the server knows no LeaseCandidates at all, so that no elector does anything.
    pub unserved: bool,
    /// The number of leases.
    pub leases: usize,
    /// The electors.
    pub electors: Vec<ProcessHost>,
    /// The most pre-emptions of each elector (R23), where they are fewer than by default.
    #[serde(default)]
    pub preemptions: Vec<u8>,
    /// The longest lease duration that each elector allows for, in seconds, where it is not that of all candidates.
    #[serde(default)]
    pub allows: Vec<u64>,
    /// The locks that the electors take.
    pub locks: ElectorLocks,
    /// The candidates.
    pub candidates: Vec<PlannedCandidate>,
}

/// The locks that electors take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectorLocks {
    /// W and H in seconds of their own lock, where they elect one of themselves; otherwise all of them act.
    pub leader_election: Option<(u64, u64)>,
    /// True if they take the lock of the built-in controller.
    pub builtin: bool,
}

/// The flags of an elector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElectorFlags {
    pub(crate) locks: ElectorLocks,
    pub(crate) preemptions: Option<u8>,
    /// In seconds.
    pub(crate) max_lease_duration: u64,
}

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessHost {
    /// The rate of its clock, in millionths of real time.
    pub rate: u64,
    /// The error of its time of day, in milliseconds.
    pub offset: i64,
    /// The delay of its requests, of their answers and of its watch events, in milliseconds.
    pub latency: u64,
    /// When it starts.
    pub start: Duration,
}

/// A candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCandidate {
    /// Where it runs.
    pub host: ProcessHost,
    /// The number of its lease.
    pub lease: usize,
    /// The number of leases that it stands for, from that one on: more than one as a member of a group.
    #[serde(default = "one")]
    pub parts: usize,
    /// Minor versions: what it behaves as, and its binary.
    pub version: (u64, u64),
    /// W and H in seconds.
    pub timing: (u64, u64),
    /// The time that its work takes to stop.
    pub stop: Duration,
    /// Its way to its terms (R18).
    pub mode: PlannedMode,
    /// The strategy that it wishes for.
    #[serde(default)]
    pub strategy: PlannedStrategy,
    /// The priority that its object is given when it registers; 0 for none.
    #[serde(default)]
    pub priority: u64,
    /// True if it keeps an instance lock, so that its next life may rejoin (R21).
    #[serde(default)]
    pub keeps_lock: bool,
}

/// The way of a candidate to its terms (R18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PlannedMode {
    /// By the grants of electors.
    Elected,
    /// By grants, and by acquisitions where no elector acts.
    Auto,
    /// By acquisitions. It registers no LeaseCandidate.
    Plain,
}

// === impl Setup ===

impl Setup {
    /// The number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.electors.len() + self.candidates.len()
    }

    /// The flags of an elector.
    pub(crate) fn flags(&self, elector: usize) -> ElectorFlags {
        let allows = self.allows.get(elector).copied();
        ElectorFlags {
            locks: self.locks,
            preemptions: self.preemptions.get(elector).copied(),
            max_lease_duration: allows.unwrap_or_else(|| self.longest().max(15)),
        }
    }

    /// Where a process runs.
    #[must_use]
    pub fn host(&self, who: ProcessIndex) -> Option<ProcessHost> {
        let candidate = |index: usize| self.candidates.get(index).map(|it| it.host);
        match who.0.checked_sub(self.electors.len()) {
            Some(index) => candidate(index),
            None => self.electors.get(who.0).copied(),
        }
    }

    /// The rate of the fastest clock by which a process of ours may wait for the end of a term, by lease.
    pub(crate) fn fastest(&self) -> BTreeMap<String, u64> {
        let fastest = |lease| {
            let candidates = self.candidates_of(lease).map(|it| it.host);
            let hosts = self.electors.iter().copied().chain(candidates);
            hosts.map(|host| host.rate).max().unwrap_or_default()
        };
        let leases = 0..self.leases;
        leases.map(|it| (lease_name(it), fastest(it))).collect()
    }

    /// The names of the leases that candidates stand for, and of the lock of the electors.
    pub(crate) fn lease_names(&self) -> impl Iterator<Item = String> + use<> {
        let lock = self.locks.leader_election.map(|_| ELECTOR_LOCK.to_owned());
        (0..self.leases).map(lease_name).chain(lock)
    }

    /// The candidates of a lease.
    pub(crate) fn candidates_of(&self, lease: usize) -> impl Iterator<Item = &PlannedCandidate> {
        let candidates = self.candidates.iter();
        candidates.filter(move |it| it.stands_for(lease))
    }

    /// The strategy by which a lease is elected: the wish of the highest binary version.
    pub(crate) fn strategy(&self, lease: usize) -> PlannedStrategy {
        let wishes = self.candidates_of(lease);
        let wishes = wishes.filter(|it| it.mode != PlannedMode::Plain);
        let highest = wishes.max_by_key(|it| it.version.1);
        highest.map(|it| it.strategy).unwrap_or_default()
    }

    /// The same where no candidate of the lease wishes for another one, so that it does not depend on who is there.
    pub(crate) fn common_strategy(&self, lease: usize) -> Option<PlannedStrategy> {
        let strategy = self.strategy(lease);
        let mut candidates = self.candidates_of(lease);
        let common = candidates.all(|it| it.strategy == strategy);
        common.then_some(strategy)
    }

    /// True if its leases are the parts of a group.
    #[must_use]
    pub fn is_group(&self) -> bool {
        self.candidates.iter().any(PlannedCandidate::is_member)
    }

    /// The longest lease duration of all candidates, in seconds.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let durations = self.candidates.iter().map(|it| it.timing.0);
        durations.max().unwrap_or_default()
    }
}

// === impl PlannedCandidate ===

impl PlannedCandidate {
    /// True if it is a member of a group.
    pub(crate) const fn is_member(&self) -> bool {
        self.parts > 1
    }

    /// True if it stands for the lease of this number.
    pub(crate) fn stands_for(&self, lease: usize) -> bool {
        (self.lease..self.lease + self.parts).contains(&lease)
    }

    /// Its rank under a strategy: the lower one is better.
    pub(crate) fn rank(&self, strategy: PlannedStrategy) -> [u64; 3] {
        strategy.rank(self.version, self.priority)
    }
}

const fn one() -> usize {
    1
}

// === impl RunPlan ===

impl fmt::Display for RunPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setup = Setup {
            electors: Vec::new(),
            candidates: Vec::new(),
            ..self.setup.clone()
        };
        let (seed, end) = (self.seed, self.faults_end);
        writeln!(f, "seed {seed}, all faults over at {end:?}\n  {setup:?}")?;
        for (index, host) in self.setup.electors.iter().enumerate() {
            writeln!(f, "  elector {index}: {host:?}")?;
        }
        for (candidate, index) in self
            .setup
            .candidates
            .iter()
            .zip(self.setup.electors.len()..)
        {
            writeln!(f, "  candidate {index}: {candidate:?}")?;
        }
        for PlannedFault { at, kind } in &self.faults {
            writeln!(f, "  {at:>10.3?}  {kind:?}")?;
        }
        Ok(())
    }
}
