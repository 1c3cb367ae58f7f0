//! The lock of the electors: the Lease that the one of them holds which acts, while the others stand by.
//!
//! ```text
//!   watch of the Lease ──> HolderShell ──> Start: lead the electors   Stop: send nothing more, then stand by
//!                               └──> ActiveBelief, which every request asks before it is sent
//! ```
//!
//! It outlives the sessions of an elector: a store that went back or another API of LeaseCandidates takes the lock from
//! none.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, Lease, Malformed};
use elector_protocol::holder::{Acquisition, Effect, Ending, HolderConfig, HolderMode, StopReason};
use elector_protocol::{Identity, Instant, LeaseKey};
use elector_runtime::{
    Cause, Clock, Cluster, FailureLog, HolderLog, HolderShell, LeasePath, LeaseResponse,
    RequestError, Watch, WatchEvent, WatchOptions, WriteCounts, Writer,
};
use tracing::info;

use crate::active_belief::ActiveBelief;
use crate::event::{ElectorObserver, Event};
use crate::leader_election::LeaderElection;

/// This elector's part in the leader election among electors.
pub(crate) struct ElectorLock {
    lease: LeaseKey,
    identity: Identity,
    clock: Arc<dyn Clock>,
    shell: HolderShell,
    watch: Watch<Lease>,
    writer: Writer,
    belief: ActiveBelief,
    role: LockRole,
    /// From when on this elector may take the lock, by the holder's clock; `None` until it knows all that it takes to act.
    ready_at: Option<Instant>,
    /// The other elector that was last told to hold the lock.
    told: Option<Identity>,
    failures: FailureLog,
    observer: ElectorObserver,
}

/// News of the lock of the electors.
pub(crate) enum ElectorLockInput {
    Response(LeaseResponse),
    Event(WatchEvent<Lease>),
}

/// This elector's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockRole {
    StandingBy,
    Leading,
    /// It sends nothing new, and what is under way comes to its end.
    Stopping,
}

/// The log of the lock.
struct ElectorLockLog<'a> {
    lease: &'a LeaseKey,
    failures: &'a mut FailureLog,
}

/// For how long an elector that has just begun leaves a free lock to others: those have watched for longer, so that they
/// need not wait where it must (R4, R6).
const HEAD_START: Duration = Duration::from_secs(2);

// === impl ElectorLock ===

impl ElectorLock {
    /// The part of an elector that knows nothing of the lock yet. Its watch is opened by [`Self::next`].
    pub(crate) fn new(
        election: &LeaderElection,
        cluster: &Cluster,
        (clock, seed): (Arc<dyn Clock>, u64),
        observer: ElectorObserver,
    ) -> Self {
        let identity = election.identity(seed);
        let config = HolderConfig {
            identity: identity.clone(),
            timing: election.timing(),
            mode: HolderMode::Plain(Acquisition {
                // Two electors that act at the same time are harmless (R17).
                absent_lease_grace: Some(Duration::ZERO),
                ..Acquisition::plain()
            }),
        };
        let shell = HolderShell::new(config, election.lease.clone(), clock.holder());
        Self {
            lease: election.lease.clone(),
            identity,
            watch: shell.watch(cluster, &WatchOptions::elector(seed)),
            shell,
            // It writes no LeaseCandidates, so their API is of no matter.
            writer: Writer::new(cluster.clone(), CandidateApi::default()),
            belief: ActiveBelief::none(Arc::clone(&clock)),
            clock,
            role: LockRole::StandingBy,
            ready_at: None,
            told: None,
            failures: FailureLog::default(),
            observer,
        }
    }

    /// The same part, counting its writes there.
    pub(crate) fn with_write_counts(self, counts: Arc<WriteCounts>) -> Self {
        let writer = self.writer.with_counts(counts);
        Self { writer, ..self }
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
        self.tell_holder();
        let mut wake = self.step();
        if idle && self.role == LockRole::Stopping {
            self.shell.machine.handle_work_stopped(self.clock.moment());
            wake = self.step();
        }
        [wake, self.failures.wake_at()].into_iter().flatten().min()
    }

    /// Waits for an event of the watch or for the response to the request that is under way.
    pub(crate) async fn next(&mut self) -> ElectorLockInput {
        let Self {
            shell,
            watch,
            belief,
            role,
            ..
        } = self;
        let standing_by = *role == LockRole::StandingBy;
        let response = async move {
            if standing_by {
                return Some(shell.response().await);
            }
            // A request under the belief is given up with it.
            belief.guard(shell.response()).await
        };
        tokio::select! {
            biased;
            Some(response) = response => ElectorLockInput::Response(response),
            event = watch.next() => ElectorLockInput::Event(event),
        }
    }

    /// Takes in what came.
    pub(crate) fn handle_input(&mut self, input: ElectorLockInput) {
        let now = self.clock.moment();
        let mut log = ElectorLockLog {
            lease: &self.lease,
            failures: &mut self.failures,
        };
        match input {
            ElectorLockInput::Response(response) => {
                self.shell.handle_response(now, response, &mut log);
            }
            ElectorLockInput::Event(event) => self.shell.handle_event(now, event, &mut log),
        }
    }

    /// Keeps the lock, or waits for it, while there is nothing to act upon.
    pub(crate) async fn keep(&mut self) -> Infallible {
        loop {
            let wake = self.advance(true);
            self.turn(wake).await;
        }
    }

