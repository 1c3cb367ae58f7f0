//! The plan of a run: its processes and its faults, as plain data, drawn from a seed, that can be printed and shrunk.

mod draw;

use std::fmt;
use std::time::Duration;

pub use self::draw::ClockBound;
use crate::names::{ELECTOR_LOCK, lease_name};

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// What it was drawn from; also seeds the jitter of the network.
    pub seed: u64,
    /// The processes and the server.
    pub setup: Setup,
    /// The faults, in the order of time.
    pub faults: Vec<PlannedFault>,
    /// When every fault is over.
    pub faults_end: Duration,
}

/// The processes and the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Whether the server keeps `spec.strategy` and `spec.preferredHolder`.
    pub feature_gate: bool,
    /// Whether LeaseCandidates are custom resources.
    pub custom: bool,
    /// Whether the server knows no LeaseCandidates at all, so that no elector does anything.
    pub unserved: bool,
    /// How many leases there are.
    pub leases: usize,
    /// The electors.
    pub electors: Vec<ProcessHost>,
    /// The locks that the electors take.
    pub locks: ElectorLocks,
    /// The candidates.
    pub candidates: Vec<PlannedCandidate>,
}

/// The locks that electors take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElectorLocks {
    /// W and H in seconds of their own lock, where they elect one of themselves; otherwise all of them act.
    pub leader_election: Option<(u64, u64)>,
    /// Whether they take the lock of the built-in controller.
    pub builtin: bool,
}

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessHost {
    /// How fast its clock runs, in millionths of real time.
    pub rate: u64,
    /// How far its time of day is off, in milliseconds.
    pub offset: i64,
    /// How long its requests, their answers and what its watches tell are on the way, in milliseconds.
    pub latency: u64,
    /// When it starts.
    pub start: Duration,
}

/// A candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCandidate {
    /// Where it runs.
    pub host: ProcessHost,
    /// The number of its lease.
    pub lease: usize,
    /// Minor versions: what it behaves as, and its binary.
    pub version: (u64, u64),
    /// W and H in seconds.
    pub timing: (u64, u64),
    /// How long its work takes to stop.
    pub stop: Duration,
    /// How it comes by its terms (R18).
    pub mode: PlannedMode,
}

/// How a candidate comes by its terms (R18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlannedMode {
    /// By the grants of electors.
    Elected,
    /// By grants, and by acquisitions where no elector acts.
    Auto,
    /// By acquisitions. It registers no LeaseCandidate.
    Plain,
}

/// A fault at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// When, since the start of the run.
    pub at: Duration,
    /// Its kind.
    pub kind: FaultKind,
}

/// A process: electors first, then candidates, each in the order of the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessIndex(pub usize);

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requests {
    /// All.
    All,
    /// Every read and watch.
    Reads,
    /// Every write.
    Writes,
    /// Writes of existing objects.
    Updates,
    /// POST.
    Creates,
}

/// A kind of fault. Times are how long it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A process dies and is started again, under the same name or a new one.
    Crash(ProcessIndex, Duration, RestartName),
    /// A process is told to end, and is started again.
    ShutDown(ProcessIndex, Duration),
    /// A process is stopped in the middle of what it does.
    Pause(ProcessIndex, Duration),
    /// Nothing gets through to a process and from it.
    Partition(ProcessIndex, Duration),
    /// Everything to and from a process takes so many milliseconds more.
    Slow(ProcessIndex, u64, Duration),
    /// The watches of a process fall silent.
    Freeze(ProcessIndex, Duration),
    /// The watches of a process end, properly or in the middle of a line.
    EndWatches(ProcessIndex, WatchClose),
    /// A process is served by a cache that is so many revisions old.
    OldCache(ProcessIndex, u64, Duration),
    /// So many requests are answered with this status; `applied`: although they were carried out.
    Refuse(ProcessIndex, Requests, u16, Applied, u32),
    /// So many requests are lost, or their answers are.
    Lose(ProcessIndex, Requests, Applied, u32),
    /// So many requests arrive late, when the client has given them up.
    Delay(ProcessIndex, Requests, Duration, u32),
    /// So many requests arrive a second time.
    Repeat(ProcessIndex, Requests, Duration, u32),
    /// The server forgets its history.
    Compact,
    /// The time of day of a process is set, by so many milliseconds.
    StepClock(ProcessIndex, i64),
    /// The elector's clock of a process stands still, as while a machine sleeps.
    StopClock(ProcessIndex, Duration),
    /// A stranger writes to a Lease what no rule allows.
    TamperWithLease(usize, LeaseTampering),
    /// The same with the lock of the electors.
    TamperWithLock(LeaseTampering),
    /// A stranger deletes the LeaseCandidate of a process, or writes nonsense into it.
    TamperWithCandidate(ProcessIndex, CandidateTampering),
    /// A second process takes the name of a candidate.
    Twin(ProcessIndex, Duration),
    /// A client that knows nothing of candidates wants the lease.
    Plain(usize, Duration),
    /// An elector as it is built into Kubernetes takes part.
    Builtin(usize, Duration),
    /// A client registers the best candidate, which accepts nothing, and keeps each of its names for so long.
    IdleCandidate(usize, Duration, Duration),
    /// Every elector dies at once, and all of them stay away.
    ElectorsAway(Duration),
    /// A process may read, but every write of it is refused, as when its permissions are removed.
    Forbid(ProcessIndex, Duration),
}

