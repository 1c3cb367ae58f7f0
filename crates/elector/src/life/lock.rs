//! The lock of the built-in controller: who decides, and the requests that take and keep it.

use std::time::Duration;

use elector_api::Lease;
use elector_protocol::elector::NewsSource;
use elector_protocol::{LeaseKey, ResourceVersion};
use elector_runtime::{Cause, WatchEvent, WriteOutcome};
use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::{debug, info, warn};

use crate::builtin::{Authority, LOCK_NAME, LOCK_NAMESPACE, LockWrite};
use crate::config::BuiltinController;
use crate::life::Life;
use crate::view::Restored;

/// The lock's object and the request for it that is under way.
#[derive(Default)]
pub(super) struct Lock {
    /// The newest revision of the lock, to be written over.
    object: Option<(ResourceVersion, Lease)>,
    request: Option<BoxFuture<'static, WriteOutcome<Lease>>>,
}

/// How long the release at the end may take; the whole end takes no more than two seconds.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(1500);

/// What follows from a lock that may not be read, and what helps: RBAC can grant its list and its watch by name, since
/// both ask for that one name.
const MISSING_ROLE: &str = "; no lease of the built-in strategy is elected until a Role in the namespace kube-system \
     grants list and watch of leases.coordination.k8s.io with the resourceName leader-election-controller, such as \
     manifests/components/builtin-lock/role.yaml";

/// What complaints about the lock are filed under.
const SUBJECT: &str = "the lock of the built-in controller";

// === impl Lock ===

impl Lock {
    /// The answer to the request that is under way; never, while there is none.
    pub(super) async fn answer(&mut self) -> WriteOutcome<Lease> {
        let Some(request) = &mut self.request else {
            return std::future::pending().await;
        };
        let answer = request.await;
        self.request = None;
        answer
    }
}

// === impl Life ===

impl Life<'_> {
    /// Hears of the lock by its watch.
    pub(super) fn hear_lock(&mut self, event: WatchEvent<Lease>) -> Result<(), Restored> {
        match event {
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => {
                self.settle_complaint(SUBJECT);
            }
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed { mut items, .. } => match items.pop() {
                Some(lock) => self.see_lock(lock, NewsSource::List),
                None => {
                    self.lock.object = None;
                    self.builtin.handle_gone(None);
                }
            },
            WatchEvent::Applied(lock) => self.see_lock(lock, NewsSource::Watch),
            WatchEvent::Deleted(lock) => {
                let version = lock.snapshot().ok().map(|snapshot| snapshot.version);
                self.builtin.handle_gone(version);
            }
            WatchEvent::Failed(error) => {
                let consequence = match (&self.authority, &error.cause) {
                    (Authority::Unknown, Cause::Forbidden(_)) => MISSING_ROLE,
                    (Authority::Unknown, _) => {
                        "; leases of the built-in strategy wait until it can be read"
                    }
                    _ => "",
                };
                self.complain(SUBJECT, &format!("failed to {error}{consequence}"));
            }
        }
        Ok(())
    }

    /// Takes the answer to a write of the lock.
    pub(super) fn take_lock(&mut self, outcome: WriteOutcome<Lease>) {
        let now = self.clock.monotonic();
        if let Some(error) = outcome.error() {
            let text = format!("failed to {error}");
            self.complain(SUBJECT, &text);
        }
        // Whoever wrote first, the watch brings it.
        let applied = matches!(outcome, WriteOutcome::Done(_) | WriteOutcome::AlreadyExists);
        if let WriteOutcome::Done(lock) = outcome {
            self.settle_complaint(SUBJECT);
            self.see_lock(lock, NewsSource::OwnWrite);
        }
        self.builtin.handle_outcome(now, applied);
    }

    /// Sends the write of the lock that is due.
    pub(super) fn attend_lock(&mut self) {
        let (now, wall) = (self.clock.monotonic(), self.clock.wall());
        if self.lock.request.is_some() {
            return;
        }
        let Some(act) = self.builtin.due_write(now, wall) else {
            return;
        };
        let writer = self.writer.clone();
        let request = match (act, self.lock.object.clone()) {
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
        self.lock.request = Some(request);
    }

    /// Acts upon a change of who decides: says so once, and has every lease judged again.
    pub(super) fn follow_authority(&mut self) {
        let now = self.clock.monotonic();
        let authority = self.builtin.authority(now);
        if authority == self.authority {
            return;
        }
        let replace = matches!(self.config.builtin, BuiltinController::Replace { .. });
        match &authority {
            Authority::Ours if replace => {
                info!("the built-in controller is replaced: deciding in its place");
            }
            Authority::Ours if self.authority == Authority::Unknown => {
                debug!("no built-in controller is electing");
            }
            Authority::Ours => info!("the built-in controller is gone: deciding in its place"),
            Authority::Builtin(holder) if replace => warn!(
                holder = %holder,
                "the built-in controller holds its lock: deciding nothing in its place until it is replaced"
            ),
            Authority::Builtin(holder) => info!(
                holder = %holder,
                "the built-in controller is electing: leases of its strategy are left to it"
            ),
            Authority::Standby if replace => {
                info!(
                    "taking the lock of the built-in controller: deciding in its place once it has stopped"
                );
            }
            Authority::Standby => {
                info!("waiting until the built-in controller has certainly stopped");
            }
            Authority::Unknown => {}
        }
        if std::mem::replace(&mut self.authority, authority) == Authority::Ours {
            // What is under way was decided while we were in authority.
            self.jobs.clear();
            for (key, _) in std::mem::take(&mut self.at_work) {
                self.queue.done(&key, now.since_epoch());
            }
        }
        for key in self.view.keys() {
            self.queue.add(key.clone(), now.since_epoch());
        }
    }

    /// The end: gives up what is under way, then lets go of the lock.
    pub(super) async fn end(mut self) {
        self.jobs.clear();
        self.lock.request = None;
        let (now, wall) = (self.clock.monotonic(), self.clock.wall());
        let (Some(write), Some((_, judged))) =
            (self.builtin.release(now, wall), self.lock.object.take())
        else {
            return;
        };
        let writer = self.writer.with_timeout(RELEASE_TIMEOUT);
        match writer.put_lease(&judged, &write.record).await {
            WriteOutcome::Done(_) => info!("released the lock of the built-in controller"),
            outcome => match outcome.error() {
                Some(error) => warn!("failed to {error}"),
                None => debug!(outcome = %outcome.kind(), "the lock was not released"),
            },
        }
    }

    fn see_lock(&mut self, lock: Lease, source: NewsSource) {
        let snapshot = match lock.snapshot() {
            Ok(snapshot) => snapshot,
            Err(fault) => {
                self.complain(SUBJECT, &format!("failed to read a Lease: {fault}"));
                return;
            }
        };
        let version = snapshot.version;
        self.builtin
            .handle_lock(self.clock.monotonic(), snapshot, source);
        if self.builtin.version() == Some(version) {
            self.lock.object = Some((version, lock));
        }
    }
}
