//! Since when the present preference has been seen, and how often one was withdrawn or moved in this term (R16).
//!
//! Electors judge a preferred candidate by what their own watches showed them. An elector whose watch of candidates is
//! interrupted judges by old acks, and would take back at once what another elector prefers for good reason. So an
//! elector gives a preference that it did not know its time before it doubts it. Two electors can also disagree for good
//! reasons, while the time of an operator's word is over for one of them, or where they are of different builds. So that
//! time doubles, and from the second withdrawal on no candidate is preferred for as long either: an elector of another
//! build may withdraw at once what it would not prefer itself.

use std::time::Duration;

use crate::lease::LeaseSnapshot;
use crate::names::Identity;
use crate::renumber::{Renumber, Renumbering};
use crate::time::Instant;

/// An elector's memory of the preferences of the present term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SeenPreference {
    /// When the present preference was first seen; `None` where there is none, or it has had its time.
    since: Option<Instant>,
    /// The news of the preferred candidate since then.
    news: CandidateNews,
    /// The withdrawals of preferences of this term, by whichever elector.
    withdrawals: u8,
    /// The moves to another candidate.
    moves: u8,
    /// When the newest one was withdrawn; `None` where one stands, or one alone was withdrawn in this term.
    withdrawn: Option<Instant>,
}

/// An elector's news of the preferred candidate while the preference stood. A ping or an ack is no news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CandidateNews {
    /// Nothing that the order looks at, so that this elector may be blind to what another one saw.
    #[default]
    None,
    /// The order may judge it otherwise. Two electors may judge it differently still.
    Changed,
    /// It was deleted, or another one has its name. No two electors disagree on that for long.
    Gone,
}

/// More withdrawals or moves do not lengthen the wait: from a tenth of a second, they exceed a day.
const DOUBLINGS_MAX: u8 = 20;

/// The longest time between two pings of a preferred candidate that acks.
const PING_INTERVAL_MAX: Duration = Duration::from_secs(60);

// === impl SeenPreference ===

impl SeenPreference {
    /// Learns from the next record of the Lease.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        before: Option<&LeaseSnapshot>,
        after: &LeaseSnapshot,
    ) {
        let same_term = |before: &&LeaseSnapshot| {
            before.uid == after.uid
                && before.record.holder == after.record.holder
                && before.record.term == after.record.term
        };
        let Some(before) = before.filter(same_term) else {
            *self = Self::default();
            self.begin(now, after);
            return;
        };
        let (old, new) = (
            &before.record.preferred_holder,
            &after.record.preferred_holder,
        );
        if old == new {
            return;
        }
        let count = match (old, new) {
            (Some(_), None) => Some(&mut self.withdrawals),
            (Some(_), Some(_)) => Some(&mut self.moves),
            (None, _) => None,
        };
        if let Some(count) = count {
            *count = count.saturating_add(1).min(DOUBLINGS_MAX);
        }
        self.begin(now, after);
        // One withdrawal is no disagreement: the candidate may have died.
        if new.is_none() && self.withdrawals > 1 {
            self.withdrawn = Some(now);
        }
    }

    /// There is news of the candidate of this name.
    pub(super) fn note_news(
        &mut self,
        lease: Option<&LeaseSnapshot>,
        name: &Identity,
        news: CandidateNews,
    ) {
        let preferred = lease.and_then(|lease| lease.record.preferred_holder.as_ref());
        if preferred == Some(name) {
            self.news = self.news.max(news);
        }
    }

    /// The present preference has had its time.
    pub(super) fn end_wait(&mut self) {
        self.since = None;
    }

    /// Until when the present preference stands, although this elector sees no reason for it: `window` after it was
    /// first seen, doubled for each withdrawal in this term up to `longest`.
    pub(super) fn stands_until(&self, window: Duration, longest: Duration) -> Option<Instant> {
        self.doubled(self.withdrawals, window, longest)
    }

    /// The same, where the order speaks against the preferred candidate, or it is gone: `None` where that was seen while
    /// the preference stood. A change shortens the first withdrawal of a term alone.
    pub(super) fn stands_unseen_until(
        &self,
        window: Duration,
        longest: Duration,
    ) -> Option<Instant> {
        match self.news {
            CandidateNews::Gone => None,
            CandidateNews::Changed if self.withdrawals == 0 => None,
            CandidateNews::Changed | CandidateNews::None => self.stands_until(window, longest),
        }
    }

    /// The same, where the lease is frozen. The first preference of a term is withdrawn at once.
    pub(super) fn stands_frozen_until(
        &self,
        window: Duration,
        longest: Duration,
    ) -> Option<Instant> {
        self.stands_until(window, longest)
            .filter(|_| self.withdrawals > 0)
    }

    /// Until when the present preference does not move to a better candidate, doubled for each move in this term. The
    /// first move comes at once.
    pub(super) fn stays_until(&self, window: Duration, longest: Duration) -> Option<Instant> {
        self.doubled(self.moves, window, longest)
            .filter(|_| self.moves > 0)
    }

    /// Until when no candidate is preferred, which is for as long as the next preference would stand, and how many of this
    /// term were withdrawn.
    pub(super) fn withdrawn_until(
        &self,
        window: Duration,
        longest: Duration,
    ) -> Option<(Instant, u8)> {
        let until = self
            .withdrawn?
            .after(patience(self.withdrawals, window, longest));
        Some((until, self.withdrawals))
    }

    /// Takes this number of preferences of this term for withdrawn, so that none is written before `until`.
    pub(super) fn replay(
        &mut self,
        withdrawals: u8,
        until: Instant,
        window: Duration,
        longest: Duration,
    ) {
        self.withdrawals = withdrawals.min(DOUBLINGS_MAX);
        self.withdrawn = Some(until.before(patience(self.withdrawals, window, longest)));
    }

    /// When the preferred candidate is pinged, which acked last at `acked`: when its ack is no longer `fresh`, and where
    /// it acked before, after as long again as the preference had stood then.
    pub(super) fn ping_at(&self, acked: Instant, fresh: Duration) -> Instant {
        let stood = self.since.map_or(fresh, |since| acked.since(since));
        acked.after(stood.min(PING_INTERVAL_MAX).max(fresh))
    }

    fn doubled(&self, doublings: u8, window: Duration, longest: Duration) -> Option<Instant> {
        Some(self.since?.after(patience(doublings, window, longest)))
    }

    fn begin(&mut self, now: Instant, lease: &LeaseSnapshot) {
        self.since = lease.record.preferred_holder.is_some().then_some(now);
        (self.news, self.withdrawn) = (CandidateNews::None, None);
    }
}

/// For how long an elector leaves the present preference alone, or does without one.
fn patience(doublings: u8, window: Duration, longest: Duration) -> Duration {
    let factor = 1u32.checked_shl(doublings.into()).unwrap_or(u32::MAX);
    window.saturating_mul(factor).min(longest.max(window))
}

impl Renumber for SeenPreference {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        by.withdrawals(&mut self.withdrawals);
        by.withdrawals(&mut self.moves);
        if let Some(withdrawn) = &mut self.withdrawn {
            by.instant(withdrawn);
        }
        // A time for which nothing waits any more makes no difference.
        if !self
            .since
            .as_mut()
            .is_some_and(|since| by.preference(since))
        {
            (self.since, self.news) = (None, CandidateNews::None);
        }
    }
}
