//! The check that a term begins on a record that was free by then (R4, R6).

use std::time::Duration;

use elector_protocol::LeaseRecord;

use super::memory::LastRevision;
use super::rules::{Rules, micros_between};
use super::term_start::TermStart;
use crate::broken_rule::BrokenRule;
use crate::entry::between;
use crate::participants::LeasePurpose;
use crate::reading::{duration, is_released, is_unaccepted_grant};
use crate::recorded_writer::{RecordedWriter, TermSource};
use crate::verdict::Invariant;

/// The time without renewals after which the lock of the built-in controller is taken over from another elector.
const MISSED_RENEWAL: Duration = Duration::from_secs(5);

// === impl Rules ===

impl Rules<'_> {
    /// R4 and R6: by the times that both sides wrote where their clocks agree (a stranger's may say anything, so there
    /// it counts when the record was seen).
    pub(super) fn expired(
        &self,
        last: &LastRevision<'_>,
        after: &LeaseRecord,
        at: i64,
        start: TermStart,
    ) -> Result<(), BrokenRule> {
        if let Some(writer) = self.writer {
            return self.waited(writer, last, start);
        }
        let limits = &self.participants.limits;
        // client-go takes what its like let go, and minds no token that an earlier holder left.
        if start == TermStart::Taken && last.let_go && last.snapshot.record.holder.is_none() {
            return Ok(());
        }
        let owed = self.memory.owed.as_ref();
        let owed = owed.and_then(|(record, since)| Some((record, since, record.holder.as_ref()?)));
        let Some((record, since, holder)) = owed else {
            return Ok(());
        };
        let duration = duration(record).unwrap_or(limits.longest_lease);
        // A grant is written by an elector or by the holder before, whomever it names.
        let granted = last.written_over.is_none() && is_unaccepted_grant(record);
        let counts = granted || self.implementation(holder).is_some();
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

    /// R4 and R6 as they are written, by the writer's own clock.
    fn waited(
        &self,
        writer: &RecordedWriter,
        last: &LastRevision<'_>,
        start: TermStart,
    ) -> Result<(), BrokenRule> {
        let Some(since) = last.since else {
            return Ok(()); // older than the recording
        };
        let before = &last.snapshot.record;
        let longest = self.longest_lease();
        let lasts = duration(before).unwrap_or(longest);
        let needed = match (&before.holder, self.participants.purpose(self.lease)) {
            // Electors displace the built-in controller at once, and each other once a renewal is missing.
            (Some(holder), LeasePurpose::BuiltinLock) if !holder.is_elector() => Duration::ZERO,
            (Some(_), LeasePurpose::BuiltinLock) => MISSED_RENEWAL.min(lasts),
            (Some(_), _) => lasts,
            // Two electors that act at the same time are harmless (R17), so they wait for no proof.
            (None, LeasePurpose::BuiltinLock | LeasePurpose::ElectorLock) => Duration::ZERO,
            (None, LeasePurpose::Work) if is_released(before) => Duration::ZERO,
            // The holder of an earlier Lease of this name sent its last renewal before that one was gone, and before the
            // writer saw that there was none.
            (None, LeasePurpose::Work) => {
                let absent = self
                    .memory
                    .gone
                    .map_or(writer.born, |at| at.max(writer.born));
                let proven = !self.memory.was_held && writer.counted_from(absent) >= longest;
                if proven { Duration::ZERO } else { longest }
            }
        };
        let fallback = match self.terms_of_writer() {
            Some(TermSource::GrantedOrAcquired(fallback)) => fallback,
            _ => Duration::ZERO,
        };
        let (needed, waited) = (needed + fallback, writer.counted_from(since));
        if waited >= needed {
            return Ok(());
        }
        let (begun, rules) = start.words();
        let message = format!(
            "{begun} after {:.3} s of the writer's clock, which is before {:.3} s are over ({rules})",
            waited.as_secs_f64(),
            needed.as_secs_f64()
        );
        Err(BrokenRule::promised(Invariant::S3, message))
    }
}
