//! One life of an elector: from empty memory until it is told to stop, or the store turns out to be another one, or
//! LeaseCandidates come from another API.
//!
//! ```text
//!   watches ──> View ──> queue ──> step ──> requests ──> reports ──> View
//!                          ^ deadlines of the step
//! ```
//!
//! Everything but the requests happens in [`Life::run`], one thing after the other: no lock, no channel, no task. A
//! key is with one worker at a time (the queue sees to that), and a worker is nothing but a stream of reports, so a
//! slow answer holds up its own lease only.

mod hear;
mod judge;
mod lock;
mod reports;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{CandidateTiming, Identity, Instant, LeaseKey};
use elector_runtime::{
    ApiDiscovery, Clock, Cluster, FailureLog, Scope as WatchScope, Watch, WatchEvent, WatchOptions,
    Writer, watch_candidates, watch_leases,
};
use elector_workqueue::{Backoff, RateLimiter, WorkQueue};
use futures::StreamExt;
use futures::stream::SelectAll;
use tracing::{error, info};

use crate::builtin::{self, Authority, BuiltinLock};
use crate::config::{BuiltinController, Config, Scope};
use crate::elector::Step;
use crate::event::{Event, Observer};
use crate::view::{Area, View};
use crate::work::Job;

/// The working memory, watches and requests of an elector.
pub(crate) struct Life<'a> {
    config: Config,
    clock: Arc<dyn Clock>,
    writer: Writer,
    step: Step,
    observer: Observer,
    leases: Watch<Lease>,
    candidates: Watch<LeaseCandidate>,
    api_discovery: &'a mut ApiDiscovery,
    /// The watch of the lock of the built-in controller, where that controller sees the candidates.
    lock_watch: Option<Watch<Lease>>,
    lock: lock::Lock,
    view: View,
    builtin: BuiltinLock,
    /// Who decides about leases of the built-in strategy, as last acted upon.
    authority: Authority,
    queue: WorkQueue<LeaseKey>,
    jobs: SelectAll<Job>,
    /// The keys that are with a worker, and whether a request for them has failed.
    at_work: BTreeMap<LeaseKey, bool>,
    failures: FailureLog,
    synced: bool,
    /// When old memories are dropped next.
    forget_at: Instant,
}

/// Why a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    ShutDown,
    /// The store was restored from a backup (R4).
    Rewound,
    /// LeaseCandidates are to be used from this API from now on.
    Moved(CandidateApi),
}

/// How often old memories are dropped.
const FORGET_EVERY: Duration = Duration::from_secs(600);

// === impl Life ===

impl<'a> Life<'a> {
    /// A life that knows nothing yet. Watches are opened by [`Self::run`].
    pub(crate) fn new(
        config: &Config,
        cluster: &Cluster,
        candidates: CandidateApi,
        api_discovery: &'a mut ApiDiscovery,
        (clock, seed): (Arc<dyn Clock>, u64),
        step: Step,
        observer: Observer,
    ) -> Self {
        let options = WatchOptions::elector(seed);
        let (scope, areas) = match &config.scope {
            Scope::AllNamespaces => (WatchScope::Cluster, vec![Area::Everywhere]),
            Scope::Namespaces(names) => (
                WatchScope::Namespaces(names.clone()),
                names.iter().cloned().map(Area::Namespace).collect(),
            ),
        };
        let shared = candidates != CandidateApi::Elector;
        let lock_scope =
            WatchScope::Object(LeaseKey::new(builtin::LOCK_NAMESPACE, builtin::LOCK_NAME));
        let longest = config.timing.max_lease_duration;
        let builtin = match &config.builtin {
            _ if !shared => BuiltinLock::unconcerned(longest),
            BuiltinController::Respect => BuiltinLock::respected(longest),
            BuiltinController::Replace { host } => {
                let me = builtin::lock_identity(host, seed);
                BuiltinLock::replaced(me, CandidateTiming::default(), longest)
            }
        };
        let limiter = RateLimiter::new(Backoff::new(config.retry_base, config.retry_max));
        Self {
            leases: watch_leases(cluster, &scope, &options),
            candidates: watch_candidates(cluster, candidates, &scope, &options),
            api_discovery,
            lock_watch: shared.then(|| watch_leases(cluster, &lock_scope, &options)),
            lock: lock::Lock::default(),
            view: View::new(areas),
            authority: builtin.authority(clock.monotonic()),
            builtin,
            queue: WorkQueue::new(limiter),
            jobs: SelectAll::new(),
            at_work: BTreeMap::new(),
            failures: FailureLog::default(),
            synced: false,
            forget_at: clock.monotonic().after(FORGET_EVERY),
            writer: Writer::new(cluster.clone(), candidates),
            config: config.clone(),
            clock,
            step,
            observer,
        }
    }

