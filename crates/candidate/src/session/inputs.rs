//! What comes in: watch events, responses and deadlines, and what the protocol reads of them.

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::holder::{LeaseOutcome, ReadFailed};
use elector_protocol::registration::{CandidateSnapshot, RegistrationOutcome};
use elector_protocol::{LeaseKey, LeaseSnapshot};
use elector_runtime::{
    Cluster, RequestError, Scope, Watch, WatchEvent, WatchOptions, WriteOutcome, watch_candidates,
    watch_leases,
};

use crate::config::Config;
use crate::session::requests::{CandidateResponse, LeaseResponse};
use crate::work::WorkEnd;

/// One thing that the loop of a session waits for.
pub(crate) enum CandidateInput<T, E> {
    LeaseResponse(LeaseResponse),
    CandidateResponse(CandidateResponse),
    LeaseEvent(WatchEvent<Lease>),
    CandidateEvent(WatchEvent<LeaseCandidate>),
    /// LeaseCandidates are to be registered in this API from now on.
    ApiMoved(CandidateApi),
    /// The request that removes the LeaseCandidate from where it was before has ended.
    Removed,
    WorkEnd(WorkEnd<T, E>),
    ShutDown,
    /// A deadline has come.
    Time,
}

/// Watches the Lease.
pub(crate) fn watch_lease(cluster: &Cluster, config: &Config, seed: u64) -> Watch<Lease> {
    let lease = Scope::Object(config.lease.clone());
    watch_leases(cluster, &lease, &WatchOptions::candidate(seed))
}

/// Watches the own LeaseCandidate in that API.
pub(crate) fn watch_candidate(
    cluster: &Cluster,
    api: CandidateApi,
    config: &Config,
    seed: u64,
) -> Watch<LeaseCandidate> {
    let own = LeaseKey::new(config.lease.namespace.clone(), config.identity.as_str());
    let options = WatchOptions::candidate(seed);
    watch_candidates(cluster, api, &Scope::Object(own), &options)
}

/// What the protocol reads of a Lease, or nothing where it cannot be read.
pub(crate) fn lease_snapshot(lease: &Lease) -> Option<LeaseSnapshot> {
    lease.snapshot().ok()
}

/// What the protocol reads of the own LeaseCandidate, or nothing where it cannot be read.
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

/// What the protocol reads of the response to a read of the Lease.
pub(crate) fn read_lease(
    response: &Result<Option<Lease>, RequestError>,
) -> Result<Option<LeaseSnapshot>, ReadFailed> {
    match response {
        Ok(None) => Ok(None),
        Ok(Some(lease)) => lease_snapshot(lease).map(Some).ok_or(ReadFailed),
        Err(_) => Err(ReadFailed),
    }
}

/// What the protocol reads of the outcome of a write of the Lease.
pub(crate) fn lease_outcome(outcome: &WriteOutcome<Lease>) -> LeaseOutcome {
    match outcome {
        // A reply that cannot be read proves nothing.
        WriteOutcome::Done(lease) => {
            lease_snapshot(lease).map_or(LeaseOutcome::Unknown, LeaseOutcome::Done)
        }
        WriteOutcome::Conflict | WriteOutcome::AlreadyExists => LeaseOutcome::Conflict,
        WriteOutcome::Gone => LeaseOutcome::Gone,
        WriteOutcome::Refused(_) => LeaseOutcome::Refused,
        WriteOutcome::Unknown(_) => LeaseOutcome::Unknown,
    }
}

/// What the protocol reads of the outcome of a write of the own LeaseCandidate.
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
