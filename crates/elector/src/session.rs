//! One life of an elector: from empty memory until it is stopped, or the store turns out to be another one, or
//! LeaseCandidates come from another API.
//!
//! ```text
//!   inputs: watch events, responses ──> view ──> queue ──> step ──> requests
//!                                                  ^ deadlines of the step
//! ```
//!
//! Everything but the requests happens in [`ElectorSession::run`], one thing after the other: no lock, no channel, no
//! task. A key has one batch of requests at a time (the queue sees to that), and those are nothing but a stream of
//! responses, so a slow answer holds up its own lease only. A batch whose write has certainly lost its race does not even
//! hold up that one (R2).

mod batches;
mod builtin_authority;
mod groups;
mod inputs;
mod line_budget;
mod monitor;
mod races;
mod requests;
mod step;
mod turns;
mod write_budget;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::elector::{Action, Decision, Reason};
use elector_protocol::{Instant, LeaseKey};
use elector_runtime::{
    ApiDiscovery, Clock, Scope as WatchScope, Watch, WatchEvent, WatchOptions, Writer,
    watch_candidates, watch_leases,
};
use elector_workqueue::Poll;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tracing::field::display;
use tracing::{debug, error};

use self::builtin_authority::BuiltinAuthority;
use self::inputs::{ElectorInput, InputHandler, elector_lock_input, namespace_group, next_news};
use self::races::RaceStep;
use self::requests::{BatchResponse, ElectionRequest, ElectionRequests, requests_of};
use self::step::{StepResult, StepRunner};
use self::write_budget::WriteBudget;
use crate::active_belief::ActiveBelief;
use crate::builtin::Authority;
use crate::config::Scope;
use crate::elector_context::ElectorContext;
use crate::elector_lock::{ElectorLock, sleep_until_holder};
use crate::event::{ElectorObserver, Event};
use crate::event_recorder::EventRecorder;
use crate::metrics::MeasuredQueue;
use crate::view::{CandidateList, LeaseList, LimitHit, Restored};

pub(crate) use self::monitor::SessionMonitor;

/// The working memory, watches and requests of an elector.
pub(crate) struct ElectorSession<'a> {
    clock: Arc<dyn Clock>,
    observer: ElectorObserver,
    monitor: SessionMonitor,
    writer: Writer,
    api_discovery: &'a mut ApiDiscovery,
    leases: Watch<Lease, LeaseList>,
    candidates: Watch<LeaseCandidate, CandidateList>,
    builtin: BuiltinAuthority,
    /// The lock of the electors, where they elect one of themselves.
    elector_lock: Option<&'a mut ElectorLock>,
    belief: ActiveBelief,
    /// True if this elector acts, as last acted upon.
    acts: bool,
    inputs: InputHandler,
    /// The leases to decide. Empty while this elector stands by.
    queue: MeasuredQueue,
    step: StepRunner,
    requests: ElectionRequests,
    writes: WriteBudget,
    events: &'a mut EventRecorder,
    synced: bool,
    /// When old memories are dropped next.
    forget_at: Instant,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// It was stopped. `idle` says that nothing is under way any more, at the server either.
    ShutDown { idle: bool },
    /// The store was restored from a backup (R4).
    Restored,
    /// LeaseCandidates are to be used from this API from now on.
    ApiMoved(CandidateApi),
}

/// The time for the last requests of an elector whose lock is to be released.
const LAST_REQUESTS: Duration = Duration::from_millis(400);

/// The time for them and the release of the lock of the built-in controller; the lock of the electors has a second more.
const END: Duration = Duration::from_millis(900);

/// The most that is taken in before what follows from it is done. A watch brings events by the hundred in a burst.
const MOST_AT_ONCE: usize = 32;

/// The period to drop old memories.
const FORGET_EVERY: Duration = Duration::from_secs(600);

// === impl ElectorSession ===

