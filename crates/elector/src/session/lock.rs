//! The shell of the built-in controller's lock: its machine, its watch, and the requests that take and keep it.

use std::time::Duration;

use elector_api::{CandidateApi, Lease, Malformed};
use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Acquisition, Effect, Ending, HolderConfig, HolderMode, TakeoverPolicy,
};
use elector_protocol::{CandidateTiming, Identity, Instant, LeaseKey, Moment};
use elector_runtime::{
    Cause, Clock, Cluster, FailureLog, HolderLog, HolderShell, LeasePath, LeaseResponse,
    RequestError, Scope, Watch, WatchEvent, WatchOptions, WriteOutcome, Writer, watch_leases,
};
use tracing::{debug, info, warn};

use crate::active_belief::ActiveBelief;
use crate::builtin::{Authority, BuiltinLock, LOCK_NAME, LOCK_NAMESPACE};
use crate::config::{BuiltinController, Config};
use crate::view::Restored;

/// The lock of the built-in controller: the authority that it gives, and the requests for it.
pub(crate) struct LockShell {
    machine: BuiltinLock,
    /// Takes and keeps the lock, where the built-in controller is to be replaced.
    holder: Option<HolderShell>,
    /// Its watch, where that controller sees the candidates.
    watch: Option<Watch<Lease>>,
    /// The authority over leases of the built-in strategy, as last acted upon.
    authority: Authority,
    /// True if the built-in controller is to be replaced.
    replaces: bool,
}

/// News of the lock.
pub(crate) enum LockInput {
    Response(LeaseResponse),
    Event(WatchEvent<Lease>),
}

/// The log of the requests for the lock.
struct LockRequestLog<'a> {
    failures: &'a mut FailureLog,
    now: Instant,
}

/// The time for the release at the end. The whole end takes no more than two seconds: before this come the last
/// requests, and after it the release of the lock of the electors.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(1100);

/// The effect of a lock that may not be read, and the remedy: RBAC can grant its list and its watch by name, since
/// both ask for that one name.
const MISSING_ROLE: &str = "; no lease of the built-in strategy is elected until a Role in the namespace kube-system \
     grants list and watch of leases.coordination.k8s.io with the resourceName leader-election-controller, such as \
     manifests/components/builtin-lock/role.yaml";

/// The subject of failures of the lock.
const SUBJECT: &str = "the lock of the built-in controller";

// === impl LockShell ===

impl LockShell {
    /// The lock where LeaseCandidates are those of `candidates`. No built-in controller sees custom resources.
    pub(crate) fn new(
        config: &Config,
        cluster: &Cluster,
        candidates: CandidateApi,
        clock: &dyn Clock,
        seed: u64,
    ) -> Self {
        let shared = candidates != CandidateApi::Elector;
        let longest = config.timing.max_lease_duration;
        let key = LeaseKey::new(LOCK_NAMESPACE, LOCK_NAME);
        let (machine, holder) = match &config.builtin {
            _ if !shared => (BuiltinLock::unconcerned(longest), None),
            BuiltinController::Respect => (BuiltinLock::respected(longest), None),
            BuiltinController::Replace { host } => {
                let me = Identity::of_elector(host, seed);
                let machine = BuiltinLock::replaced(me.clone(), longest);
                let holder =
                    HolderShell::new(holder_config(me, config), key.clone(), clock.holder());
                (machine, Some(holder))
            }
        };
        let options = WatchOptions::elector(seed);
        let mut lock = Self {
            authority: Authority::Unknown,
            machine,
            holder,
            watch: shared.then(|| watch_leases(cluster, &Scope::Object(key), &options)),
            replaces: matches!(config.builtin, BuiltinController::Replace { .. }),
        };
        lock.authority = lock.authority_at(clock.moment());
        lock
    }

    /// The authority over leases of the built-in strategy, as last acted upon.
    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Waits for an event of the watch, or under that belief for the response to the request that is under way; forever,
    /// while there is neither.
    pub(crate) async fn next(&mut self, belief: &ActiveBelief) -> LockInput {
        let Self { watch, holder, .. } = self;
        tokio::select! {
            biased;
            // A request that was not sent before the belief ended never is.
            Some(response) = belief.guard(response(holder)) => LockInput::Response(response),
            event = event(watch) => LockInput::Event(event),
        }
    }

