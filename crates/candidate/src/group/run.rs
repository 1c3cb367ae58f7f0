//! The run of a process in its group: a run loop for each part, beside the two watches and the probe that they share.
//!
//! ```text
//!   GroupRun ──┬── GroupWatches: two watches, the discovery ──> GroupFeeds ──┬──> RunLoop of part a: session after session
//!              ├── publish_health: the probe ────────────────────────────────┼──> RunLoop of part b
//!              └── the shutdown ─────────────────────────────────────────────┴──> …
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use elector_api::{GROUP_LABEL, LeaseCandidate};
use elector_protocol::LeaseKey;
use elector_runtime::{
    ApiDiscovery, Clock, Cluster, Scope, Watch, WatchEvent, WatchOptions, watch_candidates,
    watch_leases,
};
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};

use super::feeds::GroupFeeds;
use super::layouts::OtherLayouts;
use crate::config::Mode;
use crate::error::Error;
use crate::finish::{Finish, RunEnd};
use crate::health_monitor::HealthMonitor;
use crate::outcome::TermEnd;
use crate::process_health::{HealthAnswer, publish_health};
use crate::request_monitor::RequestMonitor;
use crate::run_loop::RunLoop;
use crate::session::failures::{ServerPath, SessionFailures};
use crate::session::sources::API_DISCOVERY_PERIOD;

/// The run of a process in its group.
pub(super) struct GroupRun {
    /// None where nothing is watched, because there is no election.
    pub(super) watches: Option<GroupWatches>,
    pub(super) health: HealthMonitor,
    /// Where the parts hear of its answers.
    pub(super) answers: watch::Sender<HealthAnswer>,
    /// One for each part.
    pub(super) loops: Vec<RunLoop>,
}

/// The watches that all parts share.
pub(super) struct GroupWatches {
    /// The group, whose namespace is watched.
    pub(super) group: LeaseKey,
    pub(super) mode: Mode,
    pub(super) cluster: Cluster,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seed: u64,
    pub(super) feeds: GroupFeeds,
    /// None where the parts are named.
    pub(super) layouts: Option<OtherLayouts>,
    pub(super) failures: SessionFailures,
}

// === impl GroupRun ===

impl GroupRun {
    /// Runs until each part has ended: after a shutdown, or after an error that concerns them all. Work that does not stop
    /// ends its part alone, and is reported at the end.
    pub(super) async fn run(
        self,
        shutdown: oneshot::Receiver<Infallible>,
    ) -> Result<RunEnd, Error> {
        let layouts = self.watches.as_ref().and_then(|it| it.layouts.as_ref());
        let obstacle = match layouts {
            Some(layouts) => layouts.obstacle(),
            None => watch::Sender::new(None).subscribe(),
        };
        let watches = async {
            match self.watches {
                Some(watches) => watches.run().await,
                None => std::future::pending().await,
            }
        };
        let shared =
            futures::future::join(watches, publish_health(self.health, obstacle, self.answers));
        let parts = run_parts(self.loops, shutdown);
        match select(std::pin::pin!(parts), std::pin::pin!(shared)).await {
            Either::Left((ended, _)) => ended,
            Either::Right(((never, _), _)) => match never {},
        }
    }
}

