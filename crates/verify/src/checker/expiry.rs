//! The check that a term begins on a record that was free by then (R4, R6).

use elector_protocol::LeaseRecord;

use super::broken_rule::BrokenRule;
use super::memory::LastRevision;
use super::rules::{Rules, micros_between};
use super::term_start::TermStart;
use crate::entry::between;
use crate::verdict::Invariant;

// === impl Rules ===

impl Rules<'_> {
    /// R4 and R6: by the times that both sides wrote where their clocks agree (a stranger's may say anything, so there
    /// it counts when the record was seen).
    pub(super) fn expired(
        &self,
        last: &LastRevision<'_>,
        before: &LeaseRecord,
        after: &LeaseRecord,
        at: i64,
        start: TermStart,
    ) -> Result<(), BrokenRule> {
        let limits = &self.participants.limits;
        // client-go takes what its like let go, and minds no token that an earlier holder left.
        if before.holder.is_none() && start == TermStart::Taken && last.let_go {
            return Ok(());
        }
        let Some((record, since)) = &self.memory.owed else {
            return Ok(());
        };
        let Some(holder) = &record.holder else {
            return Ok(());
        };
        let duration = record.duration().unwrap_or(limits.longest_lease);
        let counts = self.implementation(holder).is_some();
        let (age, tolerance) = match (
            record.renew_time,
            after.acquire_time,
            limits.clock_difference,
        ) {
            (Some(renewed), Some(begun), Some(apart)) if counts => (between(renewed, begun), apart),
            _ => match since {
                Some(since) => (
                    micros_between(since.as_micros(), at),
                    limits.recording_delay,
                ),
                None => return Ok(()), // older than the recording
            },
        };
        if age.mul_f64(limits.drift) + tolerance + start.leeway() >= duration {
            return Ok(());
        }
        let (begun, rules) = start.words();
        let message = format!(
            "{begun} {:.3} s after {holder} renewed, which is before its {} s are over ({rules})",
            age.as_secs_f64(),
            duration.as_secs()
        );
        Err(BrokenRule::promised(Invariant::S3, message))
    }
}
