//! The inputs: watch events, responses and deadlines, and what the protocol reads of them.

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::registration::{CandidateSnapshot, RegistrationOutcome};
use elector_runtime::{LeaseResponse, WatchEvent, WriteOutcome};

use crate::finish::Finish;
use crate::session::requests::CandidateResponse;
use crate::session::sources::EventSource;

/// One thing that the loop of a session waits for.
pub(crate) enum CandidateInput {
    LeaseResponse(LeaseResponse),
    CandidateResponse(CandidateResponse),
    LeaseEvent(WatchEvent<Lease>),
    CandidateEvent(WatchEvent<LeaseCandidate>),
    /// LeaseCandidates are to be registered in this API from now on.
    ApiMoved(CandidateApi),
    /// The request that removes the LeaseCandidate from where it was before has ended.
    Removed,
    /// Something happened to the work, and perhaps the run has to end for it.
    WorkChange(Option<Finish>),
    ShutDown,
    /// The process is unwell, for this reason.
    Unwell(String),
    /// A deadline has come.
    Time,
}

// === impl CandidateInput ===

impl CandidateInput {
    /// True if it is the word of the API server on what the Lease says.
    pub(crate) const fn tells_of_lease(&self) -> bool {
        matches!(
            self,
            Self::LeaseResponse(
                LeaseResponse::Read(Ok(_)) | LeaseResponse::Wrote(WriteOutcome::Done(_))
            ) | Self::LeaseEvent(
                WatchEvent::Applied(_) | WatchEvent::Listed { .. } | WatchEvent::Deleted(_)
            )
        )
    }
}

/// The next event of a watch; none ever comes of a watch that has not begun.
pub(crate) async fn candidate_event(
    source: &mut Option<EventSource<LeaseCandidate>>,
) -> WatchEvent<LeaseCandidate> {
    match source {
        Some(source) => source.next().await,
        None => std::future::pending().await,
    }
}

/// The snapshot of the own LeaseCandidate for the protocol, or nothing where it cannot be read.
pub(crate) fn candidate_snapshot(object: &LeaseCandidate) -> Option<CandidateSnapshot> {
    let candidate = object.candidate().ok()?;
    Some(CandidateSnapshot {
        uid: candidate.uid,
        version: candidate.version,
        lease: object.spec.lease_name.as_str().into(),
        ping: candidate.ping,
        renew: candidate.renew,
    })
}

/// The outcome of a write of the own LeaseCandidate, as the protocol reads it.
pub(crate) fn candidate_outcome<T>(
    outcome: &WriteOutcome<T>,
    snapshot: impl FnOnce(&T) -> Option<CandidateSnapshot>,
) -> RegistrationOutcome {
    match outcome {
        WriteOutcome::Done(object) => RegistrationOutcome::Done(snapshot(object)),
        WriteOutcome::Conflict | WriteOutcome::AlreadyExists => RegistrationOutcome::Conflict,
        WriteOutcome::Gone => RegistrationOutcome::Gone,
        WriteOutcome::Refused(_) => RegistrationOutcome::Refused,
        WriteOutcome::Unknown(_) => RegistrationOutcome::Unknown,
    }
}