/// Under which name a process is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RestartName {
    /// A new one.
    New,
    /// The one that it had.
    Same,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchClose {
    /// As at its timeout.
    Closed,
    /// In the middle.
    Broken,
}

/// Whether a request that failed was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Applied {
    /// It was.
    Yes,
    /// It was not.
    No,
}

/// A change that a stranger makes to a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseTampering {
    /// Deletes it.
    Delete,
    /// Takes the holder away and leaves the rest.
    Blank,
    /// Makes it look new-born, but for the term.
    Bare,
    /// Writes it back as it was created, as from a manifest that was saved then.
    Restore,
    /// Writes a holder of its own.
    Seize,
    /// Gives the term one second.
    Shorten,
    /// Writes nonsense into annotations and times, and names the same holder.
    Nonsense,
    /// Leaves something that cannot be read, for some seconds.
    Unreadable,
    /// Gives the election to another elector, until the faults are over: no process of ours begins a term.
    Strategy,
}

/// A change that a stranger makes to a LeaseCandidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CandidateTampering {
    /// Deletes it.
    Delete,
    /// Writes another version.
    Version,
    /// Writes times at the end of time.
    Times,
    /// Writes a version that cannot be read.
    Unreadable,
}

/// The kinds of faults, for counting.
pub const KINDS: [&str; 24] = [
    "crash",
    "shut down",
    "pause",
    "partition",
    "slow",
    "freeze watches",
    "end watches",
    "old cache",
    "refuse",
    "lose",
    "delay",
    "repeat",
    "compact",
    "step clock",
    "stop clock",
    "tamper with lease",
    "tamper with candidate",
    "twin",
    "plain client",
    "built-in elector",
    "electors away",
    "may not write",
    "tamper with the electors' lock",
    "idle candidate",
];

// === impl Setup ===

impl Setup {
    /// The number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.electors.len() + self.candidates.len()
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

    /// The names of the leases that candidates stand for, and of the lock of the electors.
    pub(crate) fn lease_names(&self) -> impl Iterator<Item = String> + use<> {
        let lock = self.locks.leader_election.map(|_| ELECTOR_LOCK.to_owned());
        (0..self.leases).map(lease_name).chain(lock)
    }

    /// The candidates of a lease.
    pub(crate) fn candidates_of(&self, lease: usize) -> impl Iterator<Item = &PlannedCandidate> {
        self.candidates.iter().filter(move |it| it.lease == lease)
    }

    /// The longest lease duration of all candidates, in seconds.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let durations = self.candidates.iter().map(|it| it.timing.0);
        durations.max().unwrap_or_default().max(15)
    }
}

// === impl FaultKind ===

