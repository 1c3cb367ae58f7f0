//! Reports of a session on itself, for probes and scrapes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::elector::Reason;
use elector_protocol::{Identity, Instant, LeaseKey, Timestamp};
use elector_runtime::{LeaseResponse, RequestError, WatchEvent, WriteOutcomeKind, Writer};

use crate::health::Health;
use crate::lock_driver::LockInput;
use crate::metrics::{AckTimer, LeaseTracker, Metrics, Obstacle};
use crate::session::inputs::ElectorInput;
use crate::session::requests::{ElectionRequest, ElectionResponse};
use crate::view::{LimitHit, View};

/// The reports of a session; those that were asked for.
pub(crate) struct SessionMonitor {
    health: Option<Health>,
    meter: Option<SessionMeter>,
}

/// A session's share in the figures.
struct SessionMeter {
    metrics: Metrics,
    leases: LeaseTracker,
    acks: AckTimer,
    /// True once all is listed: before, a missing object may only not have been seen.
    begun: bool,
    /// The watches that have listed once, by resource and namespace.
    listed: BTreeSet<(&'static str, Option<Arc<str>>)>,
}

const LEASES: &str = "leases";
const CANDIDATES: &str = "leasecandidates";

// === impl SessionMonitor ===

impl SessionMonitor {
    /// Those of a session that begins: LeaseCandidates have been found, and nothing is listed yet. `longest` is the longest
    /// lease duration in use.
    pub(crate) fn new(
        health: Option<Health>,
        metrics: Option<&Metrics>,
        longest: Duration,
    ) -> Self {
        if let Some(health) = &health {
            let mut readiness = health.readiness();
            readiness.discovered = true;
            readiness.leases_synced = false;
            readiness.candidates_synced = false;
        }
        let meter = metrics.map(|metrics| SessionMeter {
            metrics: metrics.clone(),
            leases: LeaseTracker::new(metrics.clone(), longest),
            acks: AckTimer::new(metrics.clone()),
            begun: false,
            listed: BTreeSet::new(),
        });
        Self { health, meter }
    }

    /// The figures, where they are kept.
    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.meter.as_ref().map(|meter| &meter.metrics)
    }

    /// The same writer, whose writes are counted.
    pub(crate) fn count_writes(&self, writer: Writer) -> Writer {
        match &self.meter {
            Some(meter) => writer.with_counts(Arc::clone(meter.metrics.write_counts())),
            None => writer,
        }
    }

    /// All is listed.
    pub(crate) fn begin(&mut self, now: Instant, view: &View) {
        if let Some(meter) = &mut self.meter {
            meter.begun = true;
            meter.leases.begin(now, view);
        }
    }

    /// Something of a lease or of its candidates has changed.
    pub(crate) fn follow(&mut self, now: Instant, key: &LeaseKey, view: &View) {
        if let Some(meter) = self.meter.as_mut().filter(|meter| meter.begun) {
            meter.leases.follow(now, key, view);
        }
    }

    /// Groups of leases have changed.
    pub(crate) fn follow_groups(&mut self, view: &mut View) {
        while let Some(news) = view.next_group_news() {
            if let Some(meter) = &self.meter {
                meter.metrics.count_group(&news);
            }
        }
    }

    /// This elector acts from now on, or stands by.
    pub(crate) fn set_acting(&mut self, acts: bool) {
        if let Some(meter) = &mut self.meter {
            meter.metrics.set_acting(acts);
            if !acts {
                meter.leases.clear_obstacles();
            }
        }
    }

    /// A lease was decided about.
    pub(crate) fn note_decision(&mut self, now: Instant, key: &LeaseKey, reason: &Reason) {
        if let Some(meter) = &mut self.meter {
            meter.leases.set_obstacle(now, key, Obstacle::of(reason));
        }
    }

    /// There was more of something than one namespace or lease may have.
    pub(crate) fn note_limit(&mut self, hit: &LimitHit) {
        if let Some(meter) = &mut self.meter {
            meter.metrics.count_limit_hit(hit);
        }
    }

    /// These requests are sent.
    pub(crate) fn note_requests(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        requests: &[ElectionRequest],
        view: &View,
    ) {
        let (Some(meter), Some(Ok(election))) = (&mut self.meter, view.election(key)) else {
            return;
        };
        let pings = requests.iter().filter_map(|request| match request {
            ElectionRequest::Ping(judged, ping) => Some((&judged.name, *ping)),
            _ => None,
        });
        let mut pings: BTreeMap<&Identity, Timestamp> = pings.collect();
        for candidate in election.candidates() {
            if let Some(ping) = pings.remove(&candidate.name) {
                meter.acks.handle_ping(now, key, candidate, ping);
            }
        }
    }