async fn run_parts(
    loops: Vec<RunLoop>,
    shutdown: oneshot::Receiver<Infallible>,
) -> Result<RunEnd, Error> {
    let (mut running, mut shutdowns) = (FuturesUnordered::new(), Vec::new());
    for part in loops {
        let (tell, told) = oneshot::channel();
        let lease = part.run.config.lease.clone();
        running.push(part.run(told).map(|ended| (lease, ended)));
        shutdowns.push(tell);
    }
    let mut shutdown = shutdown.fuse();
    let (mut failure, mut last) = (None, None);
    loop {
        tokio::select! {
            biased;
            ended = running.next() => match ended {
                Some((lease, Ok(end))) => {
                    if end.term == Some(TermEnd::WorkStillRuns) {
                        tracing::error!(%lease, "the work does not stop: this process stands for its part no more");
                        last = Some(TermEnd::WorkStillRuns);
                    }
                    note_failed_stop(&lease, &end.reason);
                }
                Some((_, Err(error))) => {
                    failure.get_or_insert(error);
                    shutdowns.clear();
                }
                None => break,
            },
            _ = &mut shutdown => shutdowns.clear(),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(RunEnd {
            reason: Finish::ShutDown,
            term: last,
        }),
    }
}

/// Logs that the work of a part failed while it was stopped: nothing tries it again, and the run of the group is none of
/// one part.
fn note_failed_stop(lease: &LeaseKey, reason: &Finish) {
    if let Finish::WorkFailed(error) | Finish::WorkPanicked(error) = reason {
        tracing::warn!(%lease, error, "the work failed while it was stopped");
    }
}

// === impl GroupWatches ===

impl GroupWatches {
    /// Has their failures counted there.
    pub(super) fn monitored_by(&mut self, monitor: Option<Arc<dyn RequestMonitor>>) {
        self.failures = SessionFailures::new(self.mode, monitor);
    }

    /// Watches, and passes on what it hears, until this is dropped.
    async fn run(mut self) -> Infallible {
        let namespace = Arc::clone(&self.group.namespace);
        let scope = Scope::of_namespaces([namespace]);
        let options = WatchOptions::candidate(self.seed);
        let mut leases: Watch<_> = watch_leases(&self.cluster, &scope, &options);
        let labelled = WatchOptions {
            labels: Some(format!("{GROUP_LABEL}={}", self.group.name)),
            ..options
        };
        let mut candidates: Option<Watch<LeaseCandidate>> = None;
        let mut api = ApiDiscovery::new(self.cluster.clone(), API_DISCOVERY_PERIOD, self.seed);
        let registers = self.mode.registers();
        loop {
            let now = self.clock.holder();
            let look_at = self.layouts.as_ref().and_then(|layouts| layouts.judge(now));
            let wake_at = self.failures.tick(now).into_iter().chain(look_at).min();
            tokio::select! {
                biased;
                event = leases.next() => {
                    self.note(ServerPath::LeaseWatch, &event);
                    if let Some(layouts) = &mut self.layouts {
                        layouts.note(self.clock.holder(), &event);
                    }
                    self.feeds.deliver_lease(event).await;
                }
                event = next_of(&mut candidates) => {
                    match &event {
                        WatchEvent::Failed(error) => api.suspect(error),
                        WatchEvent::Synced => api.trust(),
                        _ => {}
                    }
                    self.note(ServerPath::CandidateWatch, &event);
                    self.feeds.deliver_candidate(event).await;
                }
                served = api.next(), if registers => {
                    // Those of another API say nothing of these.
                    self.failures.forget(ServerPath::CandidateWatch);
                    self.feeds.use_api(served);
                    candidates = Some(watch_candidates(&self.cluster, served, &scope, &labelled));
                }
                () = sleep_until(&*self.clock, wake_at) => {}
            }
        }
    }

    /// Logs failures of the watches, once for all parts.
    fn note<T>(&mut self, path: ServerPath, event: &WatchEvent<T>) {
        let now = self.clock.holder();
        match event {
            WatchEvent::Failed(error) => self.failures.log_result(now, path, Some(error)),
            WatchEvent::Synced => self.failures.log_result(now, path, None),
            _ => {}
        }
    }
}

async fn next_of(watch: &mut Option<Watch<LeaseCandidate>>) -> WatchEvent<LeaseCandidate> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(clock: &dyn Clock, until: Option<elector_protocol::Instant>) {
    match until {
        Some(until) => clock.sleep_until_holder(until).await,
        None => std::future::pending().await,
    }
}
