//! One run: both machines, their requests, their watches and the work, in one loop that owns them all.
//!
//! ```text
//!   inputs: watch events, responses, deadlines ──> HolderShell, RegistrationShell ──> effects ──> requests
//!                                                       └──> the work of a term: started, stopped
//! ```

mod failures;
mod holder;
mod inputs;
mod migration;
mod registration;
mod requests;

use std::pin::Pin;
use std::sync::Arc;

use elector_protocol::holder::{Effect, StopReason};
use elector_protocol::{Instant, Term, Token};
use elector_runtime::{ApiDiscovery, Clock, WatchEvent, Writer};

use self::failures::SessionFailures;
use self::holder::HolderShell;
use self::inputs::{CandidateInput, watch_candidate, watch_lease};
use self::migration::Migration;
use self::registration::RegistrationShell;
use self::requests::CandidateResponse;
use crate::config::{AfterTerm, Config};
use crate::event::{CandidateObserver, Event};
use crate::leadership::{Leadership, LeadershipState};
use crate::outcome::{RunError, RunOutcome, TermEnd};
use crate::work::{TermWork, WorkEnd};

/// Everything that one run owns. Dropping it drops the work, the watches and the requests.
pub(crate) struct CandidateSession<T, E> {
    config: Config,
    clock: Arc<dyn Clock>,
    /// Any number that differs from process to process.
    seed: u64,
    observer: CandidateObserver,
    writer: Writer,
    api_discovery: ApiDiscovery,
    holder: HolderShell,
    registration: RegistrationShell,
    migration: Migration,
    failures: SessionFailures,
    work: Option<TermWork<T, E>>,
    /// The term that began last and whose end has not been told.
    term: Option<Term>,
    last_end: Option<TermEnd>,
    finish: Option<Finish<T, E>>,
    /// Until when a shutdown waits for the server.
    finish_by: Option<Instant>,
}

/// Why the run is coming to its end.
enum Finish<T, E> {
    ShutDown,
    WorkEnded(T),
    WorkFailed(E),
    WorkPanicked(String),
    TermEnded,
}

/// How many requests a shutdown waits for at most.
const SHUTDOWN_REQUESTS: u32 = 2;

// === impl CandidateSession ===

impl<T: Send + 'static, E: Send + 'static> CandidateSession<T, E> {
    pub(crate) fn new(
        config: Config,
        writer: Writer,
        api_discovery: ApiDiscovery,
        (clock, seed): (Arc<dyn Clock>, u64),
        observer: CandidateObserver,
    ) -> Self {
        Self {
            holder: HolderShell::new(&config, clock.holder()),
            registration: RegistrationShell::new(&config),
            config,
            clock,
            seed,
            observer,
            writer,
            api_discovery,
            migration: Migration::default(),
            failures: SessionFailures::default(),
            work: None,
            term: None,
            last_end: None,
            finish: None,
            finish_by: None,
        }
    }

