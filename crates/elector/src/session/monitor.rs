//! What a session reports of itself, for probes.

use elector_protocol::Instant;
use elector_runtime::{LeaseResponse, RequestError, WatchEvent};

use crate::elector_lock::ElectorLockInput;
use crate::health::Health;
use crate::session::inputs::ElectorInput;
use crate::session::lock::LockInput;
use crate::session::requests::{ElectionResponse, RequestProgress};

/// The reports of a session.
pub(crate) struct SessionMonitor {
    health: Option<Health>,
}

// === impl SessionMonitor ===

impl SessionMonitor {
    /// Those of a session that begins: LeaseCandidates have been found, and nothing is listed yet.
    pub(crate) fn new(health: Option<Health>) -> Self {
        if let Some(health) = &health {
            let mut readiness = health.readiness();
            readiness.discovered = true;
            readiness.leases_synced = false;
            readiness.candidates_synced = false;
        }
        Self { health }
    }

    /// The loop has turned. Says when it is to turn again, if nothing happens before.
    pub(crate) fn turn(&self, now: Instant) -> Option<Instant> {
        self.health.as_ref().map(|health| health.turn(now))
    }

    /// Something came in.
    pub(crate) fn note_input(&self, now: Instant, input: &ElectorInput) {
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

/// Whether all is listed after this event, where that may have changed.
fn synced_by<T>(event: &WatchEvent<T>) -> Option<bool> {
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
        | ElectorInput::Lock(LockInput::Event(WatchEvent::Failed(error)))
        | ElectorInput::ElectorLock(ElectorLockInput::Event(WatchEvent::Failed(error))) => {
            Some(error)
        }
        ElectorInput::Lock(LockInput::Response(response))
        | ElectorInput::ElectorLock(ElectorLockInput::Response(response)) => match response {
            LeaseResponse::Read(Err(error)) => Some(error),
            LeaseResponse::Wrote(outcome) => outcome.error(),
            LeaseResponse::Read(Ok(_)) => None,
        },
        ElectorInput::Response(_, RequestProgress::Response(response)) => match &**response {
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
