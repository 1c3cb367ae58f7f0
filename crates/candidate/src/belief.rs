//! The belief of this process, in the one cell that all read who ask whether it leads: by the clock, at the call.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant, LeaseKey, Term, Token};
use elector_runtime::Clock;

use crate::resolved_config::ResolvedConfig;
use crate::term_state::{TermState, WorkLimits};
use crate::term_tasks::TermTasks;

/// The cell. Clones are the same one. It holds no end of a channel, so that a status may hold it.
#[derive(Clone)]
pub(crate) struct BeliefCell(Arc<SharedBelief>);

struct SharedBelief {
    lease: LeaseKey,
    /// The part of the group that the lease is, where there is one.
    part: Option<Arc<str>>,
    identity: Identity,
    clock: Arc<dyn Clock>,
    /// The time that the work has to stop while the lease is held.
    grace: Duration,
    state: Mutex<BeliefState>,
}

/// The content of the cell, which the session alone writes.
#[derive(Debug, Default)]
pub(crate) struct BeliefState {
    /// The term of this process, or the last one.
    pub(crate) term: Option<TermState>,
    /// Where the work of the term spawns its tasks, once it has begun.
    pub(crate) tasks: Option<TermTasks>,
    /// Why this process is unwell, while it is.
    pub(crate) unwell: Option<String>,
    /// The number of the term whose work has been answered that its belief is over. After a pause it may learn that from
    /// the clock before the session has come round to tell it.
    answered: Option<u64>,
    /// The work of a term that was not polled, since its time was up by the clock.
    pub(crate) held_back: Vec<Waker>,
}

/// A term in which this process leads, at one instant.
pub(crate) struct BelievedTerm {
    pub(crate) number: u64,
    pub(crate) term: Term,
    pub(crate) token: Token,
    /// The time that the belief lasts unless another renewal succeeds. Never zero.
    pub(crate) remaining: Duration,
    /// True once the work was asked to stop.
    pub(crate) stops: bool,
}

// === impl BeliefCell ===

impl BeliefCell {
    pub(crate) fn new(config: &ResolvedConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(SharedBelief {
            lease: config.lease.clone(),
            part: config.given.membership.as_ref().map(|it| it.part.clone()),
            identity: config.identity.clone(),
            clock,
            grace: config.given.grace,
            state: Mutex::default(),
        }))
    }

    pub(crate) fn lease(&self) -> &LeaseKey {
        &self.0.lease
    }

    pub(crate) fn part(&self) -> Option<&str> {
        self.0.part.as_deref()
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.0.identity
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.clock.holder()
    }

    /// The content, for the session to change and for all to look at.
    pub(crate) fn state(&self) -> MutexGuard<'_, BeliefState> {
        // A poisoned lock holds a valid state: every section changes one thing.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the term of this process, or of the last one.
    pub(crate) fn number(&self) -> Option<u64> {
        self.state().term.as_ref().map(|term| term.number)
    }

    /// The term in which this process leads now: the one of that number, or any.
    pub(crate) fn led(&self, number: Option<u64>) -> Option<BelievedTerm> {
        let (mut led, deadline) = {
            let state = self.state();
            let term = state.term.as_ref()?;
            if number.is_some_and(|number| number != term.number) {
                return None;
            }
            let led = BelievedTerm {
                number: term.number,
                term: term.term,
                token: term.token,
                remaining: Duration::ZERO,
                stops: term.stop.is_some(),
            };
            (led, term.deadline()?)
        };
        // The deadline first: the later the clock is read, the better.
        led.remaining = deadline.since(self.now());
        (!led.remaining.is_zero()).then_some(led)
    }

    /// The time that the belief of that term lasts, for its work, which takes zero for the end of its term.
    pub(crate) fn remaining(&self, number: u64) -> Duration {
        match self.led(Some(number)) {
            Some(led) => led.remaining,
            None => {
                self.note_answer(number);
                Duration::ZERO
            }
        }
    }

    /// When the belief of that term ends unless a renewal succeeds, `None` once it has ended. The clock may have ended it.
    pub(crate) fn deadline(&self, number: u64) -> Option<Instant> {
        self.read(number, TermState::deadline)?
    }

    /// Until when the work of that term may act unless a renewal succeeds.
    pub(crate) fn limits(&self, number: u64) -> Option<WorkLimits> {
        self.read(number, |term| term.limits)
    }

    /// The time that the work of that term has to stop, if it was asked to, or if it were asked now.
    pub(crate) fn time_to_stop(&self, number: u64) -> Duration {
        let (now, grace) = (self.now(), self.0.grace);
        let left = self.read(number, |term| term.time_to_stop(now, grace));
        left.unwrap_or_default()
    }

    /// When the work of that term is dropped, once it was asked to stop.
    pub(crate) fn stop_by(&self, number: u64) -> Option<Instant> {
        self.read(number, |term| term.stop.as_ref().map(|(_, by)| *by))?
    }

    /// True once the work of that term was asked to stop, be it by the clock alone.
    pub(crate) fn is_told(&self, number: u64) -> bool {
        self.stop_by(number).is_some() || self.state().answered == Some(number)
    }

    /// Why the work of that term is to stop, or when the belief ends that lets it go on.
    pub(crate) fn judge(&self, number: u64) -> Result<Instant, StopReason> {
        let deadline = self
            .read(number, |term| match &term.stop {
                Some((reason, _)) => Err(reason.clone()),
                // A candidate that is gone renews nothing and has stopped its work.
                None if term.is_over() => Err(StopReason::ShutDown),
                None => Ok(term.deadline()),
            })
            .ok_or(StopReason::ShutDown)??;
        match deadline {
            Some(deadline) if self.now() < deadline => Ok(deadline),
            _ => {
                self.note_answer(number);
                Err(StopReason::Lost(Loss::DeadlinePassed))
            }
        }
    }

    /// For how long work has been running that may act no more.
    pub(crate) fn overdue(&self) -> Option<Duration> {
        let until = self.state().term.as_ref().and_then(TermState::acts_until)?;
        let over = self.now().since(until);
        (!over.is_zero()).then_some(over)
    }

    /// True if work of that term may act no more. It is woken where the answer of a renewal still comes.
    pub(crate) fn holds_back(&self, number: u64, waker: &Waker) -> bool {
        let mut state = self.state();
        let term = state.term.as_ref().filter(|term| term.number == number);
        let acts_until = term.and_then(TermState::acts_until);
        if acts_until.is_some_and(|until| self.now() < until) {
            return false;
        }
        if !state.held_back.iter().any(|it| it.will_wake(waker)) {
            state.held_back.push(waker.clone());
        }
        true
    }

    /// The work of that term has been answered that its belief is over. A guard of an earlier term may ask later.
    fn note_answer(&self, number: u64) {
        let mut state = self.state();
        state.answered = state.answered.max(Some(number));
    }

    fn read<T>(&self, number: u64, read: impl FnOnce(&TermState) -> T) -> Option<T> {
        let state = self.state();
        let term = state.term.as_ref().filter(|term| term.number == number);
        term.map(read)
    }
}

// === impl BeliefState ===

impl BeliefState {
    /// Where the work of that term spawns its tasks, if it has begun.
    pub(crate) fn tasks_of(&self, number: u64) -> Option<TermTasks> {
        let is_current = self.term.as_ref().is_some_and(|term| term.number == number);
        self.tasks.clone().filter(|_| is_current)
    }
}

impl fmt::Debug for BeliefCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeliefCell")
            .field("lease", &self.0.lease)
            .field("identity", &self.0.identity)
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}
