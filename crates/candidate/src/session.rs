//! One run: both machines, their requests, their watches and the work, in one loop that owns them all.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::holder::{Effect, Holder, HolderConfig, StopReason};
use elector_protocol::registration::Registration;
use elector_protocol::{Instant, Term, Token};
use elector_runtime::{
    ApiDiscovery, Clock, FailureLog, Scope, Watch, WatchOptions, Writer, watch_leases,
};
use futures::future::BoxFuture;

use crate::config::{AfterTerm, Config};
use crate::intake::Input;
use crate::leadership::{Leadership, Standing};
use crate::outcome::{Event, RunError, RunOutcome, TermEnd};
use crate::requests::{CandidateAnswer, LeaseAnswer, candidate_request, lease_request};
use crate::work::{Work, WorkEnd};

/// Whoever is told what happens.
pub(crate) type Observer = Box<dyn FnMut(&Event) + Send>;

/// Everything that one run owns. Dropping it drops the work, the watches and the requests.
pub(crate) struct Session<T, E> {
    pub(crate) config: Config,
    pub(crate) writer: Writer,
    pub(crate) clock: Arc<dyn Clock>,
    observer: Observer,
    pub(crate) holder: Holder,
    pub(crate) registration: Registration,
    /// The newest revision of the Lease as an object, which a write carries over.
    pub(crate) lease: Option<Lease>,
    /// The same of the own LeaseCandidate.
    pub(crate) object: Option<LeaseCandidate>,
    /// The resourceVersion of the own LeaseCandidate that this process wrote last.
    pub(crate) written: Option<String>,
    pub(crate) lease_request: Option<BoxFuture<'static, LeaseAnswer>>,
    pub(crate) candidate_request: Option<BoxFuture<'static, CandidateAnswer>>,
    /// Tells when the LeaseCandidate has to be registered elsewhere.
    pub(crate) api_discovery: ApiDiscovery,
    /// The removal of a LeaseCandidate from where it is of no use any more.
    pub(crate) farewell_request: Option<BoxFuture<'static, ()>>,
    /// Any number that differs from process to process.
    pub(crate) seed: u64,
    pub(crate) work: Option<Work<T, E>>,
    /// The term that began last and whose end has not been told.
    term: Option<Term>,
    last_end: Option<TermEnd>,
    pub(crate) registered: bool,
    /// When the Lease last changed, as far as this process knows.
    pub(crate) heard_at: Instant,
    pub(crate) finish: Option<Finish<T, E>>,
    /// Until when a shutdown waits for the server.
    farewell: Option<Instant>,
    pub(crate) failures: FailureLog,
}

/// Why the run is coming to its end.
pub(crate) enum Finish<T, E> {
    ShutDown,
    WorkEnded(T),
    WorkFailed(E),
    WorkPanicked(String),
    TermEnded,
}

/// The least time that a request gets, even where the belief is nearly over.
const SHORTEST_REQUEST: Duration = Duration::from_millis(100);

/// How many requests a shutdown waits for at most.
const FAREWELL_REQUESTS: u32 = 2;

// === impl Session ===

impl<T: Send + 'static, E: Send + 'static> Session<T, E> {
    pub(crate) fn new(
        config: Config,
        writer: Writer,
        api_discovery: ApiDiscovery,
        clock: Arc<dyn Clock>,
        observer: Observer,
        seed: u64,
    ) -> Self {
        let holder = Holder::new(Arc::new(HolderConfig {
            identity: config.identity.clone(),
            timing: config.timing.clone(),
        }));
        Self {
            holder,
            api_discovery,
            farewell_request: None,
            seed,
            registration: Registration::new(config.lease.name.clone()),
            heard_at: clock.holder(),
            config,
            writer,
            clock,
            observer,
            lease: None,
            object: None,
            written: None,
            lease_request: None,
            candidate_request: None,
            work: None,
            term: None,
            last_end: None,
            registered: false,
            finish: None,
            farewell: None,
            failures: FailureLog::default(),
        }
    }

