//! Kubernetes Events on Leases: what the elector that acts tells those who look at a Lease.
//!
//! ```text
//!   session ──> EventRecorder: is it new? is there room? ──> queue ──> EventPublisher ──> API server
//! ```
//!
//! Elections never wait for them: the queue is bounded, what does not fit is dropped, and the publisher is a future of its
//! own beside the session, which writes one Event at a time and none after this elector ceased to act.

mod text;

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

use crate::leadership_change::LeadershipChange;
use crate::namespace_budget::NamespaceBudget;
use crate::view::LimitHit;

/// Reports of leases to the publisher, each thing once.
pub(crate) struct EventRecorder {
    /// `None` where no Events are recorded.
    queue: Option<mpsc::Sender<RecordedEvent>>,
    budget: NamespaceBudget,
    /// The API of the candidates that Events name.
    candidates: CandidateApi,
    reported: BTreeMap<LeaseKey, ReportedObstacles>,
}

/// The obstacles to an election, as last reported.
#[derive(Debug, Default)]
struct ReportedObstacles {
    /// Why nothing is elected here.
    standstill: Option<&'static str>,
    held_back: Option<ReportedHoldBack>,
}

/// A preference that is held back.
#[derive(Debug, PartialEq, Eq)]
struct ReportedHoldBack {
    until: Instant,
    because: HoldBackCause,
    /// The candidate, where others may be preferred.
    candidate: Option<Identity>,
}

/// The most Events that wait for the publisher.
const QUEUE: usize = 1000;
/// The burst of Events of a namespace: a start of that number of leases. client-go allows 25 for one object.
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
            candidates: CandidateApi::default(),
            reported: BTreeMap::new(),
        }
    }

    /// The obstacles are reported anew: by a session that knows nothing yet, and by an elector that begins to act.
    pub(crate) fn begin(&mut self, candidates: CandidateApi) {
        self.candidates = candidates;
        self.reported.clear();
    }

    /// A lease changed hands.
    pub(crate) fn record_change(
        &mut self,
        now: Instant,
        change: &LeadershipChange,
        lease: Option<&LeaseSnapshot>,
        failures: &mut FailureLog,
    ) {
        self.send(now, text::of_change(change, lease), failures);
    }

    /// A decision was made. An obstacle to an election is reported once, until it ends.
    pub(crate) fn record_decision(
        &mut self,
        now: Instant,
        wall: Timestamp,
        key: &LeaseKey,
        lease: Option<&LeaseSnapshot>,
        decision: &Decision,
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
                let held_back = ReportedHoldBack::new(now.after(*remaining), &notice);
                let reported = self.reported.entry(key.clone()).or_default();
                if reported.held_back.as_ref() == Some(&held_back) {
                    return;
                }
                reported.held_back = Some(held_back);
                let event = RecordedEvent {
                    related: Some((self.candidates, better.clone())),
                    ..text::of_hold_back(key, lease, holder, &notice)
                };
                self.send(now, event, failures);
            }
            reason => match text::of_standstill(key, lease, reason) {
                Some(event) => self.record_standstill(now, event, failures),
                None => self.end_standstill(key),
            },
        }
    }

    /// A lease is left to the built-in controller, which is this one.
    pub(crate) fn record_builtin(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        lease: Option<&LeaseSnapshot>,
        controller: &Identity,
        failures: &mut FailureLog,
    ) {
        let event = text::of_builtin(key, lease, controller);
        self.record_standstill(now, event, failures);
    }

    /// There was more of something than one namespace or lease may have.
    pub(crate) fn record_limit(
        &mut self,
        now: Instant,
        hit: &LimitHit,
        lease: Option<&LeaseSnapshot>,
        failures: &mut FailureLog,
    ) {
        self.send(now, text::of_limit(hit, lease), failures);
    }

    /// No candidate names that lease any more.
    pub(crate) fn forget(&mut self, key: &LeaseKey) {
        self.reported.remove(key);
    }

    fn record_standstill(&mut self, now: Instant, event: RecordedEvent, failures: &mut FailureLog) {
        if self.queue.is_none() {
            return;
        }
        let reported = self.reported.entry(event.lease.clone()).or_default();
        if reported.standstill.replace(event.reason) != Some(event.reason) {
            self.send(now, event, failures);
        }
    }

    fn end_standstill(&mut self, key: &LeaseKey) {
        if let Some(reported) = self.reported.get_mut(key) {
            reported.standstill = None;
            if reported.held_back.is_none() {
                self.reported.remove(key);
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

// === impl ReportedHoldBack ===

impl ReportedHoldBack {
    fn new(until: Instant, notice: &HoldBackNotice) -> Self {
        let of_one = notice.because == HoldBackCause::NewSinceFailure;
        Self {
            until,
            because: notice.because,
            candidate: of_one.then(|| notice.candidate.clone()),
        }
    }
}
