//! A row of the matrix: what is done, to whom, and for how long.

use std::time::Duration;

use elector_protocol::CandidateTiming;
use rustix::process::Signal;

use crate::last_operation::AFTER_WAKING;
use crate::network::NetworkCondition;
use crate::server_fault::ServerFault;
use crate::subject::TestSubject;

/// A row of the matrix.
#[derive(Clone, Copy, Debug)]
pub struct FaultScenario {
    /// Its name, to be chosen by.
    pub name: &'static str,
    /// Its description, for people.
    pub description: &'static str,
    pub(crate) script: FaultScript,
    /// For how long it is looked at what becomes of it, from its beginning.
    pub(crate) window: Duration,
    /// The number of runs; in each it strikes in another phase of the renewal cycle.
    pub(crate) runs: u32,
    /// The part of a gap that it explains beyond the lease duration.
    pub(crate) explains: Duration,
    /// True if it belongs to the slice that `cargo xtask test` runs.
    pub(crate) sliced: bool,
    /// True if ours has to do as much work in it as the best rival.
    pub(crate) compared: bool,
}

/// The action of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultScript {
    /// Nothing.
    Nothing,
    /// The candidates start where no Lease and no LeaseCandidate exists. In all other rows they have led for a while.
    FirstStart(ElectorStart),
    /// The leader is killed, and perhaps started again.
    Kill { back_after: Option<Duration> },
    /// The leader is stopped with SIGSTOP for this time.
    Stop(Duration),
    /// The same at the moment when the server has taken a renewal and the answer is on its way.
    StopInFlight(Duration),
    /// The process that holds the lease is stopped, and its command is not.
    StopHolder(Duration),
    /// A network condition for the leader alone.
    AtLeader(NetworkCondition, Duration),
    /// The leader reaches neither the API server nor the register.
    CutOff(Duration),
    /// A network condition for all candidates; the leader is ended under it, by this signal.
    AtAllAndEnd(NetworkCondition, Duration, Signal),
    /// Each candidate is replaced: another one starts, and then it is ended by SIGTERM.
    Roll,
    /// A stranger writes an annotation of the Lease again and again, for this time.
    Annotate(Duration),
    /// A stranger does something to the Lease, when the leader is well or not.
    Stranger(LeaseEdit, LeaderCondition),
    /// A fault of the server of all cases.
    AtServer(ServerFault),
    /// This number of electors; one is killed together with the leader, and is back after a while if it is the only one.
    KillElector { electors: usize },
    /// A network condition for the elector; the leader is killed under it, or goes on.
    AtElector {
        network: NetworkCondition,
        lasts: Duration,
        kill: bool,
    },
}

/// When the elector of a first start starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElectorStart {
    /// Long enough before the candidates to know what is missing.
    Before,
    /// With the candidates.
    Along,
}

/// A stranger's edit of the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEdit {
    Delete,
    /// Writes an annotation that nobody knows.
    Annotate,
    /// Leaves the object, without anything in its spec but an empty holder.
    Empty,
}

/// The condition of the leader meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaderCondition {
    Undisturbed,
    /// Partitioned from the API server since just before, for this time.
    Partitioned(Duration),
    /// Stopped since just before, for this time.
    Stopped(Duration),
}

/// The time for which a killed process is away, when it is to come back.
pub(crate) const AWAY: Duration = Duration::from_secs(5);

/// The wait of a candidate in auto mode for an elector (R18).
const FALLBACK: Duration = Duration::from_secs(5);

/// The start of a process, or a request that is sent again.
const STARTS: Duration = Duration::from_secs(2);

// === impl FaultScenario ===

impl FaultScenario {
    /// One run, in which nothing explains more than the lease, in no slice and no comparison.
    pub(crate) const USUAL: Self = Self {
        name: "",
        description: "",
        script: FaultScript::Nothing,
        window: Duration::ZERO,
        runs: 1,
        explains: Duration::ZERO,
        sliced: false,
        compared: false,
    };

