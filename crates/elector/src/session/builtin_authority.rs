//! The authority over leases of the built-in strategy, by the lock of the built-in controller, and the hold of that lock
//! where the controller is replaced.

use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, Lease};
use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Acquisition, Effect, Ending, HolderConfig, HolderMode, TakeoverPolicy,
};
use elector_protocol::{CandidateTiming, Identity, Instant, LeaseKey};
use elector_runtime::{
    Cause, Clock, FailureLog, LeasePath, LeaseResponse, RequestError, WatchEvent, WriteOutcome,
    Writer,
};
use tracing::{debug, info, warn};

use crate::active_belief::ActiveBelief;
use crate::builtin::{Authority, BuiltinLock, LOCK_NAME, LOCK_NAMESPACE};
use crate::config::{BuiltinController, Config};
use crate::elector_context::ElectorContext;
use crate::lock_driver::{LockDriver, LockInput, LockLog};
use crate::view::Restored;

/// The authority over leases of the built-in strategy.
pub(crate) struct BuiltinAuthority {
    lock: BuiltinLock,
    /// The driver of the lock, where that controller sees the candidates.
    driver: Option<LockDriver>,
    clock: Arc<dyn Clock>,
    /// The authority as last acted upon.
    authority: Authority,
    /// True if the built-in controller is to be replaced.
    replaces: bool,
}

/// The name of the lock in lines of the log.
const LOCK: &str = "the lock of the built-in controller";

/// The effect of a lock that may not be read, and the remedy: RBAC can grant its list and its watch by name, since
/// both ask for that one name.
const MISSING_ROLE: &str = "; no lease of the built-in strategy is elected until a Role in the namespace kube-system \
     grants list and watch of leases.coordination.k8s.io with the resourceName leader-election-controller, such as \
     manifests/components/builtin-lock/role.yaml";

// === impl BuiltinAuthority ===

impl BuiltinAuthority {
    /// The authority where LeaseCandidates are those of `candidates`. No built-in controller sees custom resources.
    pub(crate) fn new(context: &ElectorContext, candidates: CandidateApi, writer: Writer) -> Self {
        let (config, clock) = (&context.config, Arc::clone(&context.clock));
        let longest = config.timing.max_lease_duration;
        let shared = candidates != CandidateApi::Elector;
        let (lock, identity) = match &config.builtin {
            _ if !shared => (BuiltinLock::unconcerned(longest), None),
            BuiltinController::Respect => (BuiltinLock::respected(longest), None),
            BuiltinController::Replace { host } => {
                let me = Identity::of_elector(host, context.seed);
                (BuiltinLock::replaced(me.clone(), longest), Some(me))
            }
        };
        let replaces = identity.is_some();
        let driver = shared.then(|| {
            // An elector that replaces nothing follows the lock under a name that it never writes.
            let identity = identity.unwrap_or_else(|| Identity::of_elector("", context.seed));
            LockDriver::new(
                holder_config(identity, config),
                LeaseKey::new(LOCK_NAMESPACE, LOCK_NAME),
                &context.cluster,
                writer,
                Arc::clone(&clock),
                context.seed,
            )
        });
        let mut authority = Self {
            lock,
            driver,
            clock,
            authority: Authority::Unknown,
            replaces,
        };
        authority.authority = authority.now();
        authority
    }

    /// The authority as last acted upon.
    pub(crate) const fn get(&self) -> &Authority {
        &self.authority
    }

    /// Waits for news of the lock, under that belief for the response to a request; forever, while there is neither.
    pub(crate) async fn next(&mut self, belief: &ActiveBelief) -> LockInput {
        match &mut self.driver {
            Some(driver) => driver.next(Some(belief)).await,
            None => std::future::pending().await,
        }
    }

    /// Takes in what came.
    pub(crate) fn handle_input(
        &mut self,
        input: LockInput,
        failures: &mut FailureLog,
    ) -> Result<(), Restored> {
        match &input {
            LockInput::Event(WatchEvent::Rewound { .. }) => return Err(Restored),
            LockInput::Event(event) => self.observe_event(event),
            LockInput::Response(LeaseResponse::Wrote(WriteOutcome::Done(lock))) => {
                self.observe(lock, NewsSource::OwnWrite);
            }
            LockInput::Response(LeaseResponse::Read(Ok((Some(lock), _)))) if self.is_news(lock) => {
                self.observe(lock, NewsSource::List);
            }
            // The watch brings what is missing or was written by others.
            LockInput::Response(_) => {}
        }
        let unknown = self.authority == Authority::Unknown;
        let consequence = |path, error: &RequestError| match (path, &error.cause) {
            (LeasePath::Watch, Cause::Forbidden(_)) if unknown => MISSING_ROLE.to_owned(),
            (LeasePath::Watch, _) if unknown => {
                "; leases of the built-in strategy wait until it can be read".to_owned()
            }
            _ => String::new(),
        };
        let mut log = LockLog::new(LOCK, failures, self.clock.monotonic(), &consequence);
        if let Some(driver) = &mut self.driver {
            driver.handle_input(input, &mut log);
        }
        Ok(())
    }

