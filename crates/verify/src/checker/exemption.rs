//! The one exemption from S1.

use elector_protocol::{LeaseRecord, LeaseSnapshot, ResourceVersion, Timestamp};

use super::LeaseChecker;
use crate::verdict::ChangeKind;

/// A write after which two may believe for a while, by nobody's fault of ours (S1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exemption {
    pub(crate) by: ResourceVersion,
    pub(crate) from: Timestamp,
    /// How long it lasts: W.
    pub(crate) until: Timestamp,
}

// === impl LeaseChecker ===

impl LeaseChecker<'_> {
    /// S1's one exemption: a write by a stranger, which does not follow the rules, that names a holder or shortens a duration.
    pub(super) fn exemption(&mut self, act: ChangeKind, after: &LeaseSnapshot, at: Timestamp) {
        if !matches!(
            act,
            ChangeKind::Foreign | ChangeKind::Illegal | ChangeKind::Take
        ) {
            return;
        }
        let before = self.known.as_ref().map(|known| &known.snapshot.record);
        let record = &after.record;
        let claim = |record: &LeaseRecord| (record.holder.clone(), record.term, record.token);
        let names = record.holder.is_some() && before.map(claim) != Some(claim(record));
        let durations = (before.and_then(LeaseRecord::duration), record.duration());
        let shortens = match durations {
            (Some(old), Some(new)) => new < old,
            (Some(_), None) => record.holder.is_some(),
            (None, _) => false,
        };
        if names || shortens {
            let longest = self.participants.limits.longest_lease;
            let lasts = [durations.0, durations.1]
                .into_iter()
                .flatten()
                .fold(longest, Ord::max);
            let until = i64::try_from(lasts.as_micros())
                .ok()
                .and_then(|lasts| Timestamp::from_micros(at.as_micros().saturating_add(lasts)));
            self.exemptions.push(Exemption {
                by: after.version,
                from: at,
                until: until.unwrap_or(Timestamp::MAX),
            });
        }
    }
}