    /// True if there is anything to be seen of the subject.
    pub(crate) fn concerns(&self, subject: TestSubject) -> bool {
        match self.script {
            // It differs from other candidates by its timing alone.
            _ if subject == TestSubject::SlowServer => self.compared && !self.strikes_process(),
            FaultScript::FirstStart(ElectorStart::Before) => subject.is_elected(),
            FaultScript::FirstStart(ElectorStart::Along) | FaultScript::Stranger(..) => true,
            // It differs from other plain candidates where a Lease is missing or emptied, and nowhere else.
            _ if subject == TestSubject::AsClientGo => false,
            FaultScript::KillElector { .. } | FaultScript::AtElector { .. } => subject.is_elected(),
            FaultScript::StopInFlight(_) | FaultScript::Roll | FaultScript::Annotate(_) => {
                subject.has_lease()
            }
            FaultScript::StopHolder(_) => subject.is_command(),
            _ => true,
        }
    }

    /// True if anything of that subject is judged under it. A candidate that takes a missing Lease at once does not
    /// promise to be alone after a stranger's edit.
    pub(crate) fn judges(&self, subject: TestSubject) -> bool {
        let price =
            subject == TestSubject::AsClientGo && matches!(self.script, FaultScript::Stranger(..));
        subject.is_judged() && !price
    }

    /// The number of runs that show it in every phase.
    pub(crate) fn runs(&self, subject: TestSubject) -> u32 {
        if subject.has_lease() { self.runs } else { 1 }
    }

    /// The longest time without work that a judged subject is allowed: the lease that stands, the wait of a candidate
    /// without an elector, what the fault explains, and the start of a process.
    pub(crate) fn longest_gap(&self, subject: TestSubject) -> Duration {
        let alone = match subject {
            TestSubject::AutoAlone => FALLBACK,
            _ => Duration::ZERO,
        };
        CandidateTiming::default().lease_duration + alone + self.explains + STARTS
    }

    /// The share of time with work, in percent, that is left where a run has the longest gap; for rows alone in which chance
    /// decides whether it does.
    pub(crate) fn least_work(&self, subject: TestSubject) -> Option<f64> {
        let gap = self.longest_gap(subject).div_duration_f64(self.window);
        (!self.explains.is_zero()).then_some(100.0 * (1.0 - gap))
    }

    /// The number of electors that it needs.
    pub(crate) fn electors(&self) -> usize {
        match self.script {
            FaultScript::KillElector { electors } => electors,
            _ => 1,
        }
    }

    /// The fault of the server, if it is one.
    pub(crate) fn of_server(&self) -> Option<ServerFault> {
        match self.script {
            FaultScript::AtServer(fault) => Some(fault),
            _ => None,
        }
    }

    /// True if it strikes the leader's process itself, and not the API server or the way to it.
    pub(crate) fn strikes_process(&self) -> bool {
        self.stops() || matches!(self.script, FaultScript::Kill { .. } | FaultScript::Roll)
    }

    /// True if it stops the leader in the middle of what it does.
    pub(crate) fn stops(&self) -> bool {
        matches!(
            self.script,
            FaultScript::Stop(_)
                | FaultScript::StopInFlight(_)
                | FaultScript::Stranger(_, LeaderCondition::Stopped(_))
        )
    }

    /// The lateness that a judged subject is allowed. Only where a process is stopped in the middle of what it does can
    /// there be any.
    pub(crate) fn lateness(&self, subject: TestSubject) -> Lateness {
        if !self.stops() {
            return Lateness::default();
        }
        if subject.asks() {
            // One operation may lie between the check and its send, and no lease can prevent that.
            return Lateness {
                operations: 1,
                time: Duration::ZERO,
            };
        }
        // Work that does not ask goes on until the candidate, which wakes up with it, has ended it.
        Lateness {
            operations: 12,
            time: Duration::from_secs_f64(AFTER_WAKING),
        }
    }
}

/// Lateness that no lease can prevent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lateness {
    pub(crate) operations: usize,
    pub(crate) time: Duration,
}
