//! The lock of the electors: the Lease held by the active elector; standbys wait for it.
//!
//! ```text
//!   LockDriver ──> Start: lead the electors   Stop: send nothing more, then stand by
//!        └──> ActiveBelief, which every request asks before it is sent
//! ```
//!
//! It outlives the sessions of an elector: a store that went back or another API of LeaseCandidates takes the lock from
//! none.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_protocol::holder::{Acquisition, Effect, Ending, HolderConfig, HolderMode, StopReason};
use elector_protocol::{Identity, Instant, LeaseKey};
use elector_runtime::{Cause, Clock, FailureLog, LeasePath, RequestError, WriteCounts, Writer};
use tracing::info;

use crate::active_belief::ActiveBelief;
use crate::elector_context::ElectorContext;
use crate::event::{ElectorObserver, Event};
use crate::leader_election::LeaderElection;
use crate::lock_driver::{LockDriver, LockInput, LockLog};

/// This elector's part in the leader election among electors.
pub(crate) struct ElectorLock {
    lease: LeaseKey,
    identity: Identity,
    clock: Arc<dyn Clock>,
    driver: LockDriver,
    belief: ActiveBelief,
    role: LockRole,
    /// From when on this elector may take the lock, by the holder's clock; `None` until it knows all that it takes to act.
    ready_at: Option<Instant>,
    /// The other elector that was last reported to hold the lock.
    reported: Option<Identity>,
    failures: FailureLog,
    observer: ElectorObserver,
}

/// This elector's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockRole {
    StandingBy,
    Leading,
    /// It sends nothing new, and what is under way comes to its end.
    Stopping,
}

/// The name of the lock in lines of the log.
const LOCK: &str = "the lock of the electors";

/// For how long an elector that has just begun leaves a free lock to others: those have watched for longer, so that they
/// need not wait where it must (R4, R6).
const HEAD_START: Duration = Duration::from_secs(2);

// === impl ElectorLock ===

impl ElectorLock {
    /// The part of an elector that knows nothing of the lock yet. Its writes are counted there.
    pub(crate) fn new(
        context: &ElectorContext,
        election: &LeaderElection,
        observer: ElectorObserver,
        counts: Option<Arc<WriteCounts>>,
    ) -> Self {
        let config = holder_config(election, context.seed);
        let clock = Arc::clone(&context.clock);
        // It writes no LeaseCandidates, so their API is of no matter.
        let mut writer = Writer::new(context.cluster.clone(), CandidateApi::default());
        if let Some(counts) = counts {
            writer = writer.with_counts(counts);
        }
        Self {
            lease: election.lease.clone(),
            identity: config.identity.clone(),
            driver: LockDriver::new(
                config,
                election.lease.clone(),
                &context.cluster,
                writer,
                Arc::clone(&clock),
                context.seed,
            ),
            belief: ActiveBelief::none(Arc::clone(&clock)),
            clock,
            role: LockRole::StandingBy,
            ready_at: None,
            reported: None,
            failures: FailureLog::default(),
            observer,
        }
    }

    /// Until when this elector may act.
    pub(crate) const fn belief(&self) -> &ActiveBelief {
        &self.belief
    }

    /// True if this elector is to act now.
    pub(crate) fn is_leading(&self) -> bool {
        self.role == LockRole::Leading && self.belief.may_begin()
    }

    /// This elector knows all that it takes to act, so it may soon take the lock.
    pub(crate) fn set_ready(&mut self) {
        let now = self.clock.holder();
        self.ready_at.get_or_insert(now.after(HEAD_START));
    }

    /// Takes its machine as far as it goes now, and says when to look again, by the holder's clock. `idle` says that
    /// nothing is under way that was sent because of the lock.
    pub(crate) fn advance(&mut self, idle: bool) -> Option<Instant> {
        self.failures.tick(self.clock.holder());
        self.report_holder();
        let mut wake = self.step();
        if idle && self.role == LockRole::Stopping {
            self.driver.handle_work_stopped();
            wake = self.step();
        }
        [wake, self.failures.wake_at()].into_iter().flatten().min()
    }

    /// Waits for news of the lock. A request under the belief is given up with it; the hand-over and the release need none.
    pub(crate) async fn next(&mut self) -> LockInput {
        let belief = self.driver.deadline().map(|_| &self.belief);
        self.driver.next(belief).await
    }