impl<'a> ElectorSession<'a> {
    /// A session that knows nothing yet. Watches are opened by [`Self::run`].
    pub(crate) fn new(
        context: &ElectorContext,
        candidates: CandidateApi,
        mut monitor: SessionMonitor,
        api_discovery: &'a mut ApiDiscovery,
        elector_lock: Option<&'a mut ElectorLock>,
        events: &'a mut EventRecorder,
    ) -> Self {
        let (config, cluster) = (&context.config, &context.cluster);
        let clock = Arc::clone(&context.clock);
        let writer = monitor.count_writes(Writer::new(cluster.clone(), candidates));
        let options = WatchOptions::elector(context.seed);
        let (scope, watched) = match &config.scope {
            Scope::AllNamespaces => (WatchScope::Cluster, vec![None]),
            Scope::Namespaces(names) => (
                WatchScope::Namespaces(names.clone()),
                names.iter().cloned().map(Some).collect(),
            ),
        };
        let belief = match &elector_lock {
            Some(lock) => lock.belief().clone(),
            None => ActiveBelief::unlimited(Arc::clone(&clock)),
        };
        let now = clock.monotonic();
        events.begin(candidates);
        monitor.set_acting(elector_lock.is_none());
        Self {
            leases: watch_leases(cluster, &scope, &options),
            candidates: watch_candidates(cluster, candidates, &scope, &options),
            api_discovery,
            builtin: BuiltinAuthority::new(context, candidates, writer.clone()),
            inputs: InputHandler::new(config, watched),
            queue: MeasuredQueue::new(config, monitor.metrics()),
            step: StepRunner::new(config, context.step),
            requests: ElectionRequests::new(config.concurrent_elections, belief.clone()),
            writes: WriteBudget::new(),
            acts: elector_lock.is_none(),
            elector_lock,
            belief,
            events,
            synced: false,
            forget_at: now.after(FORGET_EVERY),
            writer,
            clock,
            observer: Arc::clone(&context.observer),
            monitor,
        }
    }

    /// Runs until `shutdown` is done, or the store or the API of the candidates is another one.
    pub(crate) async fn run(mut self, mut shutdown: Pin<&mut impl Future>) -> SessionEnd {
        loop {
            let (wake, lock_wake) = self.advance();
            let timer = wake.map(|at| self.clock.sleep_until(at));
            let clock = Arc::clone(&self.clock);
            let input = tokio::select! {
                biased;
                _ = &mut shutdown => ElectorInput::ShutDown,
                input = elector_lock_input(&mut self.elector_lock) => ElectorInput::ElectorLock(input),
                input = self.builtin.next(&self.belief) => ElectorInput::BuiltinLock(input),
                news = next_news(&mut self.requests, &mut self.leases, &mut self.candidates) => news,
                api = self.api_discovery.next() => ElectorInput::ApiMoved(api),
                () = sleep(timer) => ElectorInput::Time,
                () = sleep_until_holder(&*clock, lock_wake) => ElectorInput::Time,
            };
            let now = self.clock.monotonic();
            self.monitor.note_input(now, &input);
            match input {
                ElectorInput::ShutDown => return self.end().await,
                // Knowledge of other candidates is of no use; that of Leases is soon seen again.
                ElectorInput::ApiMoved(api) => return SessionEnd::ApiMoved(api),
                input => {
                    if self.take_in(now, input).is_err() {
                        return SessionEnd::Restored;
                    }
                }
            }
        }
    }

    /// Takes in what came, and what else there is by now: what follows from all of it is done once.
    fn take_in(&mut self, now: Instant, input: ElectorInput) -> Result<(), Restored> {
        self.handle_input(now, input)?;
        for _ in 1..MOST_AT_ONCE {
            let news = next_news(&mut self.requests, &mut self.leases, &mut self.candidates);
            let Some(input) = news.now_or_never() else {
                break;
            };
            let now = self.clock.monotonic();
            self.monitor.note_input(now, &input);
            self.handle_input(now, input)?;
        }
        Ok(())
    }

