//! What a run consists of: one session after the other, for as long as work that fails is to be tried again.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_protocol::{Instant, RetryBackoff};
use elector_runtime::{ApiDiscovery, Clock, Cluster};
use futures::FutureExt as _;
use futures::future::FusedFuture;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::runtime::Handle;

use crate::config::{AfterFailure, AfterTerm, Mode};
use crate::disabled::DisabledElection;
use crate::event::{CandidateObserver, Event};
use crate::leadership::Leadership;
use crate::outcome::{RunError, RunOutcome, TermEnd};
use crate::request_monitor::RequestMonitor;
use crate::resolved_config::ResolvedConfig;
use crate::session::CandidateSession;
use crate::status::StatusPublisher;

/// What all sessions of a run share.
pub(crate) struct Campaign {
    pub(crate) config: ResolvedConfig,
    pub(crate) cluster: Cluster,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: u64,
    pub(crate) observer: CandidateObserver,
    pub(crate) monitor: Option<Arc<dyn RequestMonitor>>,
    pub(crate) status: Arc<StatusPublisher>,
    /// Where the work runs: on the executor of the caller.
    pub(crate) work_runtime: Handle,
}

/// The pauses after work that failed.
struct RetryPause {
    backoff: RetryBackoff,
    jitter: StdRng,
}

/// How often a better API of LeaseCandidates is asked for, where there may be one. There may be thousands of candidates.
const API_DISCOVERY_PERIOD: Duration = Duration::from_secs(60);

/// The pause after work that failed for the first time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause. Work that went on for longer before it failed counts as failing for the first time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

// === impl Campaign ===

impl Campaign {
    /// Runs sessions until one ends otherwise than by work that is to be tried again.
    pub(crate) async fn run<F, T, E>(
        self,
        mut work: impl FnMut(Leadership) -> F,
        shutdown: impl Future,
    ) -> Result<RunOutcome<T, E>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let mut shutdown = pin!(shutdown.fuse());
        let mut pause = RetryPause::new(self.seed);
        loop {
            let mut began = self.clock.holder();
            let work = |leadership: Leadership| {
                began = self.clock.holder();
                work(leadership)
            };
            let outcome = self.run_session(work, shutdown.as_mut()).await?;
            let failure = failure_text(&outcome).filter(|_| !shutdown.is_terminated());
            let Some(error) = failure.filter(|_| self.retries_after(&outcome)) else {
                return Ok(outcome);
            };
            let retry_after = pause.next(began, self.clock.holder());
            let event = Event::WorkFailed { error, retry_after };
            event.log(&self.config);
            (self.observer)(&event);
            let over = self.clock.holder().after(retry_after);
            tokio::select! {
                biased;
                _ = &mut shutdown => return Ok(RunOutcome::ShutDown(None)),
                () = self.clock.sleep_until_holder(over) => {}
            }
        }
    }

    /// Runs one session, from the registration to its withdrawal.
    async fn run_session<F, T, E>(
        &self,
        work: impl FnMut(Leadership) -> F,
        mut shutdown: Pin<&mut impl Future>,
    ) -> Result<RunOutcome<T, E>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        if self.config.given.mode == Mode::Disabled {
            let disabled = DisabledElection {
                config: &self.config,
                clock: &self.clock,
                observer: &self.observer,
                status: &self.status,
                work_runtime: &self.work_runtime,
            };
            return Ok(disabled.run(work, shutdown).await);
        }
        let mut api_discovery =
            ApiDiscovery::new(self.cluster.clone(), API_DISCOVERY_PERIOD, self.seed);
        // Without an elector the Lease is of no use, so neither is it before LeaseCandidates are served.
        let served: Option<CandidateApi> = if self.config.given.mode == Mode::Elected {
            tokio::select! {
                biased;
                _ = &mut shutdown => return Ok(RunOutcome::ShutDown(None)),
                api = api_discovery.next() => Some(api),
            }
        } else {
            None
        };
        if let Some(api) = served {
            self.config.validate_in(api)?;
        }
        let session = CandidateSession::new(
            self.config.clone(),
            self.cluster.clone(),
            (api_discovery, served),
            (Arc::clone(&self.clock), self.seed),
            (Arc::clone(&self.observer), self.monitor.clone()),
            Arc::clone(&self.status),
            self.work_runtime.clone(),
        );
        let ended = session.run(work, shutdown).await;
        self.status.forget();
        ended
    }

    /// Whether work that ended a session so is to be tried again.
    fn retries_after<T, E>(&self, outcome: &RunOutcome<T, E>) -> bool {
        let (RunOutcome::WorkFailed { term, .. } | RunOutcome::WorkPanicked { term, .. }) = outcome
        else {
            return false;
        };
        let given = &self.config.given;
        match term {
            TermEnd::WorkStillRuns => false,
            TermEnd::Lost(_) | TermEnd::HandedOver { .. }
                if given.after_term == AfterTerm::Return =>
            {
                false
            }
            _ => given.after_failure == AfterFailure::Retry,
        }
    }
}

/// What there is to say of work that failed.
fn failure_text<T, E: fmt::Display>(outcome: &RunOutcome<T, E>) -> Option<String> {
    match outcome {
        // With its sources, where the error knows how to.
        RunOutcome::WorkFailed { error, .. } => Some(format!("{error:#}")),
        RunOutcome::WorkPanicked { message, .. } => Some(format!("panic: {message}")),
        _ => None,
    }
}

// === impl RetryPause ===

impl RetryPause {
    fn new(seed: u64) -> Self {
        Self {
            backoff: RetryBackoff::default(),
            jitter: StdRng::seed_from_u64(seed),
        }
    }

    /// How long to wait after work that began and failed then: from half of what the backoff says up to all of it, so that many that
    /// fail for one reason do not come back at once.
    fn next(&mut self, began: Instant, failed: Instant) -> Duration {
        if failed.since(began) > LONGEST_PAUSE {
            self.backoff.reset();
        }
        self.backoff.fail(failed, FIRST_PAUSE, LONGEST_PAUSE);
        let pause = self.backoff.pause(failed);
        let pause = pause.map_or(Duration::ZERO, |until| until.since(failed));
        pause.mul_f64(self.jitter.random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_anew_after_work_that_went_on() {
        let mut pause = RetryPause::new(7);
        let start = Instant::from_epoch(Duration::from_secs(1_000));
        let mut jittered = false;
        for longest in [1, 2, 4, 8, 16, 32, 60, 60] {
            let longest = Duration::from_secs(longest);
            let next = pause.next(start, start.after(LONGEST_PAUSE));
            assert!(
                (longest / 2..=longest).contains(&next),
                "{next:?} of {longest:?}"
            );
            jittered |= next < longest;
        }
        assert!(jittered);
        let later = start.after(LONGEST_PAUSE + Duration::from_secs(1));
        assert!(pause.next(start, later) <= FIRST_PAUSE);
    }
}
