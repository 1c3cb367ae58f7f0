//! The context that all parts of a run share: the log, the history of Lease revisions with their authors, and the
//! guards.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_api::CandidateApi;
use parking_lot::{Mutex, MutexGuard};

use crate::effect::StrikeLog;
use crate::elector_belief::ElectorMonitor;
use crate::guards::GuardMonitor;
use crate::history::LeaseHistory;
use crate::log::RunLog;
use crate::register::WorkRegister;

/// The context that all parts of a run share. Clones share it too.
#[derive(Clone)]
pub(crate) struct RunContext(Arc<SharedContext>);

struct SharedContext {
    log: RunLog,
    state: Mutex<RunState>,
}

/// The state of the run. It is only ever locked for a moment, by one thread.
pub(crate) struct RunState {
    pub(crate) history: LeaseHistory,
    pub(crate) guards: GuardMonitor,
    pub(crate) electors: ElectorMonitor,
    pub(crate) work: WorkRegister,
    pub(crate) effects: StrikeLog,
    /// The LeaseCandidates that are served, or were last.
    pub(crate) api: CandidateApi,
    /// The violations, in the order of time.
    pub(crate) violations: Vec<RuleViolation>,
    polls: u32,
    polled_at: Duration,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// When, since the start of the run.
    pub at: Duration,
    /// The rule or invariant, by its number.
    pub rule: &'static str,
    /// The description.
    pub text: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, rule, text } = self;
        write!(f, "{rule} at {:.3} s: {text}", at.as_secs_f64())
    }
}

/// The bound on polls of the processes within one millisecond. More is a loop that time never leaves.
const MAX_POLLS: u32 = 100_000;

// === impl RunContext ===

impl RunContext {
    /// A context that begins now.
    pub(crate) fn start(keep_log: bool, history: LeaseHistory, electors: ElectorMonitor) -> Self {
        Self(Arc::new(SharedContext {
            log: RunLog::start(keep_log),
            state: Mutex::new(RunState {
                history,
                guards: GuardMonitor::default(),
                electors,
                work: WorkRegister::default(),
                effects: StrikeLog::default(),
                api: CandidateApi::default(),
                violations: Vec::new(),
                polls: 0,
                polled_at: Duration::ZERO,
            }),
        }))
    }

    pub(crate) fn log(&self) -> &RunLog {
        &self.0.log
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, RunState> {
        // A panic of a process is a violation of its own; the state stays true.
        self.0.state.lock()
    }

    /// Records a violation.
    pub(crate) fn report(&self, rule: &'static str, text: impl Into<String>) {
        let violation = RuleViolation {
            at: self.log().now(),
            rule,
            text: text.into(),
        };
        self.log()
            .note("!", format_args!("{rule}: {}", violation.text));
        self.state().violations.push(violation);
    }

    /// The write of a fault takes effect if it was applied. Others hear of it before its author does.
    pub(crate) fn strike_if(&self, applied: bool, fault: usize, sent: Duration) {
        if applied {
            let now = self.log().now();
            self.state().effects.strike(fault, sent, now);
        }
    }

    /// Looks at everything that may have changed. To be called whenever a process has done something.
    ///
    /// # Panics
    ///
    /// When time no longer passes: a process that asks again and again at one instant would never let it.
    pub(crate) fn check_now(&self) {
        let now = self.log().now();
        let found = {
            let mut state = self.state();
            let RunState {
                history,
                guards,
                electors,
                polls,
                polled_at,
                ..
            } = &mut *state;
            *polls = if *polled_at == now { *polls + 1 } else { 0 };
            *polled_at = now;
            assert!(*polls < MAX_POLLS, "time no longer passes");
            let mut found = guards.check(now, history);
            found.extend(electors.check(history));
            found
        };
        for (rule, text) in found {
            self.report(rule, text);
        }
    }

    /// The hook of futures.
    pub(crate) fn check_hook(&self) -> Arc<dyn Fn() + Send + Sync> {
        let context = self.clone();
        Arc::new(move || context.check_now())
    }
}

// === impl RunState ===

impl RunState {
    /// A process crashes.
    pub(crate) fn handle_crash(&mut self, now: Duration, name: &str) {
        self.guards.handle_crash(now, name);
        self.electors.end(name);
    }
}