    fn handle_input(&mut self, now: Instant, input: ElectorInput) -> Result<(), Restored> {
        let inputs = &mut self.inputs;
        match input {
            ElectorInput::Response(BatchResponse {
                batch,
                response,
                is_last,
            }) => {
                let batches = &mut self.requests.batches;
                let overtaken = batches.note_response(&batch, response.is_of_write());
                if inputs.handle_response(now, &batch.lease, *response, overtaken)? {
                    batches.note_failure(&batch);
                }
                if !is_last {
                    return Ok(());
                }
                let end = batches.finish(&batch);
                let key = batch.lease;
                if end.failed {
                    // The key stays queued until the desired state is reached.
                    self.queue.add_rate_limited(key.clone(), now.since_epoch());
                } else if !end.overtaken {
                    self.queue.forget(&key);
                }
                if !end.overtaken {
                    self.queue.done(&key, now.since_epoch());
                }
            }
            ElectorInput::BuiltinLock(input) => {
                self.builtin.handle_input(input, &mut inputs.failures)?;
            }
            ElectorInput::ElectorLock(input) => {
                if let Some(lock) = &mut self.elector_lock {
                    lock.handle_input(input);
                }
            }
            ElectorInput::LeaseEvent(event) => {
                if let Some(key) = inputs.handle_lease_event(now, event)?
                    && !self.requests.is_idle()
                    && let Some(newest) = inputs.view.lease(&key)
                {
                    self.requests.batches.note_revision(&key, newest);
                }
            }
            ElectorInput::CandidateEvent(event) => {
                match &event {
                    WatchEvent::Failed(error) => self.api_discovery.suspect(error),
                    WatchEvent::Synced => self.api_discovery.trust(),
                    _ => {}
                }
                inputs.handle_candidate_event(now, event)?;
            }
            ElectorInput::ApiMoved(_) | ElectorInput::ShutDown | ElectorInput::Time => {}
        }
        Ok(())
    }

    /// Does everything that follows from what came in, and says when there is more to do if nothing comes in: by the
    /// elector's clock, and for the locks by the holder's.
    fn advance(&mut self) -> (Option<Instant>, Option<Instant>) {
        let now = self.clock.monotonic();
        while let Some(change) = self.inputs.view.next_change() {
            if self.acts && self.synced {
                let inputs = &mut self.inputs;
                let lease = inputs.view.lease(&change.lease);
                let failures = &mut inputs.failures;
                self.events.record_change(now, &change, lease, failures);
            }
            self.emit(&Event::LeadershipChanged(change));
        }
        for (key, panic) in self.inputs.view.take_panics() {
            error!(lease = %key, panic, "processing an object panicked: the state of its lease is dropped");
        }
        if !self.synced && self.inputs.view.is_synced() {
            self.synced = true;
            let leases = self.inputs.view.keys().len();
            self.emit(&Event::Listed { leases });
            self.monitor.begin(now, &self.inputs.view);
        }
        // Those of the first lists are reported like all others.
        while self.synced
            && let Some(hit) = self.inputs.view.next_limit_hit()
        {
            self.note_limit(now, hit);
        }
        if now >= self.forget_at {
            self.forget_at = now.after(FORGET_EVERY);
            self.inputs.view.forget(now);
        }
        let elector_lock = self.follow_elector_lock();
        while let Some(key) = self.requests.batches.overtake() {
            // The watch has brought what is to be judged, so the key is dirty.
            self.inputs.races.lose(now, &key);
            self.queue.done(&key, now.since_epoch());
        }
        self.inputs.view.wake_groups(now);
        self.follow_dirty(now);
        let builtin_lock = self.builtin.advance(&self.belief);
        let locks = [elector_lock, builtin_lock].into_iter().flatten().min();
        self.follow_authority();
        let due = self.dispatch();
        let now = self.clock.monotonic();
        let authority = self.builtin.wake_at(now);
        let failures = &mut self.inputs.failures;
        failures.tick(now);
        self.queue.report(now.since_epoch());
        let turn = self.monitor.turn(now, &self.inputs.view);
        let wake = [
            due,
            authority,
            failures.wake_at(),
            Some(self.forget_at),
            self.inputs.view.groups_wake_at(),
            turn,
        ];
        (wake.into_iter().flatten().min(), locks)
    }

    /// Begins to act when this elector leads the electors, and gives up everything when it does not any more. Says when
    /// there is more to do, by the holder's clock.
    fn follow_elector_lock(&mut self) -> Option<Instant> {
        let idle = self.is_idle();
        let lock = self.elector_lock.as_deref_mut()?;
        if self.synced {
            lock.set_ready();
        }
        let mut wake = lock.advance(idle);
        if !idle && !self.belief.holds() {
            self.give_up();
            wake = self.elector_lock.as_deref_mut()?.advance(true);
        }
        let acts = self.elector_lock.as_deref()?.is_leading();
        if acts != self.acts {
            self.acts = acts;
            // The view holds what happened meanwhile: one look at each lease is all it takes.
            self.queue.reset();
            self.monitor.set_acting(acts);
            if acts {
                self.events.begin(self.writer.candidate_api());
                self.decide_everything();
            }
        }
        wake
    }