    pub(crate) fn handle_event(
        &mut self,
        now: Moment,
        event: WatchEvent<Lease>,
        failures: &mut FailureLog,
    ) -> Result<(), Restored> {
        let at = now.monotonic;
        match &event {
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => failures.end(at, SUBJECT, None),
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed { items, .. } => match items.first() {
                Some(lock) => self.handle_seen(at, lock, NewsSource::List, failures),
                None => self.machine.handle_gone(at, None),
            },
            WatchEvent::Applied(lock) => self.handle_seen(at, lock, NewsSource::Watch, failures),
            WatchEvent::Deleted(lock) => {
                let version = lock.snapshot().ok().map(|snapshot| snapshot.version);
                self.machine.handle_gone(at, version);
            }
            WatchEvent::Failed(error) => {
                let consequence = match (&self.authority, &error.cause) {
                    (Authority::Unknown, Cause::Forbidden(_)) => MISSING_ROLE,
                    (Authority::Unknown, _) => {
                        "; leases of the built-in strategy wait until it can be read"
                    }
                    _ => "",
                };
                let text = format!("failed to {error}{consequence}");
                failures.note(at, SUBJECT, &text);
            }
        }
        if let Some(holder) = &mut self.holder {
            holder.handle_event(now, event, &mut LockRequestLog { failures, now: at });
        }
        Ok(())
    }

    /// Takes the response to a request for the lock.
    pub(crate) fn handle_response(
        &mut self,
        now: Moment,
        response: LeaseResponse,
        failures: &mut FailureLog,
    ) {
        let at = now.monotonic;
        match &response {
            LeaseResponse::Wrote(WriteOutcome::Done(lock)) => {
                self.handle_seen(at, lock, NewsSource::OwnWrite, failures);
            }
            LeaseResponse::Read(Ok(Some(lock))) if self.is_news(lock) => {
                self.handle_seen(at, lock, NewsSource::List, failures);
            }
            // The watch brings what is missing or was written by others.
            LeaseResponse::Read(_) | LeaseResponse::Wrote(_) => {}
        }
        if let Some(holder) = &mut self.holder {
            holder.handle_response(now, response, &mut LockRequestLog { failures, now: at });
        }
    }

    /// True if no request for the lock is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.holder.as_ref().is_none_or(HolderShell::is_idle)
    }

    /// Gives up the request that is under way.
    pub(crate) fn give_up(&mut self, now: Moment) {
        if let Some(holder) = &mut self.holder {
            holder.give_up(now);
        }
    }

    /// Sends the request for the lock that is due, under that belief, and says when to look again, by the holder's clock.
    pub(crate) fn advance(
        &mut self,
        clock: &dyn Clock,
        writer: &Writer,
        belief: &ActiveBelief,
    ) -> Option<Instant> {
        let holder = self.holder.as_mut()?;
        loop {
            if !belief.may_begin() {
                return None;
            }
            let (now, mut stopped) = (clock.moment(), false);
            let decision = holder.machine.step(now, clock.wall());
            for effect in decision.effects {
                match effect {
                    // Work under the lock is given up as soon as the authority is seen to have ended.
                    Effect::Stop(_) => {
                        holder.machine.handle_work_stopped(now);
                        stopped = true;
                    }
                    Effect::Start { .. } | Effect::Ended(_) => {}
                    request => holder.send(request, now.holder, writer),
                }
            }
            if !stopped {
                return decision.wake_at;
            }
        }
    }

    /// Takes note of a change of authority, and logs it once. Returns the one before. `acts` says whether this elector
    /// does anything about it.
    pub(crate) fn follow_authority(&mut self, now: Moment, acts: bool) -> Option<Authority> {
        let authority = self.authority_at(now);
        if authority == self.authority {
            return None;
        }
        match &authority {
            _ if !acts => debug!(%authority, "followed the lock of the built-in controller"),
            Authority::Ours if self.replaces => {
                info!("the built-in controller is replaced: deciding in its place");
            }
            Authority::Ours if self.authority == Authority::Unknown => {
                debug!("no built-in controller is electing");
            }
            Authority::Ours => info!("the built-in controller is gone: deciding in its place"),
            Authority::Builtin(holder) if self.replaces => warn!(
                holder = %holder,
                "the built-in controller holds its lock: deciding nothing in its place until it is replaced"
            ),
            Authority::Builtin(holder) => info!(
                holder = %holder,
                "the built-in controller is electing: leases of its strategy are left to it"
            ),
            Authority::Standby if self.replaces => {
                info!(
                    "taking the lock of the built-in controller: deciding in its place once it has stopped"
                );
            }
            Authority::Standby => {
                info!("waiting until the built-in controller has certainly stopped");
            }
            Authority::Unknown => {}
        }
        Some(std::mem::replace(&mut self.authority, authority))
    }

    /// When there is something to do next if nothing is seen before.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        self.machine.wake_at(now)
    }

    /// Lets go of the lock, if it is ours; once everything that it protects has stopped.
    pub(crate) async fn release(
        mut self,
        clock: &dyn Clock,
        writer: &Writer,
        failures: &mut FailureLog,
    ) {
        let Some(holder) = &mut self.holder else {
            return;
        };
        let now = clock.monotonic();
        let mut log = LockRequestLog { failures, now };
        let ending = holder.release(RELEASE_TIMEOUT, clock, writer, &mut log);
        match ending.await {
            Some(Ending::Released) => info!("released the lock of the built-in controller"),
            ending => debug!(
                ?ending,
                "the lock of the built-in controller was not released"
            ),
        }
    }

    fn authority_at(&self, now: Moment) -> Authority {
        let holder = self.holder.as_ref();
        let holds = holder.is_some_and(|holder| holder.machine.believes(now.holder));
        self.machine.authority(now.monotonic, holds)
    }

    fn handle_seen(
        &mut self,
        now: Instant,
        lock: &Lease,
        source: NewsSource,
        failures: &mut FailureLog,
    ) {
        match lock.snapshot() {
            Ok(snapshot) => self.machine.handle_lock(now, snapshot, source),
            Err(fault) => {
                let text = format!("failed to read a Lease: {fault}");
                failures.note(now, SUBJECT, &text);
            }
        }
    }

    /// True if it is newer than what is known.
    fn is_news(&self, lock: &Lease) -> bool {
        lock.snapshot()
            .is_ok_and(|snapshot| self.machine.version() < Some(snapshot.version))
    }
}

