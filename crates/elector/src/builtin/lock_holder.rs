//! Our own hold on the lock of the built-in controller: what was written, until when it counts, when it is due again.

use std::time::Duration;

use elector_protocol::{CandidateTiming, Identity, Instant, LeaseRecord, Timestamp};

/// An elector as the holder of the lock.
#[derive(Clone, Debug)]
pub(super) struct LockHolder {
    pub(super) me: Identity,
    pub(super) timing: CandidateTiming,
    /// Writes that were sent and not seen yet, told by their renewTime, each with the time of its send.
    pub(super) sent: Vec<(Timestamp, Instant)>,
    pub(super) in_flight: bool,
    pub(super) failures: u32,
    pub(super) retry_at: Instant,
    /// When the newest write was sent that is known to be applied, while the lock is ours (R8).
    pub(super) applied: Option<Instant>,
}

// === impl LockHolder ===

impl LockHolder {
    pub(super) fn new(me: Identity, timing: CandidateTiming) -> Self {
        Self {
            me,
            timing,
            sent: Vec::new(),
            in_flight: false,
            failures: 0,
            retry_at: Instant::default(),
            applied: None,
        }
    }

    /// Learns from a revision which write was applied, or that the lock was lost.
    pub(super) fn note(&mut self, record: &LeaseRecord) {
        if record.holder.as_ref() != Some(&self.me) {
            self.applied = None;
            return;
        }
        let seen = |(written, _): &(Timestamp, Instant)| record.renew_time == Some(*written);
        if let Some(index) = self.sent.iter().position(seen) {
            self.applied = Some(self.sent[index].1);
            self.sent.drain(..=index);
        }
    }

    /// Whether the lock is ours at `now`.
    pub(super) fn holds(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        Some(self.applied?.after(self.timing.renew_deadline))
    }

    /// How long the record of another elector may stay as it is before the lock is taken over from it: longer than a
    /// renewal takes to come, and much shorter than its duration. The built-in controller has been waiting for that
    /// since the renewal; an elector that starts after a crash has seen the record later, and would always come second.
    pub(super) fn missed(&self, record: &LeaseRecord) -> Duration {
        let missed = self.timing.renew_deadline / 2;
        record
            .duration()
            .map_or(missed, |duration| duration.min(missed))
    }

    pub(super) fn renew_at(&self) -> Option<Instant> {
        Some(self.applied?.after(self.timing.renew_interval))
    }
}
