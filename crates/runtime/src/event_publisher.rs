//! The publisher of Events: a future beside the work of a shell, and never in its way.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Instant;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::failure_log::FailureLog;
use crate::lease_events::{LeaseEventRecorder, RecordedEvent};
use crate::request::Cause;

/// Writes the Events of a queue, one after the other.
pub struct EventPublisher {
    queue: mpsc::Receiver<RecordedEvent>,
    recorder: LeaseEventRecorder,
    clock: Arc<dyn Clock>,
    failures: FailureLog,
}

/// The subject of failures in the log.
const SUBJECT: &str = "Events";
/// The pauses after which an Event is tried again that found no server: together the time that one takes to start anew.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

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

    /// Writes an Event. One that finds no server is tried again for some 15 s, and may stand twice where an answer was lost;
    /// one that is refused is given up.
    pub async fn write(&mut self, event: &RecordedEvent) {
        let mut pauses = PAUSES.into_iter();
        loop {
            let written = self.recorder.record(event).await;
            let now = self.clock.monotonic();
            let Err(error) = written else {
                return self.failures.end(now, SUBJECT, None);
            };
            self.failures
                .note(now, SUBJECT, &format!("failed to {error}"));
            let Some(pause) = pauses.next().filter(|_| found_no_server(&error.cause)) else {
                return;
            };
            self.clock.sleep_until(now.after(pause)).await;
        }
    }
}

impl fmt::Debug for EventPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventPublisher").finish_non_exhaustive()
    }
}

/// True if the server is away, or says that it is about to be.
fn found_no_server(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Unreachable(_)
            | Cause::Status {
                code: 429 | 503,
                ..
            }
    )
}

async fn sleep(clock: &dyn Clock, until: Option<Instant>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use elector_api::REPORTING_CONTROLLER;
    use elector_protocol::Timestamp;

    use super::*;
    use crate::clock::TokioClock;
    use crate::lease_events::tests::{created, event};
    use crate::testing::{Reply, Script, failure};

    #[tokio::test(start_paused = true)]
    async fn an_event_that_finds_no_server_is_tried_again_for_a_while_and_a_refused_one_is_not() {
        let answer = |code| failure(code, "Reason", "why");
        for (replies, times) in [
            (vec![created()], vec![0]),
            (
                vec![Reply::Break, answer(503), answer(429), created()],
                vec![0, 1, 3, 7],
            ),
            (vec![Reply::Break; 6], vec![0, 1, 3, 7, 15]),
            (vec![answer(403)], vec![0]),
            (vec![answer(500)], vec![0]),
        ] {
            let script = Script::new(replies);
            let recorder = LeaseEventRecorder::new(script.cluster(), REPORTING_CONTROLLER, "i");
            let clock = Arc::new(TokioClock::start(Timestamp::MIN));
            let mut publisher = EventPublisher::new(mpsc::channel(1).1, recorder, clock);
            publisher.write(&event()).await;
            let seen: Vec<_> = script
                .seen()
                .iter()
                .map(|request| request.at.as_secs())
                .collect();
            assert_eq!(seen, times);
        }
    }
}