    /// Runs until something ends the run.
    pub(crate) async fn run<F>(
        mut self,
        mut work: impl FnMut(Leadership) -> F,
        shutdown: impl Future,
    ) -> Result<RunOutcome<T, E>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (mut leases, mut candidates) = (self.watch_lease(), self.watch_candidate());
        let mut shutdown = pin!(shutdown);
        loop {
            let wake_at = self.advance(&mut work)?;
            if self.is_over() {
                return Ok(self.outcome());
            }
            let clock = Arc::clone(&self.clock);
            let input = tokio::select! {
                biased;
                answer = answered(&mut self.lease_request) => Input::Lease(answer),
                end = ended(&mut self.work) => Input::WorkEnd(end),
                _ = &mut shutdown, if self.finish.is_none() => Input::ShutDown,
                answer = answered(&mut self.candidate_request) => Input::Candidate(answer),
                event = leases.next() => Input::LeaseEvent(event),
                event = candidates.next() => Input::CandidateEvent(event),
                api = self.api_discovery.next(), if self.finish.is_none() => Input::Moved(api),
                () = answered(&mut self.farewell_request) => Input::Left,
                () = sleep_until(&*clock, wake_at) => Input::Time,
            };
            if let Input::Moved(api) = input {
                if self.move_to(api) {
                    candidates = self.watch_candidate();
                }
            } else {
                self.take(input)?;
            }
        }
    }

    fn watch_lease(&self) -> Watch<Lease> {
        let lease = Scope::Object(self.config.lease.clone());
        let options = WatchOptions::candidate(self.seed);
        watch_leases(self.writer.cluster(), &lease, &options)
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
        let silence = self.listen(now);
        let decision = self.holder.step(now, self.clock.wall());
        for effect in decision.effects {
            self.perform(effect, now, work);
        }
        let belief = self.holder.belief();
        let limit = self.work.as_mut().and_then(|work| {
            work.believe(belief.map(|belief| belief.deadline));
            work.enforce(now)
        });
        self.registration.ack_pings(self.holder.can_accept());
        let registration = self.registration.step(now, self.clock.wall());
        if let Some(effect) = registration.effect {
            let timeout = self.config.timing.request_timeout;
            let request = candidate_request(
                &effect,
                self.object.as_ref(),
                &self.config,
                &self.writer,
                timeout,
            );
            self.candidate_request = Some(request);
        }
        if let Some(lease) = self.registration.bound_elsewhere() {
            return Err(RunError::BoundElsewhere {
                name: self.config.identity.clone(),
                lease: lease.to_owned(),
            });
        }
        if self.registration.is_registered() && !self.registered {
            self.registered = true;
            self.tell(&Event::Registered);
        }
        if self.finish.is_some() && self.work.is_none() && self.farewell.is_none() {
            let patience = self.config.timing.request_timeout * FAREWELL_REQUESTS;
            self.farewell = Some(now.after(patience));
        }
        self.failures.tick(now);
        let wake = [
            decision.wake_at,
            registration.wake_at,
            limit,
            silence,
            self.farewell,
            self.failures.wake_at(),
        ];
        Ok(wake.into_iter().flatten().min())
    }

    /// While waiting, a Lease that has not changed for two renewals is read: the watch may be dead, or its leader.
    fn listen(&mut self, now: Instant) -> Option<Instant> {
        if self.term.is_some() || self.finish.is_some() {
            self.heard_at = now;
            return None;
        }
        let silence = self.config.timing.renew_interval * 2;
        if self.heard_at.after(silence) <= now {
            self.heard_at = now;
            self.holder.request_read();
            // Electors ask for candidates when a leader is gone: their question must not be missed either.
            self.registration.request_read();
        }
        Some(self.heard_at.after(silence))
    }

    fn perform<F>(&mut self, effect: Effect, now: Instant, work: &mut impl FnMut(Leadership) -> F)
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        match effect {
            Effect::Start { term, token } => self.start(term, token, work),
            Effect::Stop(why) => {
                let grace = match &why {
                    StopReason::Lost(_) => self.config.grace_after_loss(),
                    StopReason::HandOver { .. } | StopReason::ShutDown => self.config.grace,
                };
                if let Some(work) = &mut self.work {
                    let term = work.term;
                    work.stop(why.clone(), now.after(grace));
                    self.tell(&Event::Stopping { term, why });
                }
            }
            Effect::Ended(ending) => {
                self.end_term(ending.into());
                if self.finish.is_none() && self.config.after_term == AfterTerm::Return {
                    self.close(Finish::TermEnded);
                }
            }
            Effect::Read | Effect::Write { .. } => {
                let deadline = self.holder.belief().map(|belief| belief.deadline);
                let left = deadline.map_or(Duration::MAX, |deadline| deadline.since(now));
                let timeout = left
                    .max(SHORTEST_REQUEST)
                    .min(self.config.timing.request_timeout);
                if let Effect::Write { kind, .. } = &effect {
                    tracing::debug!(lease = %self.config.lease, %kind, "writing");
                }
                let judged = self.lease.as_ref();
                self.lease_request =
                    lease_request(effect, judged, &self.config, &self.writer, timeout);
            }
        }
    }

    fn start<F>(&mut self, term: Term, token: Token, work: &mut impl FnMut(Leadership) -> F)
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.term = Some(term);
        self.last_end = None;
        self.tell(&Event::Leading { term, token });
        let standing = Standing {
            deadline: self.holder.belief().map(|belief| belief.deadline),
            stop: None,
        };
        let (lease, identity) = (self.config.lease.clone(), self.config.identity.clone());
        let clock = Arc::clone(&self.clock);
        self.work = Some(Work::start(term, standing, |post| {
            work(Leadership::new(lease, identity, (term, token), clock, post))
        }));
    }

    /// Begins to end the run. An error of the work is reported whatever else ended it.
    pub(crate) fn close(&mut self, finish: Finish<T, E>) {
        let replaces = matches!(finish, Finish::WorkFailed(_) | Finish::WorkPanicked(_));
        if self.finish.is_none() || replaces {
            self.finish = Some(finish);
        }
        self.holder.shut_down(self.clock.holder());
        self.registration.withdraw();
    }

    fn end_term(&mut self, end: TermEnd) {
        if let Some(term) = self.term.take() {
            self.last_end = Some(end.clone());
            self.tell(&Event::Ended { term, end });
        }
    }

    fn is_over(&mut self) -> bool {
        if self.work.as_ref().is_some_and(Work::is_stuck) {
            self.end_term(TermEnd::WorkStillRuns);
            if self.finish.is_none() {
                self.finish = Some(Finish::TermEnded);
            }
            return true;
        }
        if self.finish.is_none() || self.work.is_some() {
            return false;
        }
        let done = self.holder.is_finished() && self.registration.is_withdrawn();
        let late = self
            .farewell
            .is_some_and(|farewell| farewell <= self.clock.holder());
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

    pub(crate) fn tell(&mut self, event: &Event) {
        let lease = &self.config.lease;
        match event {
            Event::Registered => {
                tracing::info!(%lease, candidate = %self.config.identity, "registered");
            }
            Event::Leading { term, token } => tracing::info!(%lease, %term, %token, "leading"),
            Event::Stopping { term, why } => {
                tracing::info!(%lease, %term, %why, "stopping the work");
            }
            Event::WorkStopped { term } => tracing::debug!(%lease, %term, "the work has stopped"),
            Event::Ended { term, end } => {
                tracing::info!(%lease, %term, %end, "leading no more");
            }
        }
        (self.observer)(event);
    }
}

async fn answered<A>(request: &mut Option<BoxFuture<'static, A>>) -> A {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

async fn ended<T: Send + 'static, E: Send + 'static>(
    work: &mut Option<Work<T, E>>,
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
