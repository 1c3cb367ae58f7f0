//! Kubernetes Events on Leases: what the elector that acts tells those who look at a Lease.
//!
//! ```text
//!   session ──> EventRecorder: is it new? is there room? ──> queue ──> EventPublisher ──> API server
//! ```
//!
//! Elections never wait for them: the queue is bounded, what does not fit is dropped, and the publisher is a future of its
//! own beside the session, which writes one Event at a time and none after this elector ceased to act.

mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, REPORTING_CONTROLLER};
use elector_protocol::elector::{Decision, HoldBackCause, HoldBackNotice, Reason};
use elector_protocol::{Identity, Instant, LeaseKey, LeaseSnapshot, Timestamp};
use elector_runtime::{
    Clock, Cluster, EventPublisher, FailureLog, LeaseEventRecorder, RecordedEvent,
};
use tokio::sync::mpsc;

use self::words::EventWords;
use crate::leadership_change::LeadershipChange;
use crate::namespace_budget::NamespaceBudget;
use crate::view::LimitHit;

/// Reports of leases to the publisher, each thing once.
pub(crate) struct EventRecorder {
    /// `None` where no Events are recorded.
    queue: Option<mpsc::Sender<RecordedEvent>>,
    budget: NamespaceBudget,
    told: BTreeMap<LeaseKey, ToldObstacles>,
}

/// The obstacles to an election, as last reported.
#[derive(Debug, Default)]
struct ToldObstacles {
    /// Why nothing is elected here.
    standstill: Option<&'static str>,
    held_back: Option<ToldHoldBack>,
}

/// A preference that is held back.
#[derive(Debug, PartialEq, Eq)]
struct ToldHoldBack {
    until: Instant,
    because: HoldBackCause,
    /// The candidate, where others may be preferred.
    candidate: Option<Identity>,
}

/// The most Events that wait for the publisher.
const QUEUE: usize = 1000;
/// The burst of Events of a namespace: a start of as many leases. client-go allows 25 for one object.
const BURST: u32 = 100;
/// The time until another one may follow.
const REFILL: Duration = Duration::from_secs(5);

// === impl EventRecorder ===

impl EventRecorder {
    /// Records none.
    pub(crate) fn off() -> Self {
        Self::new(None)
    }

    /// A recorder and its publisher, which names itself `instance`.
    pub(crate) fn start(
        cluster: &Cluster,
        instance: &Identity,
        clock: Arc<dyn Clock>,
    ) -> (Self, EventPublisher) {
        let (sender, queue) = mpsc::channel(QUEUE);
        let recorder =
            LeaseEventRecorder::new(cluster.clone(), REPORTING_CONTROLLER, instance.as_str());
        let publisher = EventPublisher::new(queue, recorder, clock);
        (Self::new(Some(sender)), publisher)
    }

    fn new(queue: Option<mpsc::Sender<RecordedEvent>>) -> Self {
        Self {
            queue,
            budget: NamespaceBudget::new(BURST, REFILL),
            told: BTreeMap::new(),
        }
    }

    /// The obstacles are reported anew: by a session that knows nothing yet, and by an elector that begins to act.
    pub(crate) fn begin(&mut self) {
        self.told.clear();
    }

    /// A lease changed hands.
    pub(crate) fn record_change(
        &mut self,
        now: Instant,
        change: &LeadershipChange,
        lease: Option<&LeaseSnapshot>,
        failures: &mut FailureLog,
    ) {
        let words = EventWords::of_change(change);
        let event = RecordedEvent {
            // One with a count would show the leader of the first.
            version: lease.map(|lease| lease.version),
            ..words.event(&change.lease, lease)
        };
        self.send(now, event, failures);
    }

