//! The publisher of Events about terms, beside the session and never in its way.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Instant;
use elector_runtime::{Clock, FailureLog, LeaseEventRecorder, RecordedEvent};
use tokio::sync::mpsc;

/// Writes the Events of a queue, one after the other.
pub(crate) struct TermEventPublisher {
    queue: mpsc::Receiver<RecordedEvent>,
    recorder: LeaseEventRecorder,
    clock: Arc<dyn Clock>,
    failures: FailureLog,
}

/// How long the end of a run waits for its last Events: the lease is given up by then.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// What failures are filed under.
const SUBJECT: &str = "Events";

// === impl TermEventPublisher ===

impl TermEventPublisher {
    pub(super) fn new(
        queue: mpsc::Receiver<RecordedEvent>,
        recorder: LeaseEventRecorder,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            queue,
            recorder,
            clock,
            failures: FailureLog::default(),
        }
    }

    /// Runs what fills the queue, and writes beside it; then what is left, within a moment.
    pub(crate) async fn beside<R>(self, run: impl Future<Output = R>) -> R {
        let clock = Arc::clone(&self.clock);
        let (mut run, mut publishing) = (pin!(run), pin!(self.run()));
        let ended = tokio::select! {
            biased;
            ended = &mut run => ended,
            () = &mut publishing => return run.await,
        };
        let until = clock.holder().after(LAST_EVENTS);
        tokio::select! {
            biased;
            () = publishing => {}
            () = clock.sleep_until_holder(until) => {}
        }
        ended
    }

    /// Writes whatever comes, until nothing can come any more. An Event that fails is not tried again.
    async fn run(mut self) {
        loop {
            let now = self.clock.holder();
            self.failures.tick(now);
            let (clock, wake) = (Arc::clone(&self.clock), self.failures.wake_at());
            let event = tokio::select! {
                biased;
                event = self.queue.recv() => event,
                () = sleep(&*clock, wake) => continue,
            };
            let Some(event) = event else {
                return;
            };
            let written = self.recorder.record(&event).await;
            let now = self.clock.holder();
            match written {
                Ok(()) => self.failures.end(now, SUBJECT, None),
                Err(error) => {
                    self.failures
                        .note(now, SUBJECT, &format!("failed to {error}"));
                }
            }
        }
    }
}

impl fmt::Debug for TermEventPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TermEventPublisher").finish_non_exhaustive()
    }
}

async fn sleep(clock: &dyn Clock, until: Option<Instant>) {
    match until {
        Some(until) => clock.sleep_until_holder(until).await,
        None => std::future::pending().await,
    }
}
