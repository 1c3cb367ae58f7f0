//! The term of this process, in the one place where it is computed until when that may believe and its work may act.
//!
//! ```text
//!   machine ──> session ──> StatusPublisher ──> BeliefCell: TermState ──┬──> Leadership, LeaderGate, supervise
//!                                                                       ├──> CandidateHandle, LeaderOnlyLayer, metrics
//!                                                                       └──> LeaseStatus
//! ```

use std::time::Duration;

use elector_protocol::holder::{Belief, StopReason};
use elector_protocol::{Instant, Term, Token};

/// Until when the work of a term may act unless another renewal succeeds, on the holder's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkLimits {
    /// When the belief ends. Work that was not asked to stop before is asked then.
    pub(crate) deadline: Instant,
    /// Until when it may act if it is asked at the deadline:
    /// [`Config::stop_budget`](crate::Config::stop_budget) later.
    pub(crate) lease_limit: Instant,
}

/// A term of this process, as its session publishes it. All that ask who leads here read it, by the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TermState {
    /// The count of the terms of this candidate before it: a term and its token may come again.
    pub(crate) number: u64,
    pub(crate) term: Term,
    pub(crate) token: Token,
    /// Until when the work may act, by the last deadline of the belief.
    pub(crate) limits: WorkLimits,
    stage: TermStage,
    /// Why the work is to stop and when it is dropped, once it was asked to.
    pub(crate) stop: Option<(StopReason, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermStage {
    Believed,
    /// The belief is over, be it before its deadline.
    Lost,
    /// The same, and the work does not stop: it was left behind.
    WorkLeft,
    /// Nothing of the work runs any more.
    Over,
}

// === impl WorkLimits ===

impl WorkLimits {
    pub(crate) const fn of(deadline: Instant, budget: Duration) -> Self {
        Self {
            deadline,
            lease_limit: deadline.after(budget),
        }
    }

    /// When work is to be gone that is asked to stop at `told` and may take `grace` for it: no later than the lease
    /// allows. After a pause that may have passed already, and then it is dropped, or killed, at once.
    pub(crate) fn stop_by(&self, told: Instant, grace: Duration) -> Instant {
        told.after(grace).min(self.lease_limit)
    }
}

// === impl TermState ===

impl TermState {
    /// Notes what the machine believes now. `budget` is how long after the end of the belief the work may still act.
    pub(crate) fn note_belief(this: &mut Option<Self>, belief: Option<Belief>, budget: Duration) {
        match (this, belief) {
            (Some(term), None) => term.lose(),
            (Some(term), Some(belief)) if !term.is_over() => {
                if term.stage == TermStage::Believed {
                    term.limits = WorkLimits::of(belief.deadline, budget);
                }
            }
            (this, Some(belief)) => {
                *this = Some(Self {
                    number: this.as_ref().map_or(0, |before| before.number + 1),
                    term: belief.term,
                    token: belief.token,
                    limits: WorkLimits::of(belief.deadline, budget),
                    stage: TermStage::Believed,
                    stop: None,
                });
            }
            (None, None) => {}
        }
    }

    /// The belief is over, and does not come back.
    pub(crate) fn lose(&mut self) {
        if self.stage == TermStage::Believed {
            self.stage = TermStage::Lost;
        }
    }

    /// The belief is over now, whatever its deadline was. `budget` is as above.
    #[cfg(feature = "test-util")]
    pub(crate) fn lose_at(&mut self, now: Instant, budget: Duration) {
        self.limits = WorkLimits::of(self.limits.deadline.min(now), budget);
        self.lose();
    }

    /// Has the work stop until then. A later reason replaces an earlier one, a later limit does not.
    pub(crate) fn tell(&mut self, reason: StopReason, by: Instant) {
        let before = self.stop.as_ref().map_or(by, |(_, before)| *before);
        self.stop = Some((reason, by.min(before)));
    }

    /// Nothing of the work runs any more, unless it was left behind.
    pub(crate) fn end(&mut self) {
        if self.stage != TermStage::WorkLeft {
            self.stage = TermStage::Over;
        }
    }

    /// The work does not stop, and is left behind.
    pub(crate) const fn leave_work(&mut self) {
        self.stage = TermStage::WorkLeft;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == TermStage::Over
    }

    /// When the belief ends unless a renewal succeeds, `None` once it has ended. The clock may have ended it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.stage == TermStage::Believed).then_some(self.limits.deadline)
    }

    /// Until when the work may act unless a renewal succeeds, `None` once nothing of it runs.
    pub(crate) fn acts_until(&self) -> Option<Instant> {
        (!self.is_over()).then_some(self.limits.lease_limit)
    }

    /// The time that the work has to stop, if it was asked to, or if it were asked now.
    pub(crate) fn time_to_stop(&self, now: Instant, grace: Duration) -> Duration {
        let by = match &self.stop {
            _ if self.is_over() => now,
            Some((_, by)) => self.limits.lease_limit.min(*by),
            None => self.limits.stop_by(now, grace),
        };
        by.since(now)
    }
}