    /// The loop has turned. Says when it is to turn again, if nothing happens before.
    pub(crate) fn turn(&mut self, now: Instant, view: &View) -> Option<Instant> {
        let turn = self.health.as_ref().map(|health| health.turn(now));
        let figures = self.meter.as_mut().and_then(|meter| {
            if let Some(health) = &self.health {
                meter.metrics.set_ready(health.is_ready());
            }
            meter.leases.advance(now, view)
        });
        [turn, figures].into_iter().flatten().min()
    }

    /// Something came in.
    pub(crate) fn note_input(&mut self, now: Instant, input: &ElectorInput) {
        if let Some(meter) = &mut self.meter {
            meter.note_input(now, input);
        }
        let Some(health) = &self.health else {
            return;
        };
        match input {
            ElectorInput::LeaseEvent(event) => {
                if let Some(synced) = synced_by(event) {
                    health.readiness().leases_synced = synced;
                }
            }
            ElectorInput::CandidateEvent(event) => {
                if let Some(synced) = synced_by(event) {
                    health.readiness().candidates_synced = synced;
                }
            }
            ElectorInput::ShutDown => health.readiness().ending = true,
            _ => {}
        }
        if let Some(error) = error_of(input) {
            health.note_failure(now, error);
        }
    }
}

// === impl SessionMeter ===

impl SessionMeter {
    fn note_input(&mut self, now: Instant, input: &ElectorInput) {
        match input {
            ElectorInput::LeaseEvent(event) => self.note_watch(LEASES, event),
            ElectorInput::CandidateEvent(event) => {
                self.note_watch(CANDIDATES, event);
                if let WatchEvent::Applied(candidate) = event {
                    self.acks.handle_candidate(now, candidate);
                }
            }
            ElectorInput::Response(it) => {
                if let ElectionResponse::Pinged(name, outcome) = &*it.response
                    && outcome.kind() != WriteOutcomeKind::Done
                {
                    self.acks.handle_failure(&it.batch.lease, name);
                }
            }
            ElectorInput::Time => self.acks.forget(now),
            _ => {}
        }
    }

    fn note_watch<T, L>(&mut self, resource: &'static str, event: &WatchEvent<T, L>) {
        match event {
            WatchEvent::Gap { namespace } if !self.listed.insert((resource, namespace.clone())) => {
                self.metrics.count_watch_restart(resource);
            }
            WatchEvent::Failed(_) => self.metrics.count_watch_failure(resource),
            _ => {}
        }
    }
}

/// True if all is listed after this event, where that may have changed.
fn synced_by<T, L>(event: &WatchEvent<T, L>) -> Option<bool> {
    match event {
        WatchEvent::Gap { .. } | WatchEvent::Rewound { .. } => Some(false),
        WatchEvent::Synced => Some(true),
        WatchEvent::Listed { .. }
        | WatchEvent::Applied(_)
        | WatchEvent::Deleted(_)
        | WatchEvent::Failed(_) => None,
    }
}

/// The request that failed, where one did.
fn error_of(input: &ElectorInput) -> Option<&RequestError> {
    match input {
        ElectorInput::LeaseEvent(WatchEvent::Failed(error))
        | ElectorInput::CandidateEvent(WatchEvent::Failed(error))
        | ElectorInput::BuiltinLock(LockInput::Event(WatchEvent::Failed(error)))
        | ElectorInput::ElectorLock(LockInput::Event(WatchEvent::Failed(error))) => Some(error),
        ElectorInput::BuiltinLock(LockInput::Response(response))
        | ElectorInput::ElectorLock(LockInput::Response(response)) => match response {
            LeaseResponse::Read(Err(error)) => Some(error),
            LeaseResponse::Wrote(outcome) => outcome.error(),
            LeaseResponse::Read(Ok(_)) | LeaseResponse::Late(..) => None,
        },
        ElectorInput::Response(it) => match &*it.response {
            ElectionResponse::Created(outcome) => outcome.error(),
            ElectionResponse::Wrote { outcome, .. } => outcome.error(),
            ElectionResponse::Pinged(_, outcome) => outcome.error(),
            ElectionResponse::Collected(_, outcome) => outcome.error(),
            ElectionResponse::Read(read) => read.response.as_ref().err(),
            ElectionResponse::Panicked(_) | ElectionResponse::GivenUp => None,
        },
        _ => None,
    }
}