    /// Takes in what came.
    pub(crate) fn handle_input(&mut self, input: LockInput) {
        let consequence = |_: LeasePath, error: &RequestError| consequence(&self.lease, error);
        let mut log = LockLog::new(LOCK, &mut self.failures, self.clock.holder(), &consequence);
        self.driver.handle_input(input, &mut log);
    }

    /// Keeps the lock, or waits for it, while there is nothing to act upon.
    pub(crate) async fn keep(&mut self) -> Infallible {
        loop {
            let wake = self.advance(true);
            let clock = Arc::clone(&self.clock);
            tokio::select! {
                biased;
                input = self.next() => self.handle_input(input),
                () = sleep_until_holder(&*clock, wake) => {}
            }
        }
    }

    /// Lets go of the lock if this elector holds it, within that time. Nothing may be under way any more.
    pub(crate) async fn release(mut self, within: Duration) {
        let consequence = |_: LeasePath, error: &RequestError| consequence(&self.lease, error);
        let mut log = LockLog::new(LOCK, &mut self.failures, self.clock.holder(), &consequence);
        if self.driver.release(within, &mut log).await == Some(Ending::Released) {
            info!(lease = %self.lease, "released the lock of the electors");
        }
    }

    /// One step of the machine, with its effects.
    fn step(&mut self) -> Option<Instant> {
        let now = self.clock.holder();
        if self.ready_at.is_none_or(|at| now < at) {
            return self.ready_at;
        }
        let decision = self.driver.step();
        for effect in decision.effects {
            self.perform(effect);
        }
        self.belief.set(self.driver.deadline());
        decision.wake_at
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start { term, .. } => {
                self.role = LockRole::Leading;
                self.belief.set_closed(false);
                let lease = self.lease.clone();
                self.emit(&Event::Leading { lease, term });
            }
            Effect::Stop(reason) => {
                self.role = LockRole::Stopping;
                self.belief.set_closed(true);
                if let StopReason::Lost(_) = reason {
                    self.driver.give_up();
                }
            }
            Effect::Ended(ending) => {
                self.role = LockRole::StandingBy;
                self.reported = self.other_holder().cloned();
                self.stand_by(ending.to_string());
            }
            request => self.driver.send(request),
        }
    }

    /// Reports that another elector holds the lock, once for each that does.
    fn report_holder(&mut self) {
        if self.role != LockRole::StandingBy {
            return;
        }
        let Some(holder) = self.other_holder().cloned() else {
            return;
        };
        if self.reported.as_ref() != Some(&holder) {
            let reason = format!("{holder} holds the lease");
            self.reported = Some(holder);
            self.stand_by(reason);
        }
    }

    fn stand_by(&self, reason: String) {
        self.emit(&Event::StandingBy {
            lease: self.lease.clone(),
            holder: self.reported.clone(),
            reason,
        });
    }

    /// The holder that the lock names, unless that is this elector.
    fn other_holder(&self) -> Option<&Identity> {
        let holder = self.driver.record_holder();
        holder.filter(|holder| **holder != self.identity)
    }

    /// Logs an event, and passes it to the observer.
    fn emit(&self, event: &Event) {
        event.log(None);
        (self.observer)(event);
    }
}

/// The hold of the lock of the electors.
fn holder_config(election: &LeaderElection, seed: u64) -> HolderConfig {
    HolderConfig {
        identity: election.identity(seed),
        timing: election.timing(),
        mode: HolderMode::Plain(Acquisition {
            // Two electors that act at the same time are harmless (R17).
            absent_lease_grace: Some(Duration::ZERO),
            ..Acquisition::plain()
        }),
        life: None,
    }
}

/// The effect of a lock that may not be read or written, and the remedy.
fn consequence(lease: &LeaseKey, error: &RequestError) -> String {
    let Cause::Forbidden(_) = &error.cause else {
        return String::new();
    };
    let (namespace, name) = (&lease.namespace, &lease.name);
    format!(
        "; this elector stands by until a Role in the namespace {namespace} grants create of \
         leases.coordination.k8s.io, and get, list, watch and update of those with the resourceName {name}, such as that \
         of manifests/base/rbac.yaml"
    )
}

pub(crate) async fn sleep_until_holder(clock: &dyn Clock, until: Option<Instant>) {
    match until {
        Some(until) => clock.sleep_until_holder(until).await,
        None => std::future::pending().await,
    }
}
