//! Kubernetes Events on the Lease: what a candidate tells of its own terms to those who look at it.
//!
//! ```text
//!   session ──> TermEventQueue: is there room? ──> queue ──> EventPublisher ──> API server
//! ```
//!
//! No term waits for them: the queue is bounded, what does not fit is dropped, and the publisher is a future of its own
//! beside the session, which writes one Event at a time.

mod text;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_api::CANDIDATE_REPORTING_CONTROLLER;
use elector_protocol::{Instant, ResourceVersion, Uid};
use elector_runtime::{
    Clock, Cluster, EventPublisher, FailureLog, LeaseEventRecorder, RecordedEvent,
};
use tokio::sync::mpsc;

use self::text::TermEventText;
use crate::event::{CandidateObserver, Event};
use crate::status::StatusReader;

/// The queue of Events on the terms of a run, to the publisher.
pub(crate) struct TermEventQueue {
    queue: mpsc::Sender<RecordedEvent>,
    reader: StatusReader,
    state: Mutex<TermEventState>,
}

/// The facts for the next Event, and the state of the budget.
#[derive(Default)]
struct TermEventState {
    /// The newest revision of the Lease that was known, for when it is gone.
    revision: Option<(Uid, ResourceVersion)>,
    /// When the budget is whole again.
    whole_at: Instant,
    failures: FailureLog,
}

/// The number of Events that a candidate may have at once, as client-go allows for one object: twelve terms.
const BURST: u32 = 25;
/// The time for which the end of a run waits for its last Events: the lease is given up by then.
const LAST_EVENTS: Duration = Duration::from_secs(1);
/// The time until another one may follow. A term that is handed over and over costs others no more.
const REFILL: Duration = Duration::from_secs(30);

// === impl TermEventQueue ===

impl TermEventQueue {
    /// A queue and its publisher.
    pub(crate) fn start(cluster: &Cluster, reader: StatusReader) -> (Self, EventPublisher) {
        // The whole budget fits.
        let (sender, queue) = mpsc::channel(BURST as usize);
        let instance = reader.belief.identity().as_str();
        let recorder =
            LeaseEventRecorder::new(cluster.clone(), CANDIDATE_REPORTING_CONTROLLER, instance);
        let publisher = EventPublisher::new(queue, recorder, Arc::clone(reader.belief.clock()));
        let queue = Self {
            queue: sender,
            reader,
            state: Mutex::default(),
        };
        (queue, publisher)
    }

    /// An observer that records the terms after it has told that one.
    pub(crate) fn observing(self, observer: CandidateObserver) -> CandidateObserver {
        Arc::new(move |lease, event| {
            observer(lease, event);
            self.record(event);
        })
    }

    fn record(&self, event: &Event) {
        // A poisoned lock holds a valid state: nothing in it depends on the rest.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (lease, identity) = (self.reader.belief.lease(), self.reader.belief.identity());
        let text = match event {
            Event::Leading { term, token, by } => {
                TermEventText::of_begin(identity, *term, *token, *by)
            }
            Event::Ended { term, end } => TermEventText::of_end(identity, *term, end),
            _ => return,
        };
        if let Some(known) = self.reader.known.borrow().revision() {
            state.revision = Some(known);
        }
        let (uid, version) = state.revision.clone().unzip();
        let event = RecordedEvent {
            lease: lease.clone(),
            uid,
            // One with a count would show the first term.
            version,
            severity: text.severity,
            reason: text.reason,
            action: text.action,
            note: text.note,
            related: None,
        };
        let now = self.reader.belief.now();
        state.failures.tick(now);
        if !state.take(now) || self.queue.try_send(event).is_err() {
            let text = format!("left out Events of the lease {lease}: too many");
            state.failures.note(now, "Events", &text);
        }
    }
}

/// Runs what fills the queue, and publishes beside it; then what is left, within a moment.
pub(crate) async fn publish_beside<R>(
    mut publisher: EventPublisher,
    clock: Arc<dyn Clock>,
    run: impl Future<Output = R>,
) -> R {
    let publishing = async {
        while let Some(event) = publisher.next().await {
            publisher.write(&event).await;
        }
    };
    let (mut run, mut publishing) = (pin!(run), pin!(publishing));
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

// === impl TermEventState ===

impl TermEventState {
    /// Takes one out of the budget, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let whole_at = self.whole_at.max(now).after(REFILL);
        let taken = whole_at.since(now) <= REFILL * BURST;
        if taken {
            self.whole_at = whole_at;
        }
        taken
    }
}
