//! The variation of a process for a mutant: its stop-watch runs by other rules, or it believes what nothing proves.

use std::time::Duration;

use elector_protocol::elector::NewsSource;
use elector_protocol::holder::WriteKind;
use elector_protocol::{
    Identity, Instant, LeaseRecord, LeaseSnapshot, Moment, Renumber, Renumbering, ResourceVersion,
    Token,
};

use super::super::mutant::Mutant;
use super::super::numbers::{FRESH, MOMENT, NOW, timestamp};
use super::super::run::Run;
use super::super::store::LeaseStore;

/// The memory of a process for the sake of a mutant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ProcessVariation {
    /// It believes for H from here, whatever else it knows.
    counted_from: Option<Instant>,
    /// When it sent a POST that names it.
    posted: Option<Instant>,
}

/// Longer ago than any wait.
const LONG_AGO: Instant = Instant::from_epoch(Duration::ZERO);

// === impl Mutant ===

impl Mutant {
    /// When a process says that it saw a revision, what it says it saw, and how. `first`: it knew nothing before.
    pub(super) fn alter_sight(
        self,
        snapshot: &mut LeaseSnapshot,
        source: &mut NewsSource,
        first: bool,
        store: &LeaseStore,
    ) -> Moment {
        let record = &mut snapshot.record;
        let monotonic = match self {
            Self::ExpireByRenewTime(ahead) => {
                before(store.written.unwrap_or(NOW), Duration::from_secs(ahead))
            }
            Self::FallbackInstead => record
                .duration()
                .map_or(NOW, |duration| before(NOW, duration)),
            Self::RestartExpires if first => LONG_AGO,
            Self::TrustAnyRelease => {
                if record.holder.is_none() {
                    (record.token, record.token_term) = (None, None);
                }
                NOW
            }
            Self::SpanTheGap => {
                *source = NewsSource::Watch;
                NOW
            }
            Self::AddOverTheGap => {
                if first && record.holder.is_none() {
                    *source = NewsSource::Watch;
                }
                NOW
            }
            _ => NOW,
        };
        Moment {
            monotonic,
            ..MOMENT
        }
    }
}

// === impl ProcessVariation ===

impl ProcessVariation {
    /// True if a belief is there in spite of the holder.
    pub(super) fn believes(&self, run: &Run) -> bool {
        self.counted_from
            .is_some_and(|from| NOW < from.after(run.renew_deadline()))
    }

    /// The alteration of a POST before it is sent.
    pub(super) fn post(&mut self, born: LeaseRecord, by: Identity, run: &Run) -> LeaseRecord {
        if run.mutant != Some(Mutant::AcquireByPost) {
            return born;
        }
        self.posted = Some(NOW);
        born.acquired(
            by,
            run.lease_duration(),
            Token(ResourceVersion(0)),
            timestamp(FRESH),
        )
    }

    /// A reply says that a write landed; a POST has no kind.
    pub(super) fn take_reply(&mut self, kind: Option<&WriteKind>, run: &Run) {
        match (run.mutant, kind) {
            (Some(Mutant::AcquireByPost), None) => self.counted_from = self.posted,
            (Some(Mutant::CountFromReply), Some(WriteKind::Acquire)) => {
                self.counted_from = Some(NOW);
            }
            _ => {}
        }
    }

    /// A revision was seen that names this process, or another.
    pub(super) fn take_news(&mut self, mine: bool, run: &Run) {
        if !mine {
            self.counted_from = None;
        } else if run.mutant == Some(Mutant::LeadByEvent) {
            self.counted_from = Some(NOW);
        }
    }

    /// Forgets what makes no difference any more.
    pub(super) fn settle(&mut self, run: &Run) {
        if !self.believes(run) {
            self.counted_from = None;
        }
    }
}

impl Renumber for ProcessVariation {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.counted_from.renumber(by);
        self.posted.renumber(by);
    }
}

fn before(instant: Instant, by: Duration) -> Instant {
    Instant::from_epoch(instant.since_epoch().saturating_sub(by))
}
