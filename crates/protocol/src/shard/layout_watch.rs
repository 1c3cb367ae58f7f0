//! Two layouts of one group must not lead side by side: their ranges overlap.

use std::collections::BTreeMap;
use std::time::Duration;

use super::layout::ShardLayout;
use crate::lease::{LeaseSnapshot, Occupancy};
use crate::lease_watch::{Freshness, LeaseWatch, NewsSource};
use crate::time::Instant;

/// The leases of a group that are of another layout than this member's, each under a stop-watch.
///
/// As long as one of them lives, the member leads nothing. A lease lives until its record has stood for its duration by
/// the clock of the member ([R4](crate::rules#r4)), whatever the times in the record say; a released one does not live.
/// That holds all the time and not at the start alone: two layouts that start at once see each other then. What they did
/// in the moment before, only the tokens tell apart.
#[derive(Clone, Debug)]
pub struct LayoutWatch {
    group: String,
    layout: ShardLayout,
    /// Those of other layouts that are held.
    others: BTreeMap<String, LeaseWatch>,
    is_listed: bool,
}

/// The answer to the question whether a member may lead ranges of its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutVerdict {
    /// No complete list of the namespace's Leases has been seen, so a lease of another layout may live.
    Unknown,
    /// No lease of another layout lives.
    Free,
    /// This lease of another layout lives.
    Taken {
        /// The name of the lease: the first by name of those that live.
        lease: String,
        /// The layout that it shows.
        layout: ShardLayout,
        /// The moment at which the verdict may change if nothing is seen before.
        until: Instant,
    },
}

// === impl LayoutWatch ===

impl LayoutWatch {
    /// The watch of a member of that group and layout, before anything is known.
    pub fn new(group: impl Into<String>, layout: ShardLayout) -> Self {
        Self {
            group: group.into(),
            layout,
            others: BTreeMap::new(),
            is_listed: false,
        }
    }

    /// Takes in a revision of a Lease of the namespace; one that is not of the group, or of this layout, is passed over.
    ///
    /// A deletion is not taken in: the holder may believe on for as long as its last record lasts, so the stop-watch of
    /// that goes on.
    pub fn handle_lease(
        &mut self,
        now: Instant,
        lease: &str,
        snapshot: LeaseSnapshot,
        source: NewsSource,
    ) {
        if self.other_layout(lease).is_none() {
            return;
        }
        let held = matches!(snapshot.record.occupancy(), Occupancy::Held(_));
        let known = self.others.get(lease);
        if known.is_some_and(|known| known.freshness(snapshot.version, source) == Freshness::Known)
        {
            return;
        }
        if !held {
            self.others.remove(lease);
            return;
        }
        let watch = self.others.entry(lease.to_owned());
        let watch = watch.or_insert_with(LeaseWatch::unknown);
        watch.observe(now, snapshot, source);
    }

    /// Takes in that a complete list has been seen.
    pub fn handle_listed(&mut self) {
        self.is_listed = true;
    }

    /// The verdict now. `longest` is the duration of a record that names none.
    pub fn verdict(&self, now: Instant, longest: Duration) -> LayoutVerdict {
        let living = self.others.iter().find_map(|(lease, watch)| {
            let until = watch.lease()?.expires_at(longest);
            let (layout, _) = self.other_layout(lease).filter(|_| now < until)?;
            Some(LayoutVerdict::Taken {
                lease: lease.clone(),
                layout,
                until,
            })
        });
        match living {
            Some(taken) => taken,
            None if self.is_listed => LayoutVerdict::Free,
            None => LayoutVerdict::Unknown,
        }
    }

    fn other_layout(&self, lease: &str) -> Option<(ShardLayout, u16)> {
        let shown = ShardLayout::of_lease(&self.group, lease);
        shown.filter(|(layout, _)| *layout != self.layout)
    }
}
