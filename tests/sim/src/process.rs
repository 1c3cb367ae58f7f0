//! A simulated process: a program that starts, crashes and starts again, with a clock and a way to the server of its
//! own.

use std::sync::Arc;
use std::time::Duration;

use elector_apiserver::{ApiServer, Faults};
use elector_protocol::{Identity, LifeId};
use elector_runtime::InstanceLock;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::clock::SimClock;
use crate::context::RunContext;
use crate::history::{Author, Role};
use crate::names::EPOCH;
use crate::pause::PauseSwitch;
use crate::plan::{self, ElectorFlags, ProcessHost, RestartName};
use crate::programs::{CandidateRun, run_elector};
use crate::random::Random;
use crate::transport::Transport;

/// A process on its machine. It may have many incarnations.
pub(crate) struct SimulatedProcess {
    pub(crate) name: String,
    pub(crate) kind: ProcessKind,
    pub(crate) clock: SimClock,
    pub(crate) pauses: PauseSwitch,
    pub(crate) faults: Faults,
    host: ProcessHost,
    context: RunContext,
    server: ApiServer,
    seed: u64,
    incarnation: u32,
    /// The number in its identity: that of the incarnation which began under this name.
    named: u32,
    task: Option<JoinHandle<()>>,
    shutdown: Option<oneshot::Sender<()>>,
    /// The instance lock of its newest life.
    instance: Option<Arc<InstanceLock>>,
}

/// The kind of a process.
#[derive(Clone, Debug)]
pub(crate) enum ProcessKind {
    /// An elector.
    Elector(ElectorFlags),
    /// A candidate, and the identity that it is made to use.
    Candidate(plan::PlannedCandidate, Option<String>),
}

/// The longest delay of a request beyond the usual, in milliseconds.
const JITTER: u64 = 4;

// === impl SimulatedProcess ===

impl SimulatedProcess {
    /// A process that does not run yet.
    pub(crate) fn new(
        name: String,
        kind: ProcessKind,
        host: ProcessHost,
        seed: u64,
        (context, server): (RunContext, ApiServer),
    ) -> Self {
        let faults = server.faults(&name);
        let process = Self {
            clock: SimClock::start(host.rate, EPOCH + host.offset * 1000),
            pauses: PauseSwitch::default(),
            incarnation: 0,
            named: 0,
            task: None,
            shutdown: None,
            instance: None,
            name,
            kind,
            faults,
            host,
            context,
            server,
            seed,
        };
        process.slow(0);
        process
    }

    /// Everything takes this number of milliseconds more than it does here.
    pub(crate) fn slow(&self, more: u64) {
        let way = Duration::from_millis(self.host.latency + more);
        self.faults.latency(way, way);
        self.faults.watch_latency(way);
    }

    /// Ends every fault of it.
    pub(crate) fn repair(&self) {
        self.faults.clear();
        self.slow(0);
        self.pauses.resume_all();
        self.clock.stop(false);
    }

    /// The identity of its present incarnation.
    pub(crate) fn identity(&self) -> String {
        match &self.kind {
            ProcessKind::Candidate(_, Some(identity)) => identity.clone(),
            ProcessKind::Candidate(_, None) => format!("{}-{}", self.name, self.named),
            ProcessKind::Elector(..) => {
                Identity::of_elector(&self.name, self.incarnation_seed()).to_string()
            }
        }
    }

    /// Where it runs.
    pub(crate) const fn host(&self) -> ProcessHost {
        self.host
    }

