//! The publisher of Events: a future beside the work of a shell, and never in its way.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use elector_protocol::Instant;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::failure_log::FailureLog;
use crate::lease_events::{LeaseEventRecorder, RecordedEvent};

/// Writes the Events of a queue, one after the other.
pub struct EventPublisher {
    queue: mpsc::Receiver<RecordedEvent>,
    recorder: LeaseEventRecorder,
    clock: Arc<dyn Clock>,
    failures: FailureLog,
}

/// The subject of failures in the log.
const SUBJECT: &str = "Events";

// === impl EventPublisher ===

impl EventPublisher {
    /// A publisher of what comes through that queue.
    pub fn new(
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

    /// The next Event of the queue, `None` when nothing can come any more.
    pub async fn next(&mut self) -> Option<RecordedEvent> {
        loop {
            self.failures.tick(self.clock.monotonic());
            let wake = sleep(&*self.clock, self.failures.wake_at());
            tokio::select! {
                biased;
                event = self.queue.recv() => return event,
                () = wake => {}
            }
        }
    }

    /// Writes an Event. One that fails is not tried again.
    pub async fn write(&mut self, event: &RecordedEvent) {
        let written = self.recorder.record(event).await;
        let now = self.clock.monotonic();
        match written {
            Ok(()) => self.failures.end(now, SUBJECT, None),
            Err(error) => {
                let text = format!("failed to {error}");
                self.failures.note(now, SUBJECT, &text);
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
