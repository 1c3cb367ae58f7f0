//! The faults of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// When, since the start of the run.
    pub at: Duration,
    /// Its kind.
    pub kind: FaultKind,
}

/// A process: electors first, then candidates, each in the order of the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIndex(pub usize);

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// A process dies and is started again, under the same name or a new one.
    Crash(ProcessIndex, Duration, RestartName),
    /// A process is asked to end, and is started again.
    ShutDown(ProcessIndex, Duration),
    /// A process is stopped in the middle of what it does.
    Pause(ProcessIndex, Duration),
    /// Nothing gets through to a process and from it.
    Partition(ProcessIndex, Duration),
    /// Everything to and from a process takes this number of milliseconds more.
    Slow(ProcessIndex, u64, Duration),
    /// The watches of a process fall silent.
    Freeze(ProcessIndex, Duration),
    /// The watches of a process end, properly or in the middle of a line.
    EndWatches(ProcessIndex, WatchClose),
    /// A process is served by a cache that is this number of revisions old.
    OldCache(ProcessIndex, u64, Duration),
    /// This number of requests is answered with this status; `applied`: although they were carried out.
    Refuse(ProcessIndex, Requests, u16, Applied, u32),
    /// This number of requests is lost, or their answers are.
    Lose(ProcessIndex, Requests, Applied, u32),
    /// This number of requests arrives late, when the client has given them up.
    Delay(ProcessIndex, Requests, Duration, u32),
    /// This number of requests arrives a second time.
    Repeat(ProcessIndex, Requests, Duration, u32),
    /// The server forgets its history.
    Compact,
    /// The store is restored from a backup of this age, and counts on from a higher revision. `true`: each Lease is given a
    /// new one before all else.
    RestoreStore(Duration, bool),
    /// The time of day of a process is set, by this number of milliseconds.
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
    /// A candidate as client-go's coordinated leader election is one wants the lease.
    ClientGoCandidate(usize, Duration),
    /// An elector as it is built into Kubernetes takes part.
    Builtin(usize, Duration),
    /// A client registers the best candidate, which accepts nothing, and keeps each of its names for this time.
    IdleCandidate(usize, Duration, Duration),
    /// Every elector dies at once, and all of them stay away.
    ElectorsAway(Duration),
    /// A process may read, but every write of it is refused, as when its permissions are removed.
    Forbid(ProcessIndex, Duration),
    /// An operator annotates a lease, and takes that back.
    Say(usize, PlannedWord, Duration),
    /// An operator has the candidate of a process stand down, until a time after that or without one, and takes that back.
    StandDown(ProcessIndex, Option<Duration>, Duration),
    /// The work of the leader of a lease ends or goes on against its orders; a process that ends is started again.
    SpoilWork(usize, WorkEnd, Duration),
    /// A built-in controller takes and keeps its lock, as far as electors let it.
    HoldLock(Duration),
    /// The server serves no LeaseCandidates, as while its versions change.
    HideCandidates(Duration),
    /// The server serves an older version of the LeaseCandidates alone, as of an older release, and both after that.
    DowngradeCandidates(Duration),
    /// A tenant fills a namespace of its own, under the names of our leases and candidates, and spoils what is there.
    FloodNamespace(Duration),
}

/// The end of work that does not follow its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WorkEnd {
    /// It returns.
    Returns,
    /// It returns an error.
    Fails,
    /// It panics.
    Panics,
    /// It never stops.
    Never,
}

/// A word of an operator on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PlannedWord {
    /// It is frozen.
    Freeze,
    /// This process is preferred, if it is a candidate.
    Prefer(ProcessIndex),
}

/// Under which name a process is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RestartName {
    /// A new one.
    New,
    /// The one that it had.
    Same,
}

/// The end of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WatchClose {
    /// As at its timeout.
    Closed,
    /// In the middle.
    Broken,
}

/// A failed request: it was carried out or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Applied {
    /// It was.
    Yes,
    /// It was not.
    No,
}

/// A change that a stranger makes to a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

// === impl FaultKind ===

impl FaultKind {
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
            | Self::StandDown(who, ..)
            | Self::Forbid(who, ..) => Some(*who),
            _ => None,
        }
    }

    /// True if its process misses news by it, or hears them late.
    pub(crate) const fn blinds(&self) -> bool {
        !matches!(
            self,
            Self::StepClock(..)
                | Self::Repeat(..)
                | Self::Forbid(..)
                | Self::Refuse(
                    _,
                    Requests::Writes | Requests::Updates | Requests::Creates,
                    ..
                )
                | Self::Lose(
                    _,
                    Requests::Writes | Requests::Updates | Requests::Creates,
                    ..
                )
                | Self::Delay(
                    _,
                    Requests::Writes | Requests::Updates | Requests::Creates,
                    ..
                )
        )
    }

    /// The name of its kind.
    pub(crate) fn name(&self) -> String {
        let text = match self {
            Self::Refuse(_, _, 409, Applied::Yes, _) => "RefuseAfterwards".to_owned(),
            Self::SpoilWork(_, end, _) => format!("Work{end:?}"),
            Self::Say(_, word, _) => format!("Say{word:?}"),
            kind => format!("{kind:?}"),
        };
        text.split('(').next().unwrap_or_default().to_owned()
    }

    /// True if something is done when it is over.
    pub(crate) const fn ends(&self) -> bool {
        let ends_alone = matches!(
            self,
            Self::Delay(..) | Self::Repeat(..) | Self::IdleCandidate(..)
        );
        !ends_alone && !self.lasts().is_zero()
    }

    /// Its duration, as far as it is a matter of time.
    #[must_use]
    pub const fn lasts(&self) -> Duration {
        match self {
            Self::Crash(_, time, _)
            | Self::ShutDown(_, time)
            | Self::Pause(_, time)
            | Self::Partition(_, time)
            | Self::Slow(_, _, time)
            | Self::Freeze(_, time)
            | Self::OldCache(_, _, time)
            | Self::Delay(_, _, time, _)
            | Self::Repeat(_, _, time, _)
            | Self::StopClock(_, time)
            | Self::Twin(_, time)
            | Self::Plain(_, time)
            | Self::ClientGoCandidate(_, time)
            | Self::Builtin(_, time)
            | Self::IdleCandidate(_, _, time)
            | Self::Say(_, _, time)
            | Self::ElectorsAway(time)
            | Self::StandDown(_, _, time)
            | Self::SpoilWork(_, _, time)
            | Self::HoldLock(time)
            | Self::HideCandidates(time)
            | Self::DowngradeCandidates(time)
            | Self::FloodNamespace(time)
            | Self::Forbid(_, time) => *time,
            _ => Duration::ZERO,
        }
    }
}
