//! The labels and the owner that the writes of a holder carry.

use std::borrow::Cow;
use std::sync::Arc;

use elector_api::{Lease, LeaseMetadata};
use elector_protocol::LeaseKey;
use elector_protocol::holder::{Effect, WriteKind};

use crate::write_outcome::WriteOutcomeKind;
use crate::writer::Writer;

/// The labels and the owner that a holder wants on its Lease, carried there by the writes that it makes anyway.
///
/// A server may refuse them, by its policies or those of others, and the term must not hang on that: the write after a
/// refused one goes without them. Where that one is applied, they are to blame; after two such refusals they are left out.
#[derive(Debug, Default)]
pub(super) struct CarriedMetadata {
    wanted: Arc<LeaseMetadata>,
    /// The way of the write that is under way with what its Lease lacks.
    under_way: Option<MetadataWrite>,
    /// True if the newest write that added it was refused.
    is_doubted: bool,
    /// The number of refusals that it was to blame for.
    refusals: u8,
}

/// A write of a Lease that lacks what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetadataWrite {
    Adds,
    LeavesOut,
}

/// More than one, since rights and policies may come later than a program.
const MOST_REFUSALS: u8 = 2;

// === impl CarriedMetadata ===

impl CarriedMetadata {
    pub(super) fn new(wanted: LeaseMetadata) -> Self {
        Self {
            wanted: Arc::new(wanted),
            ..Self::default()
        }
    }

    /// The writer for what an effect asks for. `judged` is the Lease that the effect was decided on.
    pub(super) fn carried_by<'w>(
        &mut self,
        effect: &Effect,
        judged: Option<&Lease>,
        writer: &'w Writer,
    ) -> Cow<'w, Writer> {
        let is_lacking = match effect {
            Effect::Create(_) => *self.wanted != LeaseMetadata::default(),
            Effect::Write { kind, .. } => match kind {
                // The term goes to others.
                WriteKind::Release | WriteKind::HandOff(_) => false,
                _ => judged.is_some_and(|lease| !self.wanted.is_on(lease)),
            },
            Effect::Read | Effect::Start { .. } | Effect::Stop(_) | Effect::Ended(_) => false,
        };
        self.under_way = is_lacking.then_some({
            if self.is_doubted || self.is_left_out() {
                MetadataWrite::LeavesOut
            } else {
                MetadataWrite::Adds
            }
        });
        match self.under_way {
            Some(MetadataWrite::Adds) => Cow::Owned(writer.with_metadata(Arc::clone(&self.wanted))),
            _ => Cow::Borrowed(writer),
        }
    }

    /// The write that was under way has ended like this.
    pub(super) fn note_outcome(&mut self, lease: &LeaseKey, outcome: WriteOutcomeKind) {
        match (self.under_way.take(), outcome) {
            (Some(MetadataWrite::Adds), WriteOutcomeKind::Refused) => self.is_doubted = true,
            // The server refuses more than that.
            (Some(MetadataWrite::LeavesOut), WriteOutcomeKind::Refused) => self.is_doubted = false,
            (Some(MetadataWrite::LeavesOut), WriteOutcomeKind::Done) if self.is_doubted => {
                self.is_doubted = false;
                self.refusals += 1;
                if self.is_left_out() {
                    tracing::warn!(%lease, "the server refuses the labels or the owner of the Lease: they are left out");
                }
            }
            _ => {}
        }
    }

    const fn is_left_out(&self) -> bool {
        self.refusals == MOST_REFUSALS
    }
}

#[cfg(test)]
mod tests {
    use elector_api::CandidateApi;
    use elector_protocol::LeaseRecord;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Reply, Script, failure};

    /// A Lease that was judged, and the metadata that a holder wants on it.
    struct MetadataTest {
        key: LeaseKey,
        stored: Value,
        carried: CarriedMetadata,
    }

    // === impl MetadataTest ===

    impl MetadataTest {
        fn new() -> Self {
            let stored = json!({
                "metadata": {"namespace": "ns", "name": "l", "uid": "u", "resourceVersion": "7"},
                "spec": {"holderIdentity": ""},
            });
            let labels = [("team".to_owned(), "web".to_owned())].into();
            let wanted = LeaseMetadata {
                labels,
                owner: None,
            };
            Self {
                key: LeaseKey::new("ns", "l"),
                stored,
                carried: CarriedMetadata::new(wanted),
            }
        }

        fn write(&self, kind: WriteKind) -> Effect {
            let known = Lease::from_value(self.stored.clone()).snapshot().unwrap();
            let write = known.replace(known.record.clone());
            Effect::Write { kind, write }
        }

        /// True if the write that this effect asks for carries the label. The server answers it like this.
        async fn sends(&mut self, effect: Effect, answer: Reply) -> bool {
            let script = Script::new([answer]);
            let writer = Writer::new(script.cluster(), CandidateApi::V1Beta1);
            let judged = Lease::from_value(self.stored.clone());
            let writer = self.carried.carried_by(&effect, Some(&judged), &writer);
            let outcome = match effect {
                Effect::Create(_) => writer.post_lease(&self.key, None).await,
                Effect::Write { write, .. } => writer.put_lease(&judged, &write.record).await,
                effect => panic!("{effect:?} is no write"),
            };
            self.carried.note_outcome(&self.key, outcome.kind());
            script.seen()[0].body["metadata"]["labels"]["team"] == "web"
        }

        async fn renews(&mut self, answer: Reply) -> bool {
            self.sends(self.write(WriteKind::Renew), answer).await
        }

        fn done(&self) -> Reply {
            Reply::Json(200, self.stored.clone())
        }
    }

    fn refused() -> Reply {
        failure(403, "Forbidden", "a policy denies it")
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_with_the_writes_for_a_term_of_its_own() {
        let other = elector_protocol::Identity::new("b").unwrap();
        let mut test = MetadataTest::new();
        for (kind, carries) in [
            (WriteKind::Accept, true),
            (WriteKind::Acquire, true),
            (WriteKind::Renew, true),
            (WriteKind::Release, false),
            (WriteKind::HandOff(other), false),
        ] {
            let text = kind.to_string();
            let (effect, done) = (test.write(kind), test.done());
            assert_eq!(test.sends(effect, done).await, carries, "{text}");
        }
        let (create, done) = (Effect::Create(LeaseRecord::born(None)), test.done());
        assert!(test.sends(create, done).await);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_left_out_after_two_refusals_that_it_is_to_blame_for() {
        let mut test = MetadataTest::new();
        for _ in 0..2 {
            assert!(test.renews(refused()).await);
            assert!(!test.renews(test.done()).await);
        }
        for _ in 0..3 {
            assert!(!test.renews(test.done()).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_to_blame_where_all_else_is_refused_too() {
        let mut test = MetadataTest::new();
        for _ in 0..3 {
            assert!(test.renews(refused()).await);
            assert!(!test.renews(refused()).await);
        }
        assert!(test.renews(test.done()).await);
        assert!(test.renews(test.done()).await);
    }
}