    /// Lives until `shutdown` is done, or the store or the API of the candidates is another one.
    pub(crate) async fn run(mut self, mut shutdown: Pin<&mut impl Future>) -> Ended {
        loop {
            let wake = self.settle();
            let timer = wake.map(|at| self.clock.sleep_until(at));
            let heard = tokio::select! {
                biased;
                _ = &mut shutdown => {
                    self.end().await;
                    return Ended::ShutDown;
                }
                Some((key, progress)) = self.jobs.next(), if !self.jobs.is_empty() => {
                    self.take(&key, progress)
                }
                written = self.lock.answer() => {
                    self.take_lock(written);
                    Ok(())
                }
                event = self.leases.next() => self.hear_leases(event),
                event = self.candidates.next() => self.hear_candidates(event),
                event = next(&mut self.lock_watch) => self.hear_lock(event),
                // Whatever is known of other candidates is of no use; that of Leases is soon seen again.
                api = self.api_discovery.next() => return Ended::Moved(api),
                () = wait(timer) => Ok(()),
            };
            if heard.is_err() {
                return Ended::Rewound;
            }
        }
    }

    /// Does everything that follows from what was heard, and says when there is more to do if nothing is heard.
    fn settle(&mut self) -> Option<Instant> {
        let now = self.clock.monotonic();
        while let Some(change) = self.view.next_change() {
            let name = |identity: &Option<Identity>| {
                identity
                    .as_ref()
                    .map_or_else(String::new, Identity::to_string)
            };
            info!(
                lease = %change.lease,
                holder = name(&change.holder),
                term = change.term.0,
                previous = name(&change.previous),
                reason = change.reason,
                "leadership changed"
            );
            (self.observer)(&Event::LeadershipChanged(change));
        }
        for (key, panic) in self.view.take_panics() {
            error!(lease = %key, panic, "failed to take in an object; the lease starts anew");
        }
        while let Some(key) = self.view.next_dirty() {
            self.queue.add(key, now.since_epoch());
        }
        if !self.synced && self.view.is_synced() {
            self.synced = true;
            let leases = self.view.keys().count();
            info!(leases, "leases and candidates are listed");
            (self.observer)(&Event::Listed { leases });
        }
        if now >= self.forget_at {
            self.forget_at = now.after(FORGET_EVERY);
            self.view.forget(now);
        }
        self.follow_authority();
        self.attend_lock();
        let due = self.dispatch();
        let now = self.clock.monotonic();
        let lock = self.builtin.wake_at(now);
        self.failures.tick(now);
        [due, lock, self.failures.wake_at(), Some(self.forget_at)]
            .into_iter()
            .flatten()
            .min()
    }

    /// One line about a failure, unless it was said a moment ago.
    fn complain(&mut self, subject: &str, text: &str) {
        self.failures.note(self.clock.monotonic(), subject, text);
    }

    /// What failed does not fail any more.
    fn settle_complaint(&mut self, subject: &str) {
        self.failures.end(self.clock.monotonic(), subject, None);
    }
}

impl fmt::Debug for Life<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

/// The next event of a watch; never, while there is none.
async fn next(watch: &mut Option<Watch<Lease>>) -> WatchEvent<Lease> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

async fn wait(timer: Option<futures::future::BoxFuture<'static, ()>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}