    /// True while it runs.
    pub(crate) fn runs(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Begins an incarnation.
    pub(crate) fn start(&mut self, name: RestartName) {
        self.incarnation += 1;
        if name == RestartName::New {
            self.named = self.incarnation;
        }
        let (context, pauses) = (self.context.clone(), self.pauses.clone());
        let (sender, receiver) = oneshot::channel::<()>();
        let shutdown = async {
            if receiver.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        context.log().note(
            &self.name,
            format_args!(
                "starts, incarnation {}, as {}",
                self.incarnation,
                self.identity()
            ),
        );
        if let ProcessKind::Elector(..) = &self.kind {
            let mut state = self.context.state();
            state
                .electors
                .start(&self.name, self.incarnation, self.clock.clone());
        }
        let transport = self.transport();
        let check_now = context.check_hook();
        let task = match &self.kind {
            ProcessKind::Elector(flags) => {
                let run = run_elector(transport, *flags, self.incarnation_seed(), shutdown);
                tokio::spawn(pauses.wrap(run, check_now))
            }
            ProcessKind::Candidate(candidate, twin) => {
                let id = LifeId {
                    instance: self.seed,
                    life: self.incarnation_seed(),
                };
                // A second process under its name has no file in common with it.
                self.instance = (candidate.keeps_lock && twin.is_none())
                    .then(|| InstanceLock::simulated(id, self.instance.as_deref()));
                let run = CandidateRun {
                    instance: self.instance.clone(),
                    identity: self.identity(),
                    incarnation: self.incarnation,
                    candidate: *candidate,
                    pauses: pauses.clone(),
                    seed: self.incarnation_seed(),
                    transport,
                };
                tokio::spawn(pauses.wrap(run.run(shutdown), check_now))
            }
        };
        self.task = Some(task);
        self.shutdown = Some(sender);
    }

    /// Ends its incarnation at once.
    pub(crate) async fn crash(&mut self) {
        self.context.log().note(&self.name, "crashes");
        let now = self.context.log().now();
        self.context.state().handle_crash(now, &self.name);
        if let Some(task) = self.task.take() {
            task.abort();
            self.log_end(task).await;
        }
    }

    /// Asks it to end.
    pub(crate) fn shut_down(&mut self) {
        self.context.log().note(&self.name, "is asked to end");
        if let Some(shutdown) = self.shutdown.take() {
            // It may have ended by itself.
            let _ = shutdown.send(());
        }
    }

    /// True if it was asked to end and has not.
    pub(crate) fn is_ending(&self) -> bool {
        self.runs() && self.shutdown.is_none()
    }

    /// Begins an incarnation if none is under way.
    pub(crate) async fn restart_if_ended(&mut self, name: RestartName) {
        self.join_ended().await;
        if !self.runs() {
            self.start(name);
        }
    }

    /// Takes note of an incarnation that ended by itself.
    pub(crate) async fn join_ended(&mut self) {
        if self.task.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(task) = self.task.take()
        {
            self.log_end(task).await;
        }
    }

    async fn log_end(&self, task: JoinHandle<()>) {
        self.context.state().electors.end(&self.name);
        if let Err(error) = task.await
            && error.is_panic()
        {
            self.context
                .report("L8", format!("{} panicked: {error}", self.name));
        }
        self.context.check_now();
    }

    fn transport(&self) -> Transport {
        let role = match &self.kind {
            ProcessKind::Elector(..) => Role::Elector {
                rate: self.clock.rate(),
            },
            ProcessKind::Candidate(candidate, _) => Role::Candidate {
                lease: candidate.lease,
                member: candidate.is_member(),
                rate: self.clock.rate(),
                mode: candidate.mode,
            },
        };
        let priority = match &self.kind {
            ProcessKind::Candidate(candidate, _) => candidate.priority,
            ProcessKind::Elector(..) => 0,
        };
        Transport {
            priority,
            server: self.server.clone(),
            context: self.context.clone(),
            author: Author {
                name: self.name.clone(),
                role,
                identity: Identity::new(self.identity()),
                incarnation: self.incarnation,
                born: self.context.log().now(),
            },
            clock: self.clock.clone(),
            jitter: JITTER,
            random: Arc::new(Mutex::new(Random::new(self.incarnation_seed()))),
        }
    }

    /// A number of its own in each incarnation.
    fn incarnation_seed(&self) -> u64 {
        Random::stream(self.seed, u64::from(self.incarnation)).bits()
    }
}

impl Drop for SimulatedProcess {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
