//! The judge of worlds in which waits double: the history of a Lease forbids preferences (R16, R23), whatever an elector
//! remembers of it.

use std::time::Duration;

use elector_protocol::{ElectorTiming, Instant, LeaseRecord, Occupancy};

use super::numbers::{NOW, before};

/// The failures, withdrawals and pre-emptions that hold the next preference back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Restraint {
    /// When the present preference was written.
    preferred: Option<Instant>,
    /// The withdrawals of this term, up to two.
    withdrawals: u32,
    /// The time of the newest of two or more.
    withdrawn: Option<Instant>,
    /// True if the holder was asked to make room in this term.
    asked: bool,
    /// True if the holder before made room, and no grant has been accepted since.
    preempted: bool,
    /// The end of a grant after that, without an accept.
    failed: Option<Instant>,
    /// The number of these in a row, up to two.
    failures: u32,
    /// The last time that a holder made room.
    preemption: Option<Instant>,
    /// The wait after a first failure, the longest one, the ack window, and the time for which a pre-emption and a failure
    /// count: the same in every state.
    waits: [Duration; 5],
}

// === impl Restraint ===

impl Restraint {
    /// Nothing has happened yet, by these rules; a failure counts for `recent`.
    pub(super) fn new(rules: &ElectorTiming, recent: Duration) -> Self {
        let (first, longest) = (rules.passed_over, rules.passed_over_max);
        let window = rules.ack_window;
        Self {
            preferred: None,
            withdrawals: 0,
            withdrawn: None,
            asked: false,
            preempted: false,
            failed: None,
            failures: 0,
            preemption: None,
            waits: [first, longest, window, rules.preemption_window, recent],
        }
    }

    /// Learns from the next record of the Lease; false where a preference is withdrawn before its time. No candidate is
    /// deleted or changes here, so silence is the only reason.
    pub(super) fn follow(&mut self, old: &LeaseRecord, new: &LeaseRecord) -> bool {
        let mut stood = true;
        let led = |record: &LeaseRecord| record.holder.is_some() && !record.is_unaccepted_grant();
        if (&old.holder, old.term) != (&new.holder, new.term) {
            if old.is_unaccepted_grant() && self.preempted {
                (self.failed, self.preempted) = (Some(NOW), false);
                self.failures = 2.min(self.failures + 1);
            } else if led(old) && self.asked && new.occupancy() != Occupancy::Unproven {
                (self.preemption, self.preempted) = (Some(NOW), true);
            }
            (self.withdrawals, self.withdrawn, self.asked) = (0, None, false);
        } else if old.preferred_holder.is_some() && new.preferred_holder.is_none() {
            stood = !within(self.preferred, self.patience());
            self.withdrawals = 2.min(self.withdrawals + 1);
            self.withdrawn = (self.withdrawals > 1).then_some(NOW);
        }
        if old.preferred_holder != new.preferred_holder {
            self.preferred = new.preferred_holder.as_ref().map(|_| NOW);
        }
        if new.preferred_holder.is_some() {
            (self.asked, self.withdrawn) = (true, None);
        }
        self.preempted &= !led(new);
        stood
    }

    /// For how long a preference stands now, and none is written after a second withdrawal.
    fn patience(&self) -> Duration {
        let [_, longest, window, ..] = self.waits;
        (window * (1 << self.withdrawals)).min(longest.max(window))
    }

    /// True if no candidate may be preferred after a failure or a pre-emption.
    pub(super) fn holds_back(&self) -> bool {
        let [first, longest, _, window, recent] = self.waits;
        let failed = (first * self.failures).min(longest).min(recent);
        within(self.failed, failed) || within(self.preemption, window)
    }

    /// True if no candidate may be preferred after the second withdrawal of a term.
    pub(super) fn pauses(&self) -> bool {
        within(self.withdrawn, self.patience())
    }

    /// Lets time pass on the clock of the elector, and forgets what holds nothing back any more.
    pub(super) fn age(&mut self, by: Duration) {
        let age = |instant: &mut Option<Instant>, limit: Duration| {
            let age = instant.map(|instant| NOW.since(instant).saturating_add(by));
            *instant = age.filter(|age| *age < limit).map(|age| before(NOW, age));
        };
        let [_, longest, _, window, recent] = self.waits;
        age(&mut self.preferred, longest);
        age(&mut self.withdrawn, longest);
        age(&mut self.failed, recent);
        age(&mut self.preemption, window);
        if self.failed.is_none() {
            self.failures = 0;
        }
    }
}

/// True if that was less than `wait` ago.
fn within(since: Option<Instant>, wait: Duration) -> bool {
    since.is_some_and(|since| NOW < since.after(wait))
}
