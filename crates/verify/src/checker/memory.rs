//! What is kept of a Lease's newest revision, to judge the next one by.

use elector_protocol::elector::{Actor, Move, audit};
use elector_protocol::{LeaseRecord, LeaseSnapshot, Occupancy, Timestamp};

use super::LeaseChecker;
use crate::verdict::ChangeKind;

/// The newest revision of the Lease.
#[derive(Debug)]
pub(super) struct LastRevision {
    pub(super) snapshot: LeaseSnapshot,
    /// When this record, not this revision, was first seen; `None` where it is older than the recording.
    pub(super) since: Option<Timestamp>,
    /// Where strangers wrote it: what they wrote over.
    pub(super) written_over: Option<LeaseRecord>,
}

// === impl Known ===

impl LastRevision {
    /// The newest record that no stranger wrote.
    pub(super) fn own(self) -> LeaseRecord {
        self.written_over.unwrap_or(self.snapshot.record)
    }
}

// === impl LeaseChecker ===

impl LeaseChecker<'_> {
    /// Keeps this revision; `unseen` where what was before it was not recorded.
    pub(super) fn remember(
        &mut self,
        act: ChangeKind,
        snapshot: LeaseSnapshot,
        at: Timestamp,
        unseen: bool,
    ) {
        let since = match &self.known {
            Some(known)
                if known.snapshot.uid == snapshot.uid
                    && known.snapshot.record.same_record(&snapshot.record) =>
            {
                known.since
            }
            _ => (!unseen).then_some(at),
        };
        match snapshot.record.occupancy() {
            Occupancy::Held(_) => self.owed = Some((snapshot.record.clone(), since)),
            // Also where a stranger made it look so, which shortens a duration: S1 is excused.
            Occupancy::Released => self.owed = None,
            // Deleted, or blanked by a stranger: the holder may still believe.
            Occupancy::Unproven => {}
        }
        let (known, unread) = (self.known.take(), self.unread.take());
        let written_over = match act {
            ChangeKind::Foreign => known.map(LastRevision::own).or(unread),
            ChangeKind::Signal => known.and_then(|known| known.written_over),
            _ => None,
        };
        self.known = Some(LastRevision {
            snapshot,
            since,
            written_over,
        });
    }
}

/// Whether the holder of a term that strangers wrote on renews it as it was, with its duration and its token.
pub(super) fn restores(known: &LastRevision, after: &LeaseRecord) -> bool {
    let Some(own) = &known.written_over else {
        return false;
    };
    let Some(holder) = &own.holder else {
        return false;
    };
    let there = &known.snapshot.record;
    if (&there.holder, there.term) != (&own.holder, own.term) || !own.has_token() {
        return false;
    }
    // The signals are others' to write.
    let own = LeaseRecord {
        strategy: there.strategy.clone(),
        preferred_holder: there.preferred_holder.clone(),
        ..own.clone()
    };
    audit(&own, after, &Actor::Candidate(holder)) == Ok(Move::Renew)
}
