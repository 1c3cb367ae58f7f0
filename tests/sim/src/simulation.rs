//! A run: the processes, the server and time, driven through a plan.

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_apiserver::{ApiServer, Backup, Config, NativeCandidates, WallClock};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::context::{RuleViolation, RunContext};
use crate::elector_belief::{ElectorMonitor, lock_terms};
use crate::guards::{ELECTORS, LeadershipStats, WORK};
use crate::history::LeaseHistory;
use crate::names::EPOCH;
use crate::oracle;
use crate::plan::{RestartName, RunPlan};
use crate::process::{ProcessKind, SimulatedProcess};
use crate::random::Random;
use crate::recorder;
use crate::schedule::schedule;
use crate::verification;

/// The report of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The violations of the rules.
    pub violations: Vec<RuleViolation>,
    /// The changes of leadership in a run.
    pub leadership: LeadershipStats,
    /// Its length, in virtual time.
    pub lasted: Duration,
    /// The faults that took effect, by kind.
    pub faults: BTreeMap<String, u64>,
    /// The number of lines of the trace, and their hash.
    pub digest: (u64, u64),
    /// The trace, if it was to be kept.
    pub trace: Vec<String>,
}

/// The processes, the server and time.
pub(crate) struct Simulation {
    pub(crate) plan: RunPlan,
    pub(crate) context: RunContext,
    pub(crate) server: ApiServer,
    pub(crate) start: Instant,
    pub(crate) processes: Vec<SimulatedProcess>,
    /// Second processes under the name of a candidate; they end with the faults.
    pub(crate) twins: Vec<SimulatedProcess>,
    pub(crate) foreign_clients: JoinSet<()>,
    /// The number of faults that keep the electors away at present.
    pub(crate) electors_away: u32,
    /// The faults by which other LeaseCandidates than usual are served at present, or none: their places in the plan, and
    /// their ends.
    pub(crate) hidden: Vec<(usize, Duration, NativeCandidates)>,
    /// The backups that faults will restore, with their times, by their places in the plan.
    pub(crate) backups: BTreeMap<usize, (Duration, Backup)>,
}

/// Runs a plan from its beginning to its end. The same plan gives the same report, digest included.
///
/// # Panics
///
/// Where no runtime can be made.
#[must_use]
pub fn simulate(plan: &RunPlan, keep_trace: bool) -> RunReport {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO needs nothing of the system");
    runtime.block_on(async {
        let simulation = Simulation::new(plan, keep_trace);
        simulation.run().await
    })
}

// === impl Simulation ===

impl Simulation {
    fn new(plan: &RunPlan, keep_trace: bool) -> Self {
        let limit = plan.setup.locks.leader_election.map(|(_, h)| h);
        let electors = ElectorMonitor::new(limit.map(Duration::from_secs));
        let context = RunContext::start(keep_trace, LeaseHistory::default(), electors);
        context.state().work.fastest = plan.setup.fastest();
        if plan.setup.custom {
            context.state().api = CandidateApi::Elector;
        }
        let epoch = k8s_openapi::jiff::Timestamp::from_microsecond(EPOCH)
            .expect("2026 is a year of the common era");
        let server = ApiServer::new(Config {
            gate: plan.setup.feature_gate,
            native: if plan.setup.custom || plan.setup.unserved {
                NativeCandidates::Absent
            } else {
                NativeCandidates::V1Beta1
            },
            custom_candidates: plan.setup.custom,
            auto_namespaces: true,
            seed: plan.seed,
            clock: WallClock::following_timers(epoch),
            ..Config::default()
        });
        let setup = &plan.setup;
        let processes = (0..setup.processes()).zip(1000..).map(|(index, stream)| {
            let (name, kind, host) = match index.checked_sub(setup.electors.len()) {
                None => {
                    let kind = ProcessKind::Elector(setup.flags(index));
                    (format!("e{index}"), kind, setup.electors[index])
                }
                Some(candidate) => {
                    let candidate = setup.candidates[candidate];
                    let kind = ProcessKind::Candidate(candidate, None);
                    (format!("c{index}"), kind, candidate.host)
                }
            };
            let seed = Random::stream(plan.seed, stream).bits();
            let environment = (context.clone(), server.clone());
            SimulatedProcess::new(name, kind, host, seed, environment)
        });
        let processes = processes.collect();
        Self {
            plan: plan.clone(),
            context,
            server,
            start: Instant::now(),
            processes,
            twins: Vec::new(),
            foreign_clients: JoinSet::new(),
            electors_away: 0,
            hidden: Vec::new(),
            backups: BTreeMap::new(),
        }
    }

    async fn run(mut self) -> RunReport {
        let served = !self.plan.setup.unserved;
        let recorder = recorder::record(self.server.clone(), served, self.context.clone());
        let recorder = tokio::spawn(recorder);
        self.create_unusable_objects().await;
        for (at, action) in schedule(&self.plan) {
            sleep_until(self.start + at).await;
            self.perform(action).await;
        }
        sleep_until(self.start + self.plan.faults_end).await;
        self.end_faults().await;
        self.check_recovery().await;
        recorder.abort();
        self.report()
    }

    /// Ends every fault.
    async fn end_faults(&mut self) {
        self.context.log().note("plan", "every fault is over");
        self.foreign_clients.shutdown().await;
        self.electors_away = 0;
        for mut client in std::mem::take(&mut self.twins) {
            client.crash().await;
        }
        self.unsay_all().await;
        self.repair_leases();
        for process in &mut self.processes {
            process.repair();
            // An elector that was asked to end while it was paused would end at some later time.
            if matches!(process.kind, ProcessKind::Elector(..)) && process.is_ending() {
                process.crash().await;
            }
            process.restart_if_ended(RestartName::New).await;
        }
    }

    fn report(&self) -> RunReport {
        let log = self.context.log();
        let state = self.context.state();
        let mut violations = state.violations.clone();
        violations.extend(oracle::violations(
            &state.history,
            &self.plan,
            &state.effects,
        ));
        violations.extend(verification::violations(
            &state.history,
            &self.plan,
            &state.effects,
        ));
        for violation in &violations {
            log.note("!", format_args!("{violation}"));
        }
        let mut leadership = LeadershipStats {
            acquired: state.history.acquired,
            elector_terms: lock_terms(&state.history),
            work_writes: state.work.writes,
            ..state.guards.leadership.clone()
        };
        for why in state.work.exempt.values() {
            leadership.exempt(WORK, why);
        }
        for why in &state.electors.exempt {
            leadership.exempt(ELECTORS, why);
        }
        RunReport {
            violations,
            leadership,
            lasted: log.now(),
            faults: state.effects.counts(&self.plan.faults),
            digest: log.digest(),
            trace: log.lines(),
        }
    }
}