impl FaultKind {
    /// Its index in [`KINDS`].
    #[must_use]
    pub const fn index(&self) -> usize {
        match self {
            Self::Crash(..) => 0,
            Self::ShutDown(..) => 1,
            Self::Pause(..) => 2,
            Self::Partition(..) => 3,
            Self::Slow(..) => 4,
            Self::Freeze(..) => 5,
            Self::EndWatches(..) => 6,
            Self::OldCache(..) => 7,
            Self::Refuse(..) => 8,
            Self::Lose(..) => 9,
            Self::Delay(..) => 10,
            Self::Repeat(..) => 11,
            Self::Compact => 12,
            Self::StepClock(..) => 13,
            Self::StopClock(..) => 14,
            Self::TamperWithLease(..) => 15,
            Self::TamperWithCandidate(..) => 16,
            Self::Twin(..) => 17,
            Self::Plain(..) => 18,
            Self::Builtin(..) => 19,
            Self::ElectorsAway(..) => 20,
            Self::Forbid(..) => 21,
            Self::TamperWithLock(_) => 22,
            Self::IdleCandidate(..) => 23,
        }
    }

    /// The process that it is for.
    pub(crate) const fn who(&self) -> Option<ProcessIndex> {
        match self {
            Self::Crash(who, ..)
            | Self::ShutDown(who, ..)
            | Self::Pause(who, ..)
            | Self::Partition(who, ..)
            | Self::Slow(who, ..)
            | Self::Freeze(who, ..)
            | Self::EndWatches(who, ..)
            | Self::OldCache(who, ..)
            | Self::Refuse(who, ..)
            | Self::Lose(who, ..)
            | Self::Delay(who, ..)
            | Self::Repeat(who, ..)
            | Self::StepClock(who, ..)
            | Self::StopClock(who, ..)
            | Self::TamperWithCandidate(who, ..)
            | Self::Twin(who, ..)
            | Self::Forbid(who, ..) => Some(*who),
            Self::Compact
            | Self::TamperWithLease(..)
            | Self::TamperWithLock(_)
            | Self::Plain(..)
            | Self::Builtin(..)
            | Self::IdleCandidate(..)
            | Self::ElectorsAway(..) => None,
        }
    }

    /// Whether something is done when it is over.
    pub(crate) const fn ends(&self) -> bool {
        matches!(
            self,
            Self::Crash(..)
                | Self::ShutDown(..)
                | Self::Pause(..)
                | Self::Partition(..)
                | Self::Slow(..)
                | Self::Freeze(..)
                | Self::OldCache(..)
                | Self::StopClock(..)
                | Self::Twin(..)
                | Self::Plain(..)
                | Self::Builtin(..)
                | Self::ElectorsAway(..)
                | Self::Forbid(..)
        )
    }
}

// === impl RunPlan ===

impl fmt::Display for RunPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setup = &self.setup;
        writeln!(
            f,
            "seed {}: {} lease(s), feature gate {}, candidates {}, all faults over at {:?}",
            self.seed,
            setup.leases,
            if setup.feature_gate { "on" } else { "off" },
            match (setup.unserved, setup.custom) {
                (true, _) => "unknown",
                (false, true) => "custom",
                (false, false) => "native",
            },
            self.faults_end
        )?;
        if let Some((w, h)) = setup.locks.leader_election {
            writeln!(
                f,
                "  the electors elect one of themselves: W {w} s, H {h} s"
            )?;
        }
        if setup.locks.builtin {
            writeln!(f, "  the electors take the lock of the built-in controller")?;
        }
        for (index, host) in setup.electors.iter().enumerate() {
            writeln!(f, "  elector {index}: {host}")?;
        }
        for (index, candidate) in setup.candidates.iter().enumerate() {
            let index = setup.electors.len() + index;
            let (emulation, binary) = candidate.version;
            let (w, h) = candidate.timing;
            writeln!(
                f,
                "  candidate {index}: lease {}, {:?}, 1.{emulation} of 1.{binary}, W {w} s, H {h} s, stops in {:?}, {}",
                candidate.lease, candidate.mode, candidate.stop, candidate.host
            )?;
        }
        for fault in &self.faults {
            writeln!(f, "  {:>9.3} s  {:?}", fault.at.as_secs_f64(), fault.kind)?;
        }
        Ok(())
    }
}

impl fmt::Display for ProcessHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rate,
            offset,
            latency,
            start,
        } = self;
        write!(
            f,
            "clock {rate} ppm {offset:+} ms, latency {latency} ms, starts at {start:?}"
        )
    }
}