    /// A decision was made. What stands in the way of an election is told once, until it ends.
    pub(crate) fn record_decision(
        &mut self,
        (now, wall): (Instant, Timestamp),
        (key, lease): (&LeaseKey, Option<&LeaseSnapshot>),
        decision: &Decision,
        candidates: CandidateApi,
        failures: &mut FailureLog,
    ) {
        if self.queue.is_none() {
            return;
        }
        match &decision.reason {
            // Candidates that do not answer are pinged now and then.
            Reason::AwaitAck(_) => {}
            Reason::HeldBack {
                holder,
                better,
                because,
                remaining,
            } => {
                self.end_standstill(key);
                let micros = i64::try_from(remaining.as_micros()).unwrap_or(i64::MAX);
                let until = Timestamp::from_micros(wall.as_micros().saturating_add(micros));
                let notice = HoldBackNotice {
                    candidate: better.clone(),
                    because: *because,
                    until: until.unwrap_or(Timestamp::MAX),
                    reported: wall,
                };
                let held_back = ToldHoldBack::new(now.after(*remaining), &notice);
                let told = self.told.entry(key.clone()).or_default();
                if told.held_back.as_ref() == Some(&held_back) {
                    return;
                }
                told.held_back = Some(held_back);
                let words = EventWords::of_hold_back(holder, &notice);
                let event = RecordedEvent {
                    // One with a count would show the end of the first.
                    version: lease.map(|lease| lease.version),
                    related: Some((candidates, notice.candidate)),
                    ..words.event(key, lease)
                };
                self.send(now, event, failures);
            }
            reason => match EventWords::of_standstill(reason) {
                Some(words) => self.record_standstill(now, (key, lease), words, failures),
                None => self.end_standstill(key),
            },
        }
    }

    /// A lease is left to the built-in controller, which is this one.
    pub(crate) fn record_builtin(
        &mut self,
        now: Instant,
        lease: (&LeaseKey, Option<&LeaseSnapshot>),
        controller: &Identity,
        failures: &mut FailureLog,
    ) {
        let words = EventWords::of_builtin(controller);
        self.record_standstill(now, lease, words, failures);
    }

    /// There was more of something than one namespace or lease may have.
    pub(crate) fn record_limit(
        &mut self,
        now: Instant,
        hit: &LimitHit,
        lease: Option<&LeaseSnapshot>,
        failures: &mut FailureLog,
    ) {
        let words = EventWords::of_limit(hit);
        self.send(now, words.event(hit.lease(), lease), failures);
    }

    /// No candidate names that lease any more.
    pub(crate) fn forget(&mut self, key: &LeaseKey) {
        self.told.remove(key);
    }

    fn record_standstill(
        &mut self,
        now: Instant,
        (key, lease): (&LeaseKey, Option<&LeaseSnapshot>),
        words: EventWords,
        failures: &mut FailureLog,
    ) {
        if self.queue.is_none() {
            return;
        }
        let told = self.told.entry(key.clone()).or_default();
        if told.standstill.replace(words.reason) != Some(words.reason) {
            self.send(now, words.event(key, lease), failures);
        }
    }

    fn end_standstill(&mut self, key: &LeaseKey) {
        if let Some(told) = self.told.get_mut(key) {
            told.standstill = None;
            if told.held_back.is_none() {
                self.told.remove(key);
            }
        }
    }

    fn send(&mut self, now: Instant, event: RecordedEvent, failures: &mut FailureLog) {
        let Some(queue) = &self.queue else {
            return;
        };
        let namespace = &event.lease.namespace;
        if !self.budget.take(now, namespace) {
            let subject = format!("Events in namespace {namespace}");
            let text = format!("left out Events of leases in namespace {namespace}: too many");
            failures.note(now, &subject, &text);
        } else if queue.try_send(event).is_err() {
            let text = format!("left out Events of leases: {QUEUE} wait to be written");
            failures.note(now, "Events that wait", &text);
        }
    }
}

// === impl ToldHoldBack ===

impl ToldHoldBack {
    fn new(until: Instant, notice: &HoldBackNotice) -> Self {
        let of_one = notice.because == HoldBackCause::NewSinceFailure;
        Self {
            until,
            because: notice.because,
            candidate: of_one.then(|| notice.candidate.clone()),
        }
    }
}
