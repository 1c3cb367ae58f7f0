//! The one exemption from S1.

use std::time::Duration;

use elector_protocol::{LeaseRecord, LeaseSnapshot, ResourceVersion, Timestamp};

use crate::reading::duration;
use crate::verdict::LeaseChangeKind;

/// A write after which two may believe for a while, and no participant could prevent it (S1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exemption {
    pub(crate) by: ResourceVersion,
    pub(crate) from: Timestamp,
    /// Its end, after W.
    pub(crate) until: Timestamp,
}

// === impl Exemption ===

impl Exemption {
    /// S1's one exemption: a write by a stranger, which does not follow the rules, that names a holder or shortens a
    /// duration; on a lock of electors, also an acquisition that waits for no expiry. `longest` is the duration of a record that says none.
    pub(super) fn of(
        kind: LeaseChangeKind,
        before: Option<&LeaseRecord>,
        after: &LeaseSnapshot,
        at: Timestamp,
        longest: Duration,
    ) -> Option<Self> {
        if !matches!(
            kind,
            LeaseChangeKind::Foreign
                | LeaseChangeKind::Illegal
                | LeaseChangeKind::Take
                | LeaseChangeKind::Displace
        ) {
            return None;
        }
        let record = &after.record;
        let term = |record: &LeaseRecord| (record.holder.clone(), record.term, record.token);
        let names = record.holder.is_some() && before.map(term) != Some(term(record));
        let durations = (before.and_then(duration), duration(record));
        let shortens = match durations {
            (Some(old), Some(new)) => new < old,
            (Some(_), None) => record.holder.is_some(),
            (None, _) => false,
        };
        (names || shortens).then(|| {
            let lasts = [durations.0, durations.1]
                .into_iter()
                .flatten()
                .fold(longest, Ord::max);
            let until = i64::try_from(lasts.as_micros())
                .ok()
                .and_then(|lasts| Timestamp::from_micros(at.as_micros().saturating_add(lasts)));
            Self {
                by: after.version,
                from: at,
                until: until.unwrap_or(Timestamp::MAX),
            }
        })
    }
}
