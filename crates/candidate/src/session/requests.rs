//! The outputs: effects of the registration become bounded requests.

use std::time::Duration;

use elector_api::LeaseCandidate;
use elector_protocol::holder::{Effect, WriteKind};
use elector_protocol::registration::RegistrationEffect;
use elector_protocol::{Identity, Instant};
use elector_runtime::{RequestError, WriteOutcome, Writer, read_until_answered};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::resolved_config::ResolvedConfig;

/// The response to a request for the own LeaseCandidate.
pub(crate) enum CandidateResponse {
    Read(Result<Option<LeaseCandidate>, RequestError>),
    Wrote(WriteOutcome<LeaseCandidate>),
    Deleted(WriteOutcome<()>),
}

/// A write of the Lease that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseWriteUnderWay {
    /// Its purpose, in one word.
    pub(crate) purpose: &'static str,
    pub(crate) sent: Instant,
}

/// The request for the own LeaseCandidate that an effect asks for. `seen` is its newest revision.
pub(crate) fn candidate_request(
    effect: &RegistrationEffect,
    seen: Option<&LeaseCandidate>,
    config: &ResolvedConfig,
    writer: &Writer,
    patience: Duration,
) -> BoxFuture<'static, CandidateResponse> {
    let writer = writer.with_timeout(patience);
    match effect {
        RegistrationEffect::Read => {
            let (key, name) = (config.lease.clone(), config.identity.clone());
            let limit = config.timing.renew_deadline;
            Box::pin(async move {
                let read = |left| {
                    let (writer, key, name) =
                        (writer.with_timeout(left), key.clone(), name.clone());
                    async move { writer.read_candidate(&key.namespace, &name).await }.boxed()
                };
                CandidateResponse::Read(read_until_answered(patience, limit, read).await)
            })
        }
        RegistrationEffect::Create { renew } => {
            let object = config.object(writer.candidate_api()).with_renewal(*renew);
            Box::pin(async move { CandidateResponse::Wrote(writer.post_candidate(&object).await) })
        }
        RegistrationEffect::Replace { ping, renew, .. } => {
            let object = seen.map(|seen| {
                let mut object = config.offer(seen.clone()).with_renewal(*renew);
                object.spec.ping_time = *ping;
                object
            });
            Box::pin(async move {
                CandidateResponse::Wrote(match object {
                    Some(object) => writer.put_candidate(&object).await,
                    None => WriteOutcome::Conflict,
                })
            })
        }
        RegistrationEffect::Delete { .. } => {
            let object = seen.cloned();
            Box::pin(async move {
                CandidateResponse::Deleted(match object {
                    Some(object) => writer.delete_candidate(&object).await,
                    None => WriteOutcome::Gone,
                })
            })
        }
    }
}

// === impl LeaseWriteUnderWay ===

impl LeaseWriteUnderWay {
    /// The write that an effect asks for, if it asks for one.
    pub(crate) const fn of(effect: &Effect, sent: Instant) -> Option<Self> {
        let purpose = match effect {
            Effect::Create(_) => "create",
            Effect::Write { kind, .. } => match kind {
                WriteKind::Accept => "accept",
                WriteKind::Acquire => "acquire",
                WriteKind::Resume => "resume",
                WriteKind::Rejoin => "rejoin",
                WriteKind::Renew => "renew",
                WriteKind::Release => "release",
                WriteKind::HandOff(_) => "hand_off",
            },
            Effect::Read | Effect::Start { .. } | Effect::Stop(_) | Effect::Ended(_) => {
                return None;
            }
        };
        Some(Self { purpose, sent })
    }
}

/// Deletes a LeaseCandidate of this process from the API that it was registered in before, if it is still there: no
/// elector of the other API would.
pub(crate) fn removal_request(writer: Writer, object: LeaseCandidate) -> BoxFuture<'static, ()> {
    async move {
        let metadata = &object.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let Some(name) = metadata.name.as_deref().and_then(Identity::new) else {
            return;
        };
        // An elector may have pinged it in the meantime.
        let found = match writer.read_candidate(&namespace, &name).await {
            Ok(found) => found,
            Err(error) => return tracing::debug!("failed to {error}"),
        };
        let Some(newest) = found.filter(|found| found.metadata.uid == metadata.uid) else {
            return;
        };
        let outcome = writer.delete_candidate(&newest).await;
        if let Some(error) = outcome.error() {
            tracing::debug!("failed to {error}");
        }
    }
    .boxed()
}