    /// True if nothing is under way.
    fn is_idle(&self) -> bool {
        self.requests.is_idle() && self.builtin.is_idle()
    }

    /// Gives up what is under way. The server may carry it out all the same.
    fn give_up(&mut self) {
        let now = self.clock.monotonic();
        for key in self.requests.give_up() {
            self.queue.done(&key, now.since_epoch());
        }
        self.builtin.give_up();
    }

    /// Has every lease decided, if this elector acts.
    fn decide_everything(&mut self) {
        let now = self.clock.monotonic().since_epoch();
        if !self.acts {
            return;
        }
        for key in self.inputs.view.keys() {
            self.queue.add(key.clone(), now);
        }
    }

    /// Has every lease decided again where another decides about those of the built-in strategy than before.
    fn follow_authority(&mut self) {
        let now = self.clock.monotonic();
        let Some(before) = self.builtin.follow(self.belief.may_begin()) else {
            return;
        };
        if before == Authority::Ours {
            // The requests were decided while the authority was ours.
            for key in self.requests.give_up() {
                self.queue.done(&key, now.since_epoch());
            }
        }
        self.decide_everything();
    }

    /// Decides about keys as long as there is room for their requests, and says when the next one is due. Nothing is decided
    /// before the view is synced; where there is no room, the end of some requests comes first.
    fn dispatch(&mut self) -> Option<Instant> {
        while self.inputs.view.is_synced() && !self.requests.is_full() && self.belief.may_begin() {
            let now = self.clock.monotonic();
            let key = match self.queue.poll(now.since_epoch()) {
                Poll::Ready(key) => key,
                Poll::Wait(deadline) => return deadline.map(Instant::from_epoch),
                Poll::ShutDown => return None,
            };
            let requests = self.decide(&key, now);
            if requests.is_empty() {
                self.queue.done(&key, now.since_epoch());
                continue;
            }
            let view = &self.inputs.view;
            self.monitor.note_requests(now, &key, &requests, view);
            let counted = requests.iter().filter(|it| it.is_counted()).count();
            if let Some(held_up) = self.writes.charge(now, &key, counted) {
                let until = held_up.until.since_epoch();
                self.queue.pause(&key.namespace, until);
                if let Some(hit) = held_up.news {
                    self.note_limit(now, hit);
                }
            }
            self.requests.send(&self.writer, key, requests);
        }
        None
    }

    /// Decides about one lease and says which requests follow.
    fn decide(&mut self, key: &LeaseKey, now: Instant) -> Vec<ElectionRequest> {
        self.follow_group(key, now);
        let election = match self.inputs.view.election(key) {
            None => {
                self.queue.forget(key);
                self.events.forget(key);
                self.inputs.races.end(key);
                return Vec::new();
            }
            Some(Err(fault)) => {
                let text = format!("failed to decide about a Lease: {fault}");
                self.inputs.failures.note_in(
                    now,
                    &namespace_group(&key.namespace),
                    &key.to_string(),
                    &text,
                );
                self.queue.forget(key);
                return Vec::new();
            }
            Some(Ok(election)) => election,
        };
        let newest = election.lease().map(|lease| lease.version);
        match self.inputs.races.next_look(now, key, newest) {
            RaceStep::Judge => {}
            RaceStep::Read(version) => return vec![ElectionRequest::Read(version)],
            RaceStep::Wait(until) => {
                let delay = until.since(now);
                self.queue.add_after(key.clone(), delay, now.since_epoch());
                return Vec::new();
            }
        }
        let (wall, carrier) = (self.clock.wall(), self.writer.carrier());
        let authority = self.builtin.get();
        let decision = match self.step.run(election, now, wall, carrier, authority) {
            StepResult::Decided(decision) => decision,
            StepResult::Left => {
                // Every lease is decided again when the authority changes.
                debug!(lease = %key, action = %Action::Leave, reason = %authority, "decided");
                if let Authority::Builtin(controller) = authority {
                    let (lease, failures) = (election.lease(), &mut self.inputs.failures);
                    self.events
                        .record_builtin(now, key, lease, controller, failures);
                }
                self.queue.forget(key);
                return Vec::new();
            }
            StepResult::Panicked(text) => {
                error!(lease = %key, panic = text, "the decision about a lease panicked, retrying");
                self.queue.add_rate_limited(key.clone(), now.since_epoch());
                return Vec::new();
            }
        };
        if let Reason::NoAck(silent) = &decision.reason
            && self.inputs.view.replace_silent(key, now, silent)
        {
            self.queue.add(key.clone(), now.since_epoch());
            return Vec::new();
        }
        let wake = decision.wake.map(|wake| display(wake.after(now)));
        debug!(lease = %key, action = %decision.action(), reason = %decision.reason, wake, "decided");
        let (lease, failures) = (self.inputs.view.lease(key), &mut self.inputs.failures);
        self.events
            .record_decision(now, wall, key, lease, &decision, failures);
        self.monitor.note_decision(now, key, &decision.reason);
        self.log_standstill(now, key, &decision);
        if let Some(event) = Event::of_preference(key, &decision.reason) {
            self.emit(&event);
        }
        // The time that an earlier decision waited for does not matter any more.
        self.queue.stop_waiting(key, now.since_epoch());
        if let Some(at) = decision.wake_at() {
            self.queue
                .add_after(key.clone(), at.since(now), now.since_epoch());
        }
        // The built-in controller collects as long as it elects.
        let collects = *self.builtin.get() == Authority::Ours;
        let (view, races) = (&mut self.inputs.view, &mut self.inputs.races);
        let requests = requests_of(view, races, key, decision, collects);
        if requests.is_empty() {
            self.queue.forget(key);
        }
        requests
    }