    /// Lets go of the lock if this elector holds it, within that time. Nothing may be under way any more.
    pub(crate) async fn release(mut self, within: Duration) {
        let mut log = ElectorLockLog {
            lease: &self.lease,
            failures: &mut self.failures,
        };
        let clock = &*self.clock;
        let ending = self.shell.release(within, clock, &self.writer, &mut log);
        if ending.await == Some(Ending::Released) {
            info!(lease = %self.lease, "released the lock of the electors");
        }
    }

    /// Waits for one input and takes it in, until that instant of the holder's clock.
    async fn turn(&mut self, until: Option<Instant>) {
        let clock = Arc::clone(&self.clock);
        tokio::select! {
            biased;
            input = self.next() => self.handle_input(input),
            () = sleep_until_holder(&*clock, until) => {}
        }
    }

    /// One step of the machine, with its effects.
    fn step(&mut self) -> Option<Instant> {
        let now = self.clock.moment();
        if self.ready_at.is_none_or(|at| now.holder < at) {
            return self.ready_at;
        }
        let decision = self.shell.machine.step(now, self.clock.wall());
        for effect in decision.effects {
            self.perform(effect, now.holder);
        }
        self.belief.set(self.shell.deadline());
        decision.wake_at
    }

    fn perform(&mut self, effect: Effect, now: Instant) {
        match effect {
            Effect::Start { term, .. } => {
                self.role = LockRole::Leading;
                self.belief.set_closed(false);
                self.told = None;
                let lease = self.lease.clone();
                self.emit(&Event::Leading { lease, term });
            }
            Effect::Stop(reason) => {
                self.role = LockRole::Stopping;
                self.belief.set_closed(true);
                if let StopReason::Lost(_) = reason {
                    self.shell.give_up(self.clock.moment());
                }
            }
            Effect::Ended(ending) => {
                self.role = LockRole::StandingBy;
                self.told = self.other_holder().cloned();
                self.stand_by(ending.to_string());
            }
            Effect::Read | Effect::Create(_) | Effect::Write { .. } => {
                self.shell.send(effect, now, &self.writer);
            }
        }
    }

    /// Tells that another elector holds the lock, once for each that does.
    fn tell_holder(&mut self) {
        if self.role != LockRole::StandingBy {
            return;
        }
        let Some(holder) = self.other_holder().cloned() else {
            return;
        };
        if self.told.as_ref() != Some(&holder) {
            let reason = format!("{holder} holds the lease");
            self.told = Some(holder);
            self.stand_by(reason);
        }
    }

    fn stand_by(&self, reason: String) {
        self.emit(&Event::StandingBy {
            lease: self.lease.clone(),
            holder: self.told.clone(),
            reason,
        });
    }

    /// The holder that the lock names, unless that is this elector.
    fn other_holder(&self) -> Option<&Identity> {
        let holder = self.shell.machine.known()?.record.holder.as_ref();
        holder.filter(|holder| **holder != self.identity)
    }

    /// Logs an event, and tells the observer.
    fn emit(&self, event: &Event) {
        event.log(0);
        (self.observer)(event);
    }
}

// === impl ElectorLockLog ===

impl HolderLog for ElectorLockLog<'_> {
    fn log_result(&mut self, now: Instant, path: LeasePath, error: Option<&RequestError>) {
        let subject = match path {
            LeasePath::Requests => "requests for the lock of the electors",
            LeasePath::Watch => "the watch of the lock of the electors",
        };
        let Some(error) = error else {
            return self.failures.end(now, subject, None);
        };
        let consequence = match &error.cause {
            Cause::Forbidden(_) => missing_role(self.lease),
            _ => String::new(),
        };
        let text = format!("failed to {error}{consequence}");
        self.failures.note(now, subject, &text);
    }

    fn log_fault(&mut self, now: Instant, fault: Option<&Malformed>) {
        let subject = "the lock of the electors";
        match fault {
            Some(fault) => {
                let text = format!("ignored {subject}, which cannot be read: {fault}");
                self.failures.note(now, subject, &text);
            }
            None => self.failures.end(now, subject, None),
        }
    }
}

/// The effect of a lock that may not be read or written, and the remedy.
fn missing_role(lease: &LeaseKey) -> String {
    let (namespace, name) = (&lease.namespace, &lease.name);
    format!(
        "; this elector stands by until a Role in the namespace {namespace} grants create of \
         leases.coordination.k8s.io, and get, list, watch and update of those with the resourceName {name}, such as that \
         of manifests/base/rbac.yaml"
    )
}

async fn sleep_until_holder(clock: &dyn Clock, until: Option<Instant>) {
    match until {
        Some(until) => clock.sleep_until_holder(until).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::LeaseRecord;
    use elector_testing::{EmbeddedCluster, seconds};

    use super::*;

    /// The machine may have slept between the two.
    #[tokio::test(start_paused = true)]
    async fn what_was_decided_under_the_belief_is_not_sent_without_it() {
        for (role, sent) in [
            (LockRole::StandingBy, 1),
            (LockRole::Leading, 0),
            (LockRole::Stopping, 0),
        ] {
            let cluster = EmbeddedCluster::with_gate();
            let (election, clock) = (LeaderElection::new("pod"), cluster.clock());
            let observer: ElectorObserver = Arc::new(|_| {});
            let cluster_client = cluster.cluster();
            let mut lock = ElectorLock::new(&election, &cluster_client, (clock, 0), observer);
            lock.role = role;
            let born = Effect::Create(LeaseRecord::born(None));
            lock.shell.send(born, cluster.now(), &lock.writer);
            let inputs = async {
                loop {
                    lock.next().await;
                }
            };
            assert!(tokio::time::timeout(seconds(1), inputs).await.is_err());
            let posts = cluster.count_requests("POST", "/leases");
            assert_eq!(posts, sent, "{role:?}");
        }
    }
}
