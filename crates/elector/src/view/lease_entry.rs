//! The memory of one lease: its election, and the object behind it.

use std::sync::Arc;

use elector_api::{Malformed, PackedLease};
use elector_protocol::elector::Election;
use elector_protocol::{Identity, Instant, LeaseKey, LeaseRecord, ObservedLease};

use crate::leadership_change::{ExpectedGrant, LeadershipChange};
use crate::view::overflow::OverflowCandidates;

/// One lease.
#[derive(Debug)]
pub(super) struct LeaseEntry {
    pub(super) election: Election,
    /// True if its Lease is known to exist or not.
    pub(super) known: bool,
    /// The object of the newest revision, kept while a candidate names the lease, and where it is large only from a
    /// read until it is written.
    pub(super) object: Option<PackedLease>,
    /// Why the newest revision cannot be judged.
    pub(super) fault: Option<Box<Malformed>>,
    /// The newest grant of ours that has not been seen yet.
    pub(super) expected: Option<Box<ExpectedGrant>>,
    /// The candidates for which there is no place in the election.
    pub(super) waiting: OverflowCandidates,
    /// The group that the Lease names by its label.
    pub(super) label: Option<Arc<str>>,
    /// The group that it is a part of, as looked at last.
    pub(super) group: Option<Arc<str>>,
    /// True if its group is to look at it.
    pub(super) is_unseen: bool,
    /// True once waiting ones are reported.
    pub(super) overflow_reported: bool,
    /// The last holder, while there is none.
    former: Option<Identity>,
}

// === impl LeaseEntry ===

impl LeaseEntry {
    pub(super) fn new(absent_since: Option<Instant>) -> Self {
        Self {
            election: absent_since.map_or_else(Election::unknown, Election::absent),
            known: absent_since.is_some(),
            object: None,
            fault: None,
            expected: None,
            waiting: OverflowCandidates::default(),
            label: None,
            group: None,
            is_unseen: false,
            overflow_reported: false,
            former: None,
        }
    }

    pub(super) fn has_candidates(&self) -> bool {
        self.election.candidates().next().is_some()
    }

    /// Its Lease, where it is elected and no candidate names it any more.
    pub(super) fn abandoned(&self) -> Option<&ObservedLease> {
        let lease = self.election.watch().lease()?;
        let is_elected = lease.snapshot.record.strategy.is_some();
        (is_elected && !self.has_candidates()).then_some(lease)
    }

    /// The change of leadership from one record to the next, if there is one.
    pub(super) fn change(
        &mut self,
        key: &LeaseKey,
        before: Option<&LeaseRecord>,
        after: Option<&LeaseRecord>,
    ) -> Option<LeadershipChange> {
        let mut change = LeadershipChange::between(key, before, after, self.expected.as_deref())?;
        self.expected = None;
        if change.holder.is_none() {
            self.former.clone_from(&change.previous);
        } else if change.previous.is_none() {
            change.previous = self.former.take();
        }
        Some(change)
    }

    /// A revision came that cannot be judged: what was known of the record is void.
    pub(super) fn set_fault(&mut self, fault: Malformed) {
        self.election.handle_lease_unreadable();
        self.known = false;
        self.object = None;
        self.fault = Some(Box::new(fault));
        self.expected = None;
    }
}