    /// Logs once why none can be elected although there are candidates, and why a better one is held back.
    fn log_standstill(&mut self, now: Instant, key: &LeaseKey, decision: &Decision) {
        let failures = &mut self.inputs.failures;
        let group = || namespace_group(&key.namespace);
        let subject = format_args!("standstill of {key}");
        match &decision.reason {
            Reason::StrategyConflict(_) | Reason::NoEligible { .. } => {
                let text = format!("no leader can be elected for {key}: {}", decision.reason);
                failures.note_in(now, &group(), &subject.to_string(), &text);
            }
            _ => failures.end(now, subject, None),
        }
        let subject = format_args!("hand-overs of {key}");
        match &decision.reason {
            Reason::HeldBack { because, .. } => {
                let text = format!("no better candidate is preferred for {key}: {because}");
                failures.note_in(now, &group(), &subject.to_string(), &text);
            }
            // The candidate that is held back may be silent for a while, or gone.
            Reason::HolderIsBest(_) | Reason::Preferred { .. } => {
                failures.end(now, subject, None);
            }
            _ => {}
        }
    }

    /// Tells that there was more of something than one namespace or lease may have.
    fn note_limit(&mut self, now: Instant, hit: LimitHit) {
        self.monitor.note_limit(&hit);
        if self.acts {
            let lease = self.inputs.view.lease(hit.lease());
            let failures = &mut self.inputs.failures;
            self.events.record_limit(now, &hit, lease, failures);
        }
        self.emit(&Event::of_limit(hit));
    }

    /// Logs an event, and tells the observer.
    fn emit(&mut self, event: &Event) {
        let left_out = match event {
            Event::LeadershipChanged(change) => {
                let now = self.clock.monotonic();
                self.inputs.lines.take(now, &change.lease.namespace)
            }
            _ => Some(None),
        };
        if let Some(left_out) = left_out {
            event.log(left_out);
        }
        (self.observer)(event);
    }

    /// The end: what is under way comes to its end or is given up, then the lock of the built-in controller is released.
    async fn end(mut self) -> SessionEnd {
        self.belief.set_closed(true);
        let start = self.clock.monotonic();
        if self.elector_lock.is_some() && self.belief.holds() {
            let rest = async {
                while !self.requests.is_idle() {
                    let response = self.requests.next().await;
                    if response.is_last {
                        self.requests.batches.finish(&response.batch);
                    }
                }
            };
            let limit = self.clock.sleep_until(start.after(LAST_REQUESTS));
            tokio::select! {
                biased;
                () = rest => {}
                () = limit => {}
            }
        }
        let idle = self.requests.is_idle();
        drop(self.requests.give_up());
        if self.belief.holds() {
            let (now, failures) = (self.clock.monotonic(), &mut self.inputs.failures);
            let left = start.after(END).since(now);
            self.builtin.release(left, failures).await;
        }
        SessionEnd::ShutDown { idle }
    }
}

async fn sleep(timer: Option<BoxFuture<'static, ()>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}
