//! Since when the present preference has been seen, and how often one was withdrawn in this term (R16).
//!
//! Electors judge a preferred candidate by what their own watches told them. An elector whose watch of candidates is
//! interrupted judges by old acks, and would take back at once what another elector prefers for good reason. So an
//! elector gives a preference that it did not know its time before it doubts it.

use std::time::Duration;

use crate::lease::LeaseSnapshot;
use crate::names::Identity;
use crate::renumber::{Renumber, Renumbering};
use crate::time::Instant;

/// What an elector remembers of the preferences of the present term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SeenPreference {
    /// When the present preference was first seen; `None` where there is none, or it has had its time.
    since: Option<Instant>,
    /// Whether news of the preferred candidate came after that, so that this elector is not blind to it.
    heard: bool,
    /// How many preferences of this term were withdrawn, by whichever elector.
    withdrawals: u8,
}

/// More withdrawals do not lengthen the wait: from a tenth of a second, so many doublings exceed a day.
const WITHDRAWALS_MAX: u8 = 20;

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
        if new.is_none() {
            self.withdrawals = self.withdrawals.saturating_add(1).min(WITHDRAWALS_MAX);
        }
        self.begin(now, after);
    }

    /// A revision or the deletion of the candidate of this name was seen.
    pub(super) fn hear(&mut self, lease: Option<&LeaseSnapshot>, name: &Identity) {
        let preferred = lease.and_then(|lease| lease.record.preferred_holder.as_ref());
        self.heard |= preferred == Some(name);
    }

    /// Takes the present preference for one that has had its time.
    pub(super) fn outgrow(&mut self) {
        self.since = None;
    }

    /// Whether news of the preferred candidate came since the preference was first seen.
    pub(super) fn is_heard(&self) -> bool {
        self.heard
    }

    /// Whether a preference of this term was withdrawn before.
    pub(super) fn is_repeated(&self) -> bool {
        self.withdrawals > 0
    }

    /// Until when the present preference stands, although this elector sees no reason for it: `window` after it was
    /// first seen, doubled for each withdrawal in this term up to `longest`.
    pub(super) fn stands_until(&self, window: Duration, longest: Duration) -> Option<Instant> {
        let factor = 1u32
            .checked_shl(self.withdrawals.into())
            .unwrap_or(u32::MAX);
        let patience = window.saturating_mul(factor).min(longest.max(window));
        Some(self.since?.after(patience))
    }

    fn begin(&mut self, now: Instant, lease: &LeaseSnapshot) {
        self.since = lease.record.preferred_holder.is_some().then_some(now);
        self.heard = false;
    }
}

impl Renumber for SeenPreference {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        by.withdrawals(&mut self.withdrawals);
        // What nothing waits for any more makes no difference.
        if !self
            .since
            .as_mut()
            .is_some_and(|since| by.preference(since))
        {
            (self.since, self.heard) = (None, false);
        }
    }
}