// === impl LockRequestLog ===

impl HolderLog for LockRequestLog<'_> {
    fn log_result(&mut self, _: Instant, path: LeasePath, error: Option<&RequestError>) {
        match (path, error) {
            // The events of the watch have been logged.
            (LeasePath::Watch, _) => {}
            (LeasePath::Requests, Some(error)) => {
                self.failures
                    .note(self.now, SUBJECT, &format!("failed to {error}"));
            }
            (LeasePath::Requests, None) => self.failures.end(self.now, SUBJECT, None),
        }
    }

    // It is logged where the authority is followed.
    fn log_fault(&mut self, _: Instant, _: Option<&Malformed>) {}
}

/// The hold of the lock: taken at once from a built-in controller, which is then waited out, and from another elector
/// that misses its renewals.
fn holder_config(me: Identity, config: &Config) -> HolderConfig {
    let usual = CandidateTiming::default();
    // A standby takes the lock only once it acts: until then the built-in controller must see this one as held.
    let standby = config.leader_election.as_ref();
    let standby = standby.map_or(Duration::ZERO, |election| election.lease_duration);
    HolderConfig {
        identity: me,
        timing: CandidateTiming {
            lease_duration: usual.lease_duration + standby,
            ..usual
        },
        mode: HolderMode::Plain(Acquisition {
            max_lease_duration: config.timing.max_lease_duration,
            // No wait of a holder, but the quiet period, is what keeps two controllers apart.
            absent_lease_grace: Some(Duration::ZERO),
            takeover: TakeoverPolicy::AllButElectors,
            ..Acquisition::plain()
        }),
    }
}

async fn event(watch: &mut Option<Watch<Lease>>) -> WatchEvent<Lease> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

async fn response(holder: &mut Option<HolderShell>) -> LeaseResponse {
    match holder {
        Some(holder) => holder.response().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use elector_protocol::LeaseRecord;
    use elector_testkit::{MemoryCluster, seconds};

    use super::*;
    use crate::leader_election::LeaderElection;

    /// The machine may have slept between the two.
    #[tokio::test(start_paused = true)]
    async fn what_was_decided_under_the_belief_is_not_sent_without_it() {
        let of_belief: [fn(Arc<dyn Clock>) -> ActiveBelief; 2] =
            [ActiveBelief::unlimited, ActiveBelief::none];
        let mut sent = Vec::new();
        for belief in of_belief {
            let memory = MemoryCluster::new();
            let (cluster, clock) = (memory.cluster(), memory.clock());
            let config = Config {
                builtin: BuiltinController::Replace { host: "pod".into() },
                ..Config::default()
            };
            let api = CandidateApi::V1Beta1;
            let mut lock = LockShell::new(&config, &cluster, api, &*clock, 0);
            let holder = lock.holder.as_mut().unwrap();
            let born = Effect::Create(LeaseRecord::born(None));
            holder.send(born, memory.now(), &Writer::new(cluster, api));
            let belief = belief(clock);
            let inputs = async {
                loop {
                    lock.next(&belief).await;
                }
            };
            assert!(tokio::time::timeout(seconds(1), inputs).await.is_err());
            sent.push(memory.count_requests("POST", "/leases"));
        }
        assert_eq!(sent, [1, 0]);
    }

    /// Until an elector that stood by has taken over and takes the lock, the built-in controller has to see it as held.
    #[test]
    fn the_lock_lasts_for_as_long_as_a_standby_may_take_to_follow() {
        let lasts = |leader_election| {
            let me = Identity::of_elector("pod", 1);
            let config = Config {
                leader_election,
                ..Config::default()
            };
            holder_config(me, &config).timing.lease_duration.as_secs()
        };
        assert_eq!(lasts(None), 15);
        let election = LeaderElection {
            lease_duration: Duration::from_secs(20),
            ..LeaderElection::new("pod")
        };
        assert_eq!(lasts(Some(election)), 35);
    }
}
