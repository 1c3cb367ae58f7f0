//! The requests of a holder: effects become bounded requests for its Lease.

use std::time::Duration;

use elector_api::Lease;
use elector_protocol::holder::Effect;
use elector_protocol::{LeaseKey, ResourceVersion};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::kept_reads::read_until_answered;
use crate::request::RequestError;
use crate::write_outcome::WriteOutcome;
use crate::writer::Writer;

/// The response to a request of a holder for its Lease.
#[derive(Debug)]
pub enum LeaseResponse {
    /// To a GET, and the time that this one took.
    Read(Result<(Option<Lease>, Duration), RequestError>),
    /// To a write, or to none within its time.
    Wrote(WriteOutcome<Lease>),
    /// To a write that had none within its time: it was applied in place of that version.
    Late(ResourceVersion, Lease),
}

/// The request for the Lease that an effect asks for, `None` for an effect that is none.
///
/// `judged` is the object that the effect was decided on.
pub(super) fn lease_request(
    effect: Effect,
    key: &LeaseKey,
    judged: Option<&Lease>,
    writer: &Writer,
    patience: Duration,
    timeout: Duration,
) -> Option<BoxFuture<'static, LeaseResponse>> {
    let writer = writer.with_timeout(timeout);
    match effect {
        Effect::Read => {
            let key = key.clone();
            Some(Box::pin(async move {
                let read = |left| {
                    let (writer, key) = (writer.with_timeout(left), key.clone());
                    let sent = Instant::now();
                    async move { Ok((writer.read_lease(&key).await?, sent.elapsed())) }.boxed()
                };
                LeaseResponse::Read(read_until_answered(patience, timeout, read).await)
            }))
        }
        Effect::Create(record) => {
            let key = key.clone();
            Some(Box::pin(async move {
                LeaseResponse::Wrote(writer.post_lease(&key, record.strategy.as_ref()).await)
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
                LeaseResponse::Wrote(match judged.filter(is_judged) {
                    Some(lease) => writer.put_lease(&lease, &write.record).await,
                    // Never without the very object that was judged (R2): look again.
                    None => WriteOutcome::Conflict,
                })
            }))
        }
        Effect::Start { .. } | Effect::Stop(_) | Effect::Ended(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use elector_api::CandidateApi;
    use elector_protocol::ResourceVersion;
    use elector_protocol::holder::WriteKind;
    use serde_json::json;

    use super::*;
    use crate::testing::{Reply, Script};

    fn lease(uid: &str, version: &str) -> Lease {
        Lease::from_value(json!({
            "metadata": {"namespace": "ns", "name": "l", "uid": uid, "resourceVersion": version},
            "spec": {"holderIdentity": ""},
        }))
    }

    /// A write is made of the very object that was judged (R2): where the shell holds another revision, nothing is
    /// sent, and the holder looks again.
    #[tokio::test(start_paused = true)]
    async fn a_write_without_the_very_object_that_was_judged_is_a_conflict_and_not_sent() {
        let judged = lease("u", "7");
        let stored = serde_json::to_value(lease("u", "8")).unwrap();
        let script = Script::new([Reply::Json(200, stored)]);
        let writer = Writer::new(script.cluster(), CandidateApi::V1Beta1);
        let known = judged.snapshot().unwrap();
        let write = known.replace(known.record.clone());
        let (older, other) = (ResourceVersion(6), lease("other", "7"));
        for (held, version, sent) in [
            (Some(&judged), older, 0),
            (Some(&other), known.version, 0),
            (None, known.version, 0),
            (Some(&judged), known.version, 1),
        ] {
            let mut write = write.clone();
            write.version = version;
            let kind = WriteKind::Renew;
            let effect = Effect::Write { kind, write };
            let key = LeaseKey::new("ns", "l");
            let timeout = Duration::from_secs(1);
            let request = lease_request(effect, &key, held, &writer, timeout, timeout).unwrap();
            let LeaseResponse::Wrote(outcome) = request.await else {
                panic!("a write has the outcome of one");
            };
            assert_eq!(outcome == WriteOutcome::Conflict, sent == 0);
            assert_eq!(script.lines().len(), sent);
        }
    }
}
