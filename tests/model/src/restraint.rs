//! What the history of a Lease forbids an elector to ask for (R16, R23), whatever the elector remembers of it: the judge of
//! worlds in which waits double.

use std::time::Duration;

use elector_protocol::{ElectorTiming, Instant, LeaseRecord, Occupancy};

use super::numbers::{NOW, before};
use super::store::Property;

/// The failures, withdrawals and pre-emptions that hold the next preference back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Restraint {
    /// The withdrawals of this term, up to two.
    withdrawals: u8,
    /// When the newest of two or more was.
    withdrawn: Option<Instant>,
    /// True if the holder was asked to make room in this term.
    asked: bool,
    /// True if the holder before made room, and no grant has been accepted since.
    preempted: bool,
    /// When a grant after that ended without an accept.
    failed: Option<Instant>,
    /// The number of these in a row, up to two.
    failures: u8,
    /// When a holder made room last.
    preemption: Option<Instant>,
}

// === impl Restraint ===

impl Restraint {
    /// Learns from the next record of the Lease.
    pub(super) fn follow(&mut self, old: &LeaseRecord, new: &LeaseRecord) {
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
            self.withdrawals = 2.min(self.withdrawals + 1);
            self.withdrawn = (self.withdrawals > 1).then_some(NOW);
        }
        if new.preferred_holder.is_some() {
            self.withdrawn = None;
        }
        self.asked |= new.preferred_holder.is_some();
        self.preempted &= !led(new);
    }

    /// The rule that a preference breaks which is written now, by the constants of the rules.
    pub(super) fn forbids(&self, timing: &ElectorTiming) -> Option<Property> {
        let within = |since: Option<Instant>, wait: Duration| {
            since.is_some_and(|since| NOW < since.after(wait))
        };
        let doubled = |wait: Duration, doublings: u8| wait * (1 << doublings);
        let longest = timing.passed_over_max;
        let failed = doubled(timing.passed_over, self.failures.saturating_sub(1)).min(longest);
        let pause = doubled(timing.ack_window, self.withdrawals).min(longest);
        let window = timing.preemption_window;
        let held_back = within(self.failed, failed) || within(self.preemption, window);
        if held_back && !window.is_zero() {
            Some(Property::HeldBack)
        } else {
            within(self.withdrawn, pause).then_some(Property::Pauses)
        }
    }

    /// Lets time pass on the clock of the elector, and forgets what holds nothing back any more; a failure after `recent`.
    pub(super) fn age(&mut self, by: Duration, timing: &ElectorTiming, recent: Duration) {
        let age = |instant: &mut Option<Instant>, limit: Duration| {
            let age = instant.map(|instant| NOW.since(instant).saturating_add(by));
            *instant = age.filter(|age| *age < limit).map(|age| before(NOW, age));
        };
        age(&mut self.withdrawn, timing.passed_over_max);
        age(&mut self.failed, recent);
        age(&mut self.preemption, timing.preemption_window);
        if self.failed.is_none() {
            self.failures = 0;
        }
    }
}
