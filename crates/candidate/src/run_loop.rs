//! The course of a run: one session after the other, with pauses after work that failed and while the process is
//! unwell.

use std::convert::Infallible;
#[cfg(feature = "events")]
use std::sync::Arc;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_protocol::{Instant, RetryBackoff};
#[cfg(feature = "events")]
use elector_runtime::EventPublisher;
use futures::FutureExt as _;
use futures::future::FusedFuture as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::oneshot;

use crate::boxed_work::{MakeWork, WorkOrders};
use crate::candidate_context::CandidateContext;
use crate::config::{Config, Mode};
use crate::disabled::run_disabled;
use crate::error::Error;
use crate::event::Event;
use crate::finish::{Finish, RunEnd, ShutdownSignal};
use crate::leadership::Leadership;
use crate::outcome::TermEnd;
use crate::process_health::ProcessHealth;
use crate::session::CandidateSession;
#[cfg(feature = "events")]
use crate::term_events::{TermEventQueue, publish_beside};

/// A run, from its first session to its last.
pub(crate) struct RunLoop {
    pub(crate) run: CandidateContext,
    /// The health of this process.
    pub(crate) health: ProcessHealth,
    /// Where the caller makes the work.
    pub(crate) orders: WorkOrders,
}

/// The pauses after work that failed, or a process that was unwell.
struct RetryPause {
    backoff: RetryBackoff,
    jitter: StdRng,
}

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause. What went on for longer before it failed counts as failing for the first time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

// === impl RunLoop ===

impl RunLoop {
    /// Runs sessions under the instance lock, if there is one, and writes Events beside them where these are wanted.
    #[cfg_attr(
        not(feature = "events"),
        expect(unused_mut, reason = "it is changed where Events are recorded")
    )]
    pub(crate) async fn run(
        mut self,
        mut shutdown: oneshot::Receiver<Infallible>,
    ) -> Result<RunEnd, Error> {
        let instance = tokio::select! {
            biased;
            _ = &mut shutdown => return Ok(RunEnd::shut_down()),
            instance = self.run.instance.begin_run() => instance,
        };
        #[cfg(feature = "events")]
        let publisher = self.record_events();
        #[cfg(feature = "events")]
        let clock = Arc::clone(&self.run.clock);
        let ended = self.run_sessions(shutdown);
        #[cfg(feature = "events")]
        let ended = async {
            match publisher {
                Some(publisher) => publish_beside(publisher, clock, ended).await,
                None => ended.await,
            }
        };
        let ended = ended.await;
        let still_runs = |end: &RunEnd| end.term == Some(TermEnd::WorkStillRuns);
        if let Some(instance) = instance.filter(|_| !ended.as_ref().is_ok_and(still_runs)) {
            instance.settle();
        }
        ended
    }

    /// Records the terms from now on, if they are to be recorded.
    #[cfg(feature = "events")]
    fn record_events(&mut self) -> Option<EventPublisher> {
        let given = &self.run.config.given;
        if !given.record_events || given.mode == Mode::Disabled {
            return None;
        }
        let (queue, publisher) = TermEventQueue::start(&self.run.cluster, self.run.status.reader());
        self.run.observer = queue.observing(Arc::clone(&self.run.observer));
        Some(publisher)
    }

    /// Runs sessions until one ends otherwise than by work that is to be tried again, or a process that was unwell.
    async fn run_sessions(self, shutdown: oneshot::Receiver<Infallible>) -> Result<RunEnd, Error> {
        let Self {
            run,
            mut health,
            orders,
        } = self;
        let mut shutdown = shutdown.fuse();
        let mut pause = RetryPause::new(run.seed);
        loop {
            tokio::select! {
                biased;
                _ = &mut shutdown => return Ok(RunEnd::shut_down()),
                () = recover(&run, &mut health) => {}
            }
            let (mut began, mut led) = (run.clock.holder(), false);
            let mut work = |leadership: Leadership| {
                (began, led) = (run.clock.holder(), true);
                orders.place(leadership)
            };
            let session = run_session(&run, &mut work, &mut health, &mut shutdown);
            let end = session.await?;
            if shutdown.is_terminated() || !goes_on_after(&run.config.given, &end, led) {
                return Ok(end);
            }
            let retry_after = pause.next(began, run.clock.holder());
            if matches!(end.reason, Finish::WorkEnded) {
                let lease = &run.config.lease;
                tracing::info!(%lease, ?retry_after, "the work returned: its part was given back");
            }
            if let Some(error) = failure_text(&end.reason) {
                run.emit(&Event::WorkFailed { error, retry_after });
            }
            let over = run.clock.holder().after(retry_after);
            tokio::select! {
                biased;
                _ = &mut shutdown => return Ok(RunEnd::shut_down()),
                () = run.clock.sleep_until_holder(over) => {}
            }
        }
    }
}

