//! The state of a Lease before a revision, gathered from the revisions before it.

use std::time::Duration;

use elector_protocol::{LeaseRecord, Occupancy, Uid};

use crate::history::LeaseRevision;

/// The past of a Lease before a revision.
#[derive(Default)]
pub(super) struct PastRevisions {
    /// The revision before, `None` where there is no Lease.
    pub(super) before: Option<LeaseRevision>,
    pub(super) uid: Option<Uid>,
    /// The newest record of this Lease that could be read.
    readable: Option<LeaseRecord>,
    /// Since when the record before has been there.
    pub(super) since: Duration,
    /// When the Lease before this one was deleted, if there was one.
    pub(super) gone: Option<Duration>,
    /// True if any revision of this Lease was held.
    pub(super) held: bool,
    /// True if a stranger wrote the revision before.
    pub(super) foreign: bool,
    /// When this term began.
    pub(super) term_since: Duration,
    /// The number of preferences written in this term.
    pub(super) preferences: usize,
}

// === impl PastRevisions ===

impl PastRevisions {
    /// Adds the next revision; `foreign`: a stranger wrote it.
    pub(super) fn add(&mut self, revision: &LeaseRevision, foreign: bool) {
        self.foreign = foreign;
        let Some(lease) = &revision.lease else {
            self.before = None;
            self.uid = None;
            self.gone = Some(revision.at);
            return;
        };
        let uid = lease.metadata.uid.as_deref().map(Uid::new);
        if self.before.is_none() || uid != self.uid {
            self.since = revision.at;
            self.held = false;
            self.preferences = 0;
            self.readable = None;
        }
        self.uid = uid;
        if let Some(after) = &revision.record {
            self.held |= matches!(after.occupancy(), Occupancy::Held(_));
            // A record that is there again after one that could not be read was not renewed in between (R4).
            match &self.readable {
                Some(before) if before.same_record(after) => {}
                _ => self.since = revision.at,
            }
            match &self.readable {
                Some(before) if before.term == after.term => {
                    let preferred = &after.preferred_holder;
                    let new = preferred.is_some() && *preferred != before.preferred_holder;
                    self.preferences += usize::from(new);
                }
                _ => {
                    self.preferences = 0;
                    self.term_since = revision.at;
                }
            }
            self.readable = Some(after.clone());
        }
        self.before = Some(revision.clone());
    }
}
