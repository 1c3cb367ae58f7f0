//! The variation of a process for a mutant: its news differ from the truth, or it believes by rules of its own.

use std::time::Duration;

use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{Belief, Holder, WriteKind};
use elector_protocol::{
    Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, Moment, Renumber, Renumbering,
    ResourceVersion, Token, Uid,
};

use super::clocks::TICK_SECONDS;
use super::mutant::Mutant;
use super::numbers::{FRESH, LONG_AGO, MOMENT, NOW, before, timestamp};
use super::run::Run;
use super::store::{LeaseStore, identity};

/// The memory of a process for the sake of a mutant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ProcessVariation {
    /// It believes for H from here, whatever else it knows.
    pub(super) counted_from: Option<Instant>,
    /// The uid of the Lease that it takes for its own, older one.
    uid: Option<Uid>,
    /// True if its watch has reported a Lease deleted that is there.
    pub(super) hidden: bool,
    /// When it sent a POST that names it.
    posted: Option<Instant>,
    /// It leads until an event ends that.
    pub(super) clings: bool,
    /// Its renewals carry the short duration from now on.
    pub(super) short: bool,
    /// When it sent the first of these.
    shortened: Option<Instant>,
    /// When it sent its newest renewal; where one may shorten it, the newest with the long duration.
    sent: Option<Instant>,
    /// When it sent the renewal that landed, that it gave up, and whose reply may come yet.
    pub(super) late_reply: Option<Instant>,
}

/// H of a holder that writes the short duration: one tick of a slow clock, as that is one of a fast one.
const SHORT_BELIEF: Duration = Duration::from_secs(2);

// === impl Mutant ===

impl Mutant {
    /// When a process says that it saw a revision, what it says it saw, and by which source. `first`: it knew nothing
    /// before. Most of these are about the stop-watch of one that acquires; electors have a variation of their own.
    pub(super) fn alter_sight(
        self,
        snapshot: &mut LeaseSnapshot,
        source: &mut NewsSource,
        first: bool,
        store: &LeaseStore,
        run: &Run,
    ) -> Moment {
        let record = &mut snapshot.record;
        let unheld = record.holder.is_none();
        let mut at = run.now();
        match self {
            Self::TrustTheName => (record.token, record.token_term) = (None, None),
            _ if !run.acquires() => {}
            Self::ExpireByRenewTime(ahead) => {
                let age = NOW.since(store.written.unwrap_or(NOW));
                at.monotonic = before(at.monotonic, age + Duration::from_secs(ahead));
            }
            Self::FallbackInstead => {
                at.monotonic = before(at.monotonic, record.duration().unwrap_or_default());
            }
            Self::RestartExpires if first => at.monotonic = LONG_AGO,
            Self::TrustAnyRelease if unheld => (record.token, record.token_term) = (None, None),
            Self::SpanTheGap => *source = NewsSource::Watch,
            Self::AddOverTheGap if first && unheld => *source = NewsSource::Watch,
            _ => {}
        }
        at
    }
}

// === impl Run ===

impl Run {
    /// The present moment, by the clocks that a process reads.
    pub(super) fn now(&self) -> Moment {
        match self.mutant {
            Some(Mutant::BelieveByMonotonic) => Moment::same(MOMENT.monotonic),
            Some(Mutant::WatchByHolder) => Moment::same(MOMENT.holder),
            _ => MOMENT,
        }
    }
}

// === impl ProcessVariation ===

impl ProcessVariation {
    /// True if a belief is there in spite of the holder.
    pub(super) fn believes(&self, run: &Run) -> bool {
        let lasts = |from: Instant| NOW < from.after(run.renew_deadline());
        self.clings || self.counted_from.is_some_and(lasts)
    }

    /// True if the belief of a holder stands.
    pub(super) fn allows(&self, holder: &Holder, run: &Run) -> bool {
        let (Some(first), Some(belief)) = (self.shortened, holder.belief()) else {
            return true;
        };
        let proven = before(belief.deadline, run.renew_deadline());
        NOW < first.max(proven).after(SHORT_BELIEF)
    }

    /// The mutant that counts belief from the reply to a write of this kind; a POST has none.
    pub(super) fn occasion(replied: Option<&WriteKind>, run: &Run) -> Option<Mutant> {
        match replied {
            None => Some(Mutant::AcquireByPost),
            Some(WriteKind::Acquire | WriteKind::Resume) => Some(Mutant::CountFromReply),
            Some(WriteKind::Accept | WriteKind::Renew) if !run.acquires() => {
                Some(Mutant::CountFromReply)
            }
            Some(_) => None,
        }
    }

    /// Counts belief from now, if the mutant is there that does so on this occasion and the Lease is its own, as far as
    /// it knows.
    pub(super) fn count_belief(&mut self, mine: bool, occasion: Option<Mutant>, run: &Run) {
        if !mine {
            self.counted_from = None;
        } else if occasion.is_some() && occasion == run.mutant {
            self.counted_from = self.posted.or(Some(NOW));
        }
    }

    /// Counts a belief that was prolonged from the newest renewal.
    pub(super) fn prolong(&mut self, before: Option<Belief>, holder: &Holder, run: &Run) {
        let deadline = |belief: Belief| belief.deadline;
        let prolonged = before.map(deadline) < holder.belief().map(deadline);
        if prolonged && run.mutant == Some(Mutant::CountFromNewest) {
            self.counted_from = self.sent;
        }
    }

    /// The alteration of a POST before it is sent.
    pub(super) fn post(&mut self, born: LeaseRecord, by: &str, run: &Run) -> LeaseRecord {
        if run.mutant != Some(Mutant::AcquireByPost) {
            return born;
        }
        self.posted = Some(NOW);
        let token = Token(ResourceVersion(0));
        born.acquired(identity(by), run.lease_duration(), token, timestamp(FRESH))
    }

    /// Takes a record of this name and term for the one known.
    pub(super) fn mistake(&mut self, seen: &mut LeaseSnapshot, known: Option<&LeaseSnapshot>) {
        let term = |lease: &LeaseSnapshot| (lease.record.holder.clone(), lease.record.term);
        if let Some(known) = known.filter(|known| term(known) == term(seen)) {
            self.uid = Some(std::mem::replace(&mut seen.uid, known.uid.clone()));
            seen.record.renew_time = known.record.renew_time;
        }
    }

    /// The alteration of a write before it is sent.
    pub(super) fn send(&mut self, kind: &WriteKind, write: &mut LeaseWrite, run: &Run) {
        if let Some(uid) = self.uid.take() {
            write.uid = uid;
        }
        if run.mutant == Some(Mutant::ForgetOwnDuration) && write.record.holder.is_some() {
            write.record.duration_seconds = i32::try_from(run.timing.lease).ok();
        }
        if *kind != WriteKind::Renew {
            return;
        }
        let keeps = match run.mutant {
            Some(Mutant::ShortenAndClamp) => !self.short,
            mutant => mutant == Some(Mutant::CountFromNewest),
        };
        if keeps {
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
    pub(super) fn give_up(&mut self, landed: &LeaseRecord) {
        if landed.duration_seconds != Some(TICK_SECONDS) {
            self.late_reply = self.sent;
        }
    }

    /// The work has ended. No reply counts for an elected holder that has stopped.
    pub(super) fn end_work(&mut self, clings: bool, run: &Run) {
        self.clings = clings;
        if !run.acquires() {
            (self.counted_from, self.late_reply) = (None, None);
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
        self.shortened.renumber(by);
        self.sent.renumber(by);
        self.late_reply.renumber(by);
    }
}
