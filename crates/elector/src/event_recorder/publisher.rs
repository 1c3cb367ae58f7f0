//! The publisher of Events, beside the session and never in its way.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::Arc;

use elector_protocol::Instant;
use elector_runtime::{Clock, FailureLog, LeaseEventRecorder, RecordedEvent};
use tokio::sync::mpsc;

use crate::active_belief::ActiveBelief;

/// Writes the Events of a queue, one after the other.
pub(crate) struct EventPublisher {
    queue: mpsc::Receiver<RecordedEvent>,
    recorder: LeaseEventRecorder,
    clock: Arc<dyn Clock>,
    belief: ActiveBelief,
    failures: FailureLog,
}

/// What failures are filed under.
const SUBJECT: &str = "Events";

// === impl EventPublisher ===

impl EventPublisher {
    pub(super) fn new(
        queue: mpsc::Receiver<RecordedEvent>,
        recorder: LeaseEventRecorder,
        clock: Arc<dyn Clock>,
        belief: ActiveBelief,
    ) -> Self {
        Self {
            queue,
            recorder,
            clock,
            belief,
            failures: FailureLog::default(),
        }
    }

    /// Writes whatever comes. An Event that fails is not tried again, and one that comes to its turn when this elector
    /// does not act any more is dropped.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            let now = self.clock.monotonic();
            self.failures.tick(now);
            let (clock, wake) = (Arc::clone(&self.clock), self.failures.wake_at());
            let event = tokio::select! {
                biased;
                event = self.queue.recv() => event,
                () = sleep(&*clock, wake) => continue,
            };
            let Some(event) = event else {
                return pending().await;
            };
            if !self.belief.may_begin() {
                continue;
            }
            let written = self.belief.guard(self.recorder.record(&event)).await;
            let now = self.clock.monotonic();
            match written {
                Some(Ok(())) => self.failures.end(now, SUBJECT, None),
                Some(Err(error)) => {
                    self.failures
                        .note(now, SUBJECT, &format!("failed to {error}"));
                }
                None => {}
            }
        }
    }
}

impl fmt::Debug for EventPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventPublisher").finish_non_exhaustive()
    }
}

async fn sleep(clock: &dyn Clock, until: Option<Instant>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => pending().await,
    }
}