    /// True if no request for the lock is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.driver.as_ref().is_none_or(LockDriver::is_idle)
    }

    /// Gives up the request that is under way.
    pub(crate) fn give_up(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.give_up();
        }
    }

    /// Sends the request for the lock that is due, under that belief, and says when to look again, by the holder's clock.
    pub(crate) fn advance(&mut self, belief: &ActiveBelief) -> Option<Instant> {
        let driver = self.driver.as_mut().filter(|_| self.replaces)?;
        while belief.may_begin() {
            let decision = driver.step();
            let mut stopped = false;
            for effect in decision.effects {
                match effect {
                    // Work under the lock is given up as soon as the authority is seen to have ended.
                    Effect::Stop(_) => {
                        driver.handle_work_stopped();
                        stopped = true;
                    }
                    Effect::Start { .. } | Effect::Ended(_) => {}
                    request => driver.send(request),
                }
            }
            if !stopped {
                return decision.wake_at;
            }
        }
        None
    }

    /// Takes note of a change of authority, and logs it once. Returns the one before. `acts` says whether this elector
    /// does anything about it.
    pub(crate) fn follow(&mut self, acts: bool) -> Option<Authority> {
        let authority = self.now();
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
                info!("waiting until the last term of the built-in controller must have ended");
            }
            Authority::Unknown => {}
        }
        Some(std::mem::replace(&mut self.authority, authority))
    }

    /// When there is something to do next if nothing is seen before.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        self.lock.wake_at(now)
    }

    /// Lets go of the lock within that time, if it is ours; once everything that it protects has stopped.
    pub(crate) async fn release(mut self, within: Duration, failures: &mut FailureLog) {
        let Some(driver) = self.driver.as_mut().filter(|_| self.replaces) else {
            return;
        };
        let no_consequence = |_: LeasePath, _: &RequestError| String::new();
        let mut log = LockLog::new(LOCK, failures, self.clock.monotonic(), &no_consequence);
        if driver.release(within, &mut log).await == Some(Ending::Released) {
            info!("released the lock of the built-in controller");
        }
    }

    fn now(&self) -> Authority {
        let holds = self.driver.as_ref().is_some_and(LockDriver::believes);
        self.lock.authority(self.clock.monotonic(), holds)
    }

    fn observe_event(&mut self, event: &WatchEvent<Lease>) {
        match event {
            WatchEvent::Listed { items, .. } => match items.first() {
                Some(lock) => self.observe(lock, NewsSource::List),
                None => self.lock.handle_gone(self.clock.monotonic(), None),
            },
            WatchEvent::Applied(lock) => self.observe(lock, NewsSource::Watch),
            WatchEvent::Deleted(lock) => {
                let version = lock.snapshot().ok().map(|snapshot| snapshot.version);
                self.lock.handle_gone(self.clock.monotonic(), version);
            }
            _ => {}
        }
    }

    /// Takes in a revision of the lock. One that cannot be read is logged by its driver.
    fn observe(&mut self, lock: &Lease, source: NewsSource) {
        if let Ok(snapshot) = lock.snapshot() {
            let now = self.clock.monotonic();
            self.lock.handle_lock(now, snapshot, source);
        }
    }

    /// True if it is newer than what is known.
    fn is_news(&self, lock: &Lease) -> bool {
        lock.snapshot()
            .is_ok_and(|snapshot| self.lock.version() < Some(snapshot.version))
    }
}

/// The hold of the lock: taken at once from a built-in controller, which is then waited out, and from another elector
/// that misses its renewals.
fn holder_config(identity: Identity, config: &Config) -> HolderConfig {
    let usual = CandidateTiming::default();
    // A standby takes the lock only once it acts: until then the built-in controller must see this one as held.
    let standby = config.leader_election.as_ref();
    let standby = standby.map_or(Duration::ZERO, |election| election.lease_duration);
    HolderConfig {
        identity,
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
        life: None,
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::elector::NewsSource::Watch;
    use elector_protocol::holder::{Holder, LeaseEvent};
    use elector_protocol::{LeaseRecord, LeaseSnapshot, Moment, ResourceVersion, Timestamp, Uid};

    use super::*;
    use crate::leader_election::LeaderElection;

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

    /// The built-in controller takes it after 15 s, by the renewal that it saw up to 10 s before this elector did.
    #[test]
    fn the_lock_of_another_elector_is_taken_when_it_misses_a_renewal_and_of_the_controller_at_once()
    {
        let (controller, elector) = ("node-1_4f0c7f1e", "elector_a_1");
        for (holder, seconds, waited) in [
            (controller, Some(15), 0),
            (elector, Some(2), 2_000),
            (elector, Some(5), 5_000),
            (elector, Some(60), 5_000),
            (elector, None, 5_000),
        ] {
            let me = Identity::of_elector("pod", 1);
            let mut machine = Holder::new(Arc::new(holder_config(me, &Config::default())));
            let record = LeaseRecord {
                holder: Identity::new(holder),
                duration_seconds: seconds,
                renew_time: Some(Timestamp::MIN),
                ..LeaseRecord::default()
            };
            let snapshot = LeaseSnapshot {
                uid: Uid::new("lock"),
                version: ResourceVersion(7),
                record,
                overrides: elector_protocol::OperatorOverrides::default(),
            };
            let at = |millis: u64| Moment::same(Instant::from_epoch(Duration::from_millis(millis)));
            machine.handle_event(at(1_000), LeaseEvent::Seen(snapshot, Watch));
            let mut takes = |millis: u64| {
                let effects = machine.step(at(1_000 + millis), Timestamp::MIN).effects;
                matches!(effects[..], [Effect::Write { .. }])
            };
            assert!(waited == 0 || !takes(waited - 1), "{holder} {seconds:?}");
            assert!(takes(waited), "{holder} {seconds:?}");
        }
    }
}
