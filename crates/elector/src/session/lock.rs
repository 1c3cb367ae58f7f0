//! The shell of the built-in controller's lock: its machine, its watch, and the requests that take and keep it.

use std::time::Duration;

use elector_api::{CandidateApi, Lease};
use elector_protocol::elector::NewsSource;
use elector_protocol::{CandidateTiming, Instant, LeaseKey, ResourceVersion, Timestamp};
use elector_runtime::{
    Cause, Cluster, FailureLog, RequestSlot, Scope, Watch, WatchEvent, WatchOptions, WriteOutcome,
    Writer, watch_leases,
};
use futures::FutureExt;
use tracing::{debug, info, warn};

use crate::builtin::{Authority, BuiltinLock, LOCK_NAME, LOCK_NAMESPACE, LockWrite, lock_identity};
use crate::config::{BuiltinController, Config};
use crate::view::Restored;

/// The lock of the built-in controller: the authority that it gives, and the requests for it.
pub(crate) struct LockShell {
    machine: BuiltinLock,
    /// Its watch, where that controller sees the candidates.
    watch: Option<Watch<Lease>>,
    /// The newest revision of the lock, to be written over.
    object: Option<(ResourceVersion, Lease)>,
    request: RequestSlot<WriteOutcome<Lease>>,
    /// The authority over leases of the built-in strategy, as last acted upon.
    authority: Authority,
    /// Whether the built-in controller is to be replaced.
    replaces: bool,
}

/// What came in about the lock.
pub(crate) enum LockInput {
    Response(WriteOutcome<Lease>),
    Event(WatchEvent<Lease>),
}

/// How long the release at the end may take; the whole end takes no more than two seconds.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(1500);

/// What follows from a lock that may not be read, and what helps: RBAC can grant its list and its watch by name, since
/// both ask for that one name.
const MISSING_ROLE: &str = "; no lease of the built-in strategy is elected until a Role in the namespace kube-system \
     grants list and watch of leases.coordination.k8s.io with the resourceName leader-election-controller, such as \
     manifests/components/builtin-lock/role.yaml";

/// What failures of the lock are filed under.
const SUBJECT: &str = "the lock of the built-in controller";

// === impl LockShell ===

impl LockShell {
    /// The lock where LeaseCandidates are those of `candidates`. No built-in controller sees custom resources.
    pub(crate) fn new(
        config: &Config,
        cluster: &Cluster,
        candidates: CandidateApi,
        now: Instant,
        seed: u64,
    ) -> Self {
        let shared = candidates != CandidateApi::Elector;
        let longest = config.timing.max_lease_duration;
        let machine = match &config.builtin {
            _ if !shared => BuiltinLock::unconcerned(longest),
            BuiltinController::Respect => BuiltinLock::respected(longest),
            BuiltinController::Replace { host } => {
                let me = lock_identity(host, seed);
                BuiltinLock::replaced(me, CandidateTiming::default(), longest)
            }
        };
        let scope = Scope::Object(LeaseKey::new(LOCK_NAMESPACE, LOCK_NAME));
        let options = WatchOptions::elector(seed);
        Self {
            authority: machine.authority(now),
            machine,
            watch: shared.then(|| watch_leases(cluster, &scope, &options)),
            object: None,
            request: RequestSlot::default(),
            replaces: matches!(config.builtin, BuiltinController::Replace { .. }),
        }
    }

    /// The authority over leases of the built-in strategy, as last acted upon.
    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Waits for an event of the watch or for the response to the request that is under way; forever, while there is
    /// neither.
    pub(crate) async fn next(&mut self) -> LockInput {
        let Self { watch, request, .. } = self;
        tokio::select! {
            biased;
            response = request.response() => LockInput::Response(response),
            event = event(watch) => LockInput::Event(event),
        }
    }

