//! From effects to requests, and from answers back to what the protocol reads.

use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::LeaseSnapshot;
use elector_protocol::holder::{Effect, LeaseOutcome, ReadFailed};
use elector_protocol::registration::{CandidateSnapshot, RegistrationEffect, RegistrationOutcome};
use elector_runtime::{RequestError, WriteOutcome, Writer};
use futures::future::BoxFuture;

use crate::config::Config;

/// What came back of a request for the Lease.
pub(crate) enum LeaseAnswer {
    Read(Result<Option<Lease>, RequestError>),
    Wrote(WriteOutcome<Lease>),
}

/// What came back of a request for the own LeaseCandidate.
pub(crate) enum CandidateAnswer {
    Read(Result<Option<LeaseCandidate>, RequestError>),
    Wrote(WriteOutcome<LeaseCandidate>),
    Deleted(WriteOutcome<()>),
}

/// The request for the Lease that an effect asks for, `None` for an effect that is none.
///
/// `judged` is the object that the effect was decided on.
pub(crate) fn lease_request(
    effect: Effect,
    judged: Option<&Lease>,
    config: &Config,
    writer: &Writer,
    timeout: Duration,
) -> Option<BoxFuture<'static, LeaseAnswer>> {
    let writer = writer.with_timeout(timeout);
    match effect {
        Effect::Read => {
            let key = config.lease.clone();
            Some(Box::pin(async move {
                LeaseAnswer::Read(writer.read_lease(&key).await)
            }))
        }
        Effect::Write { write, .. } => {
            let judged = judged.cloned();
            Some(Box::pin(async move {
                let is_judged = |lease: &Lease| {
                    lease
                        .snapshot()
                        .is_ok_and(|it| (&it.uid, it.version) == (&write.uid, write.version))
                };
                LeaseAnswer::Wrote(match judged.filter(is_judged) {
                    Some(lease) => writer.put_lease(&lease, &write.record).await,
                    // Never without the very object that was judged (R2): look again.
                    None => WriteOutcome::Conflict,
                })
            }))
        }
        Effect::Start { .. } | Effect::Stop(_) | Effect::Ended(_) => None,
    }
}

/// The request for the own LeaseCandidate that an effect asks for. `seen` is its newest revision.
pub(crate) fn candidate_request(
    effect: &RegistrationEffect,
    seen: Option<&LeaseCandidate>,
    config: &Config,
    writer: &Writer,
    timeout: Duration,
) -> BoxFuture<'static, CandidateAnswer> {
    let writer = writer.with_timeout(timeout);
    match effect {
        RegistrationEffect::Read => {
            let (key, name) = (config.lease.clone(), config.identity.clone());
            Box::pin(async move {
                CandidateAnswer::Read(writer.read_candidate(&key.namespace, &name).await)
            })
        }
        RegistrationEffect::Create { renew } => {
            let object = config.object(writer.candidate_api()).with_renewal(*renew);
            Box::pin(async move { CandidateAnswer::Wrote(writer.post_candidate(&object).await) })
        }
        RegistrationEffect::Replace { ping, renew, .. } => {
            let object = seen.map(|seen| {
                let mut object = config.offer(seen.clone()).with_renewal(*renew);
                object.spec.ping_time = *ping;
                object
            });
            Box::pin(async move {
                CandidateAnswer::Wrote(match object {
                    Some(object) => writer.put_candidate(&object).await,
                    None => WriteOutcome::Conflict,
                })
            })
        }
        RegistrationEffect::Delete { .. } => {
            let object = seen.cloned();
            Box::pin(async move {
                CandidateAnswer::Deleted(match object {
                    Some(object) => writer.delete_candidate(&object).await,
                    None => WriteOutcome::Gone,
                })
            })
        }
    }
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

/// What the protocol reads of an answer to a read of the Lease.
pub(crate) fn read_lease(
    answer: &Result<Option<Lease>, RequestError>,
) -> Result<Option<LeaseSnapshot>, ReadFailed> {
    match answer {
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

#[cfg(test)]
mod tests;