/// Waits until the process is well. Until then it is no candidate.
async fn recover(run: &CandidateContext, health: &mut ProcessHealth) {
    while !health.is_well() {
        match health.recovered().await {
            Ok(()) if run.status.is_unwell() => {
                run.status.note_health(None);
                run.emit(&Event::Well);
            }
            Ok(()) => {}
            Err(error) => {
                if run.status.is_unwell() {
                    run.status.note_health(Some(&error));
                } else {
                    run.note_unwell(&error);
                }
            }
        }
    }
}

/// Runs one session, from the registration to its withdrawal.
async fn run_session(
    run: &CandidateContext,
    work: &mut MakeWork<'_>,
    health: &mut ProcessHealth,
    shutdown: &mut ShutdownSignal,
) -> Result<RunEnd, Error> {
    if run.config.given.mode == Mode::Disabled {
        return Ok(run_disabled(run, work, health, shutdown).await);
    }
    let mut api_source = run.sources.api(&run.cluster, run.seed);
    // Without an elector the Lease is of no use, so neither is it before LeaseCandidates are served.
    let served: Option<CandidateApi> = if run.config.given.mode == Mode::Elected {
        tokio::select! {
            biased;
            _ = &mut *shutdown => return Ok(RunEnd::shut_down()),
            error = health.unwell() => {
                run.note_unwell(&error);
                return Ok(RunEnd::new(Some(Finish::Unwell(error)), None));
            }
            api = api_source.next() => Some(api),
        }
    } else {
        None
    };
    if let Some(api) = served {
        run.config.validate_in(api)?;
    }
    let session = CandidateSession::new(run, api_source, served);
    let ended = session.run(work, health, shutdown).await;
    run.status.forget();
    ended
}

/// True if another session follows one that ended so. `led` is true if it had a term.
fn goes_on_after(given: &Config, end: &RunEnd, led: bool) -> bool {
    let still_runs = end.term == Some(TermEnd::WorkStillRuns);
    match (&end.reason, &end.term) {
        _ if still_runs => false,
        (
            Finish::WorkFailed(_) | Finish::WorkPanicked(_),
            Some(TermEnd::Lost(_) | TermEnd::HandedOver { .. }),
        ) if given.one_term => false,
        (Finish::WorkFailed(_) | Finish::WorkPanicked(_), _) => given.retry_work,
        (Finish::Unwell(_), _) => !(led && given.one_term),
        // A part that is not done by work that returns: it is one of all that the process stands for.
        (Finish::WorkEnded, _) => given.membership.is_some(),
        _ => false,
    }
}

/// The error of work that failed, or its panic.
fn failure_text(reason: &Finish) -> Option<String> {
    match reason {
        Finish::WorkFailed(error) => Some(error.clone()),
        Finish::WorkPanicked(message) => Some(format!("panic: {message}")),
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

    /// The wait after work that began and failed then: from half of what the backoff says up to all of it, so that many
    /// that fail for one reason do not come back at once.
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
    use elector_protocol::holder::Loss;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_anew_after_work_that_went_on() {
        let mut pause = RetryPause::new(7);
        let start = Instant::from_epoch(Duration::from_secs(1_000));
        let mut jittered = false;
        for longest in [1, 2, 4, 8, 16, 32, 60, 60] {
            let longest = Duration::from_secs(longest);
            let next = pause.next(start, start.after(LONGEST_PAUSE));
            let holds = (longest / 2..=longest).contains(&next);
            assert!(holds, "{next:?} of {longest:?}");
            jittered |= next < longest;
        }
        assert!(jittered);
        let later = start.after(LONGEST_PAUSE + Duration::from_secs(1));
        assert!(pause.next(start, later) <= FIRST_PAUSE);
    }

    #[test]
    fn a_session_follows_one_whose_work_failed_or_whose_process_was_unwell_if_that_is_wanted() {
        let failed = || Finish::WorkFailed("disk full".into());
        let unwell = || Finish::Unwell("no route".to_owned());
        let lost = TermEnd::Lost(Loss::Deleted);
        let (released, still_runs) = (TermEnd::Released, TermEnd::WorkStillRuns);
        let cases = [
            (Finish::ShutDown, &released, false, false, false),
            (Finish::WorkEnded, &released, false, false, false),
            (Finish::TermEnded, &lost, false, false, false),
            (failed(), &released, false, true, true),
            (failed(), &lost, false, true, false),
            (unwell(), &released, true, true, false),
            // A second attempt would run beside the first.
            (failed(), &still_runs, false, false, false),
            (unwell(), &still_runs, false, false, false),
        ];
        for (case, (reason, term, usually, retried, once)) in cases.into_iter().enumerate() {
            let end = RunEnd::new(Some(reason), Some(term.clone()));
            let config = Config::new("web", "1.0.0");
            let retry = config.clone().retry_work(true);
            let retry_once = retry.clone().one_term(true);
            let found =
                [config, retry, retry_once].map(|config| goes_on_after(&config, &end, true));
            assert_eq!(found, [usually, retried, once], "{case}");
        }
    }
}