    pub(crate) fn handle_event(
        &mut self,
        now: Instant,
        event: WatchEvent<Lease>,
        failures: &mut FailureLog,
    ) -> Result<(), Restored> {
        match event {
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => failures.end(now, SUBJECT, None),
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed { mut items, .. } => match items.pop() {
                Some(lock) => self.handle_seen(now, lock, NewsSource::List, failures),
                None => {
                    self.object = None;
                    self.machine.handle_gone(None);
                }
            },
            WatchEvent::Applied(lock) => self.handle_seen(now, lock, NewsSource::Watch, failures),
            WatchEvent::Deleted(lock) => {
                let version = lock.snapshot().ok().map(|snapshot| snapshot.version);
                self.machine.handle_gone(version);
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
                failures.note(now, SUBJECT, &text);
            }
        }
        Ok(())
    }

    /// Takes the response to a write of the lock.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        outcome: WriteOutcome<Lease>,
        failures: &mut FailureLog,
    ) {
        if let Some(error) = outcome.error() {
            failures.note(now, SUBJECT, &format!("failed to {error}"));
        }
        // Where another process wrote first, the watch brings what it wrote.
        let applied = matches!(outcome, WriteOutcome::Done(_) | WriteOutcome::AlreadyExists);
        if let WriteOutcome::Done(lock) = outcome {
            failures.end(now, SUBJECT, None);
            self.handle_seen(now, lock, NewsSource::OwnWrite, failures);
        }
        self.machine.handle_outcome(now, applied);
    }

    /// Sends the write of the lock that is due.
    pub(crate) fn send_due(&mut self, now: Instant, wall: Timestamp, writer: &Writer) {
        if self.request.is_taken() {
            return;
        }
        let Some(write) = self.machine.due_write(now, wall) else {
            return;
        };
        let writer = writer.clone();
        let request = match (write, self.object.clone()) {
            (LockWrite::Create(record), _) => async move {
                let key = LeaseKey::new(LOCK_NAMESPACE, LOCK_NAME);
                writer.post_lease(&key, record.strategy.as_ref()).await
            }
            .boxed(),
            (LockWrite::Replace(write), Some((version, judged))) if version == write.version => {
                async move { writer.put_lease(&judged, &write.record).await }.boxed()
            }
            // The machine knows no revision whose object was not kept.
            (LockWrite::Replace(_), _) => futures::future::ready(WriteOutcome::Gone).boxed(),
        };
        self.request.send(request);
    }

    /// Takes note of a change of authority, and logs it once. Returns the one before.
    pub(crate) fn follow_authority(&mut self, now: Instant) -> Option<Authority> {
        let authority = self.machine.authority(now);
        if authority == self.authority {
            return None;
        }
        match &authority {
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
    pub(crate) async fn release(mut self, now: Instant, wall: Timestamp, writer: &Writer) {
        self.request.clear();
        let (Some(write), Some((_, judged))) =
            (self.machine.release(now, wall), self.object.take())
        else {
            return;
        };
        let writer = writer.with_timeout(RELEASE_TIMEOUT);
        match writer.put_lease(&judged, &write.record).await {
            WriteOutcome::Done(_) => info!("released the lock of the built-in controller"),
            outcome => match outcome.error() {
                Some(error) => warn!("failed to {error}"),
                None => debug!(outcome = %outcome.kind(), "the lock was not released"),
            },
        }
    }

    fn handle_seen(
        &mut self,
        now: Instant,
        lock: Lease,
        source: NewsSource,
        failures: &mut FailureLog,
    ) {
        let snapshot = match lock.snapshot() {
            Ok(snapshot) => snapshot,
            Err(fault) => {
                let text = format!("failed to read a Lease: {fault}");
                return failures.note(now, SUBJECT, &text);
            }
        };
        let version = snapshot.version;
        self.machine.handle_lock(now, snapshot, source);
        if self.machine.version() == Some(version) {
            self.object = Some((version, lock));
        }
    }
}

async fn event(watch: &mut Option<Watch<Lease>>) -> WatchEvent<Lease> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}
