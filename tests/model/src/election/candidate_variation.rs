//! The variation of a candidate for a mutant: its news differ from the truth, or it believes by rules of its own.

use std::time::Duration;

use elector_protocol::holder::{Holder, WriteKind};
use elector_protocol::{Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, Renumber, Renumbering};

use super::super::clocks::TICK_SECONDS;
use super::super::mutant::Mutant;
use super::super::numbers::NOW;
use super::super::run::Run;

/// The memory of a candidate for the sake of a mutant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) struct CandidateVariation {
    /// It believes for H from here, whatever else it knows.
    pub(in super::super) counted_from: Option<Instant>,
    /// It leads until an event ends that.
    pub(in super::super) clings: bool,
    /// Its renewals carry the short duration from now on.
    pub(in super::super) short: bool,
    /// When it sent the first of these.
    shortened: Option<Instant>,
    /// When it sent its newest renewal with the long duration.
    sent: Option<Instant>,
    /// When it sent the renewal that landed, that it gave up, and whose reply may come yet.
    pub(in super::super) late_reply: Option<Instant>,
}

/// H of a holder that writes the short duration: one tick of a slow clock, as that is one of a fast one.
const SHORT_BELIEF: Duration = Duration::from_secs(2);

// === impl CandidateVariation ===

impl CandidateVariation {
    /// True if a belief is there in spite of the holder.
    pub(in super::super) fn believes(&self, run: &Run) -> bool {
        let lasts = |from: Instant| NOW < from.after(run.renew_deadline());
        self.clings || self.counted_from.is_some_and(lasts)
    }

    /// True if the belief of a holder stands.
    pub(in super::super) fn allows(&self, holder: &Holder, run: &Run) -> bool {
        let (Some(first), Some(belief)) = (self.shortened, holder.belief()) else {
            return true;
        };
        let proven = belief
            .deadline
            .since_epoch()
            .saturating_sub(run.renew_deadline());
        NOW < first.max(Instant::from_epoch(proven)).after(SHORT_BELIEF)
    }

    /// The alteration of a write before it is sent.
    pub(in super::super) fn send(&mut self, kind: &WriteKind, write: &mut LeaseWrite, run: &Run) {
        if *kind != WriteKind::Renew {
            return;
        }
        if run.mutant == Some(Mutant::ShortenAndClamp) && !self.short {
            self.sent = Some(NOW);
        }
        if self.short {
            write.record.duration_seconds = Some(TICK_SECONDS);
            if run.mutant != Some(Mutant::Shorten) {
                self.shortened = self.shortened.or(Some(NOW));
            }
        }
    }

    /// A renewal that landed is given up; its reply is on its way.
    pub(in super::super) fn give_up(&mut self, landed: &LeaseRecord) {
        if landed.duration_seconds != Some(TICK_SECONDS) {
            self.late_reply = self.sent;
        }
    }

    /// The alteration of a revision before it is taken in.
    pub(in super::super) fn alter_news(&self, mut seen: LeaseSnapshot, run: &Run) -> LeaseSnapshot {
        if run.mutant == Some(Mutant::TrustTheName) {
            (seen.record.token, seen.record.token_term) = (None, None);
        }
        seen
    }
}

impl Renumber for CandidateVariation {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.counted_from.renumber(by);
        self.shortened.renumber(by);
        self.sent.renumber(by);
        self.late_reply.renumber(by);
    }
}