    /// Runs until something ends the run.
    pub(crate) async fn run<F>(
        mut self,
        mut work: impl FnMut(Leadership) -> F,
        mut shutdown: Pin<&mut impl Future>,
    ) -> Result<RunOutcome<T, E>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let mut leases = watch_lease(self.writer.cluster(), &self.config, self.seed);
        let candidates = |session: &Self| {
            let api = session.writer.candidate_api();
            watch_candidate(session.writer.cluster(), api, &session.config, session.seed)
        };
        let mut candidate = candidates(&self);
        loop {
            let wake_at = self.advance(&mut work)?;
            if self.is_over() {
                return Ok(self.outcome());
            }
            let clock = Arc::clone(&self.clock);
            let input = tokio::select! {
                biased;
                response = self.holder.request.response() => CandidateInput::LeaseResponse(response),
                end = work_end(&mut self.work) => CandidateInput::WorkEnd(end),
                _ = &mut shutdown, if self.finish.is_none() => CandidateInput::ShutDown,
                response = self.registration.request.response() => CandidateInput::CandidateResponse(response),
                event = leases.next() => CandidateInput::LeaseEvent(event),
                event = candidate.next() => CandidateInput::CandidateEvent(event),
                api = self.api_discovery.next(), if self.finish.is_none() => CandidateInput::ApiMoved(api),
                () = self.migration.removal.response() => CandidateInput::Removed,
                () = sleep_until(&*clock, wake_at) => CandidateInput::Time,
            };
            if self.handle_input(input)? {
                candidate = candidates(&self);
            }
        }
    }

    /// Tells the machines what came in. Says whether the LeaseCandidate is to be watched in another API from now on.
    fn handle_input(&mut self, input: CandidateInput<T, E>) -> Result<bool, RunError> {
        let (now, failures) = (self.clock.holder(), &mut self.failures);
        let mut moved = false;
        match input {
            CandidateInput::LeaseResponse(response) => {
                self.holder.handle_response(now, response, failures);
            }
            CandidateInput::LeaseEvent(event) => self.holder.handle_event(now, event, failures),
            CandidateInput::CandidateResponse(response) => {
                self.handle_candidate_response(now, response)?;
            }
            CandidateInput::CandidateEvent(event) => {
                match &event {
                    WatchEvent::Failed(error) => self.api_discovery.suspect(error),
                    WatchEvent::Synced => self.api_discovery.trust(),
                    _ => {}
                }
                let config = &self.config;
                self.registration.handle_event(now, event, config, failures);
            }
            CandidateInput::ApiMoved(api) => {
                let (registration, writer) = (&mut self.registration, &mut self.writer);
                let migration = &mut self.migration;
                moved = migration.start(api, &self.config, registration, writer, failures);
            }
            CandidateInput::WorkEnd(end) => self.handle_work_end(now, end),
            CandidateInput::ShutDown => self.begin_finish(Finish::ShutDown),
            CandidateInput::Removed | CandidateInput::Time => {}
        }
        if self.registration.machine.is_withdrawn() {
            self.holder.machine.handle_withdrawn();
        }
        Ok(moved)
    }

    fn handle_candidate_response(
        &mut self,
        now: Instant,
        response: CandidateResponse,
    ) -> Result<(), RunError> {
        if let CandidateResponse::Wrote(outcome) = &response
            && let Some(error) = outcome.error()
        {
            self.api_discovery.suspect(error);
        }
        // The release does not wait for a server that does not delete.
        let released = matches!(response, CandidateResponse::Deleted(_));
        let (config, failures) = (&self.config, &mut self.failures);
        self.registration
            .handle_response(now, response, config, failures)?;
        if released {
            self.holder.machine.handle_withdrawn();
        }
        Ok(())
    }

    fn handle_work_end(&mut self, now: Instant, end: WorkEnd<T, E>) {
        let Some(work) = self.work.take() else {
            return;
        };
        let term = work.term;
        self.emit(&Event::WorkStopped { term });
        match end {
            WorkEnd::Failed(error) => self.begin_finish(Finish::WorkFailed(error)),
            WorkEnd::Panicked(message) => self.begin_finish(Finish::WorkPanicked(message)),
            WorkEnd::Ended(value) if !work.is_told() => {
                self.begin_finish(Finish::WorkEnded(value));
            }
            WorkEnd::Ended(_) | WorkEnd::Dropped => {}
        }
        self.holder.machine.handle_work_stopped(now);
    }

    /// Takes both machines as far as they go now. Returns when to look again.
    fn advance<F>(
        &mut self,
        work: &mut impl FnMut(Leadership) -> F,
    ) -> Result<Option<Instant>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let now = self.clock.holder();
        let silence = self.check_silence(now);
        let decision = self.holder.machine.step(now, self.clock.wall());
        for effect in decision.effects {
            self.perform(effect, now, work);
        }
        let deadline = self.holder.deadline();
        let limit = self.work.as_mut().and_then(|work| {
            work.set_deadline(deadline);
            work.enforce(now)
        });
        let answers = self.holder.machine.can_accept();
        self.registration.machine.ack_pings(answers);
        let registration = self.registration.machine.step(now, self.clock.wall());
        if let Some(effect) = registration.effect {
            self.registration.send(&effect, &self.config, &self.writer);
        }
        self.registration.check_lease(&self.config)?;
        if self.registration.take_registered() {
            self.emit(&Event::Registered);
        }
        if self.finish.is_some() && self.work.is_none() && self.finish_by.is_none() {
            let patience = self.config.timing.request_timeout * SHUTDOWN_REQUESTS;
            self.finish_by = Some(now.after(patience));
        }
        let wake = [
            decision.wake_at,
            registration.wake_at,
            limit,
            silence,
            self.finish_by,
            self.failures.tick(now),
        ];
        Ok(wake.into_iter().flatten().min())
    }

    /// While waiting, a Lease that has not changed for two renewals is read: the watch may be dead, or its leader.
    fn check_silence(&mut self, now: Instant) -> Option<Instant> {
        if self.term.is_some() || self.finish.is_some() {
            self.holder.expect_silence(now);
            return None;
        }
        let silence = self.config.timing.renew_interval * 2;
        let (silent, next) = self.holder.check_silence(now, silence);
        if silent {
            // Electors ask for candidates when a leader is gone: their ping must not be missed either.
            self.registration.machine.request_read();
        }
        Some(next)
    }

    fn perform<F>(&mut self, effect: Effect, now: Instant, work: &mut impl FnMut(Leadership) -> F)
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        match effect {
            Effect::Start { term, token } => self.start_work(term, token, work),
            Effect::Stop(reason) => {
                let grace = match &reason {
                    StopReason::Lost(_) => self.config.grace_after_loss(),
                    StopReason::HandOver { .. } | StopReason::ShutDown => self.config.grace,
                };
                if let Some(work) = &mut self.work {
                    let term = work.term;
                    work.stop(reason.clone(), now.after(grace));
                    self.emit(&Event::Stopping { term, reason });
                }
            }
            Effect::Ended(ending) => {
                self.end_term(ending.into());
                if self.finish.is_none() && self.config.after_term == AfterTerm::Return {
                    self.begin_finish(Finish::TermEnded);
                }
            }
            Effect::Read | Effect::Write { .. } => {
                self.holder.send(effect, now, &self.config, &self.writer);
            }
        }
    }

    fn start_work<F>(&mut self, term: Term, token: Token, work: &mut impl FnMut(Leadership) -> F)
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.term = Some(term);
        self.last_end = None;
        self.emit(&Event::Leading { term, token });
        let state = LeadershipState {
            deadline: self.holder.deadline(),
            stop: None,
        };
        let (lease, identity) = (self.config.lease.clone(), self.config.identity.clone());
        let clock = Arc::clone(&self.clock);
        self.work = Some(TermWork::start(term, state, |receiver| {
            let of = (term, token);
            work(Leadership::new(lease, identity, of, clock, receiver))
        }));
    }

    /// Begins to end the run. An error of the work is reported even where something else ended it first.
    fn begin_finish(&mut self, finish: Finish<T, E>) {
        let replaces = matches!(finish, Finish::WorkFailed(_) | Finish::WorkPanicked(_));
        if self.finish.is_none() || replaces {
            self.finish = Some(finish);
        }
        self.holder.machine.shut_down(self.clock.holder());
        self.registration.machine.withdraw();
    }

    fn end_term(&mut self, end: TermEnd) {
        if let Some(term) = self.term.take() {
            self.last_end = Some(end.clone());
            self.emit(&Event::Ended { term, end });
        }
    }

    fn is_over(&mut self) -> bool {
        if self.work.as_ref().is_some_and(TermWork::is_stuck) {
            self.end_term(TermEnd::WorkStillRuns);
            if self.finish.is_none() {
                self.finish = Some(Finish::TermEnded);
            }
            return true;
        }
        if self.finish.is_none() || self.work.is_some() {
            return false;
        }
        let done = self.holder.machine.is_finished() && self.registration.machine.is_withdrawn();
        let late = self
            .finish_by
            .is_some_and(|finish_by| finish_by <= self.clock.holder());
        if late && !done {
            self.end_term(TermEnd::Unconfirmed);
        }
        done || late
    }

    fn outcome(mut self) -> RunOutcome<T, E> {
        let end = self.last_end.take();
        let term = end.clone().unwrap_or(TermEnd::Unconfirmed);
        match self.finish.take() {
            Some(Finish::WorkEnded(value)) => RunOutcome::WorkEnded { value, term },
            Some(Finish::WorkFailed(error)) => RunOutcome::WorkFailed { error, term },
            Some(Finish::WorkPanicked(message)) => RunOutcome::WorkPanicked { message, term },
            Some(Finish::TermEnded) => RunOutcome::TermEnded(term),
            Some(Finish::ShutDown) | None => RunOutcome::ShutDown(end),
        }
    }

    /// Logs an event, and tells the observer.
    fn emit(&mut self, event: &Event) {
        event.log(&self.config.lease, &self.config.identity);
        (self.observer)(event);
    }
}

async fn work_end<T: Send + 'static, E: Send + 'static>(
    work: &mut Option<TermWork<T, E>>,
) -> WorkEnd<T, E> {
    match work {
        Some(work) => work.end().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(clock: &dyn Clock, wake_at: Option<Instant>) {
    match wake_at {
        Some(wake_at) => clock.sleep_until_holder(wake_at).await,
        None => std::future::pending().await,
    }
}
