//! Leases of the group that are of another number of ranges, which keep this process from leading while they live.

use std::time::Duration;

use elector_api::Lease;
use elector_protocol::shard::{LayoutVerdict, LayoutWatch, ShardLayout};
use elector_protocol::{Instant, NewsSource};
use elector_runtime::WatchEvent;
use tokio::sync::watch;

/// The watch of the Leases, as far as it shows other layouts of the group.
pub(super) struct OtherLayouts {
    layout: ShardLayout,
    watch: LayoutWatch,
    /// For records that name no duration.
    longest: Duration,
    /// The reason for which this process may not lead, while it may not.
    obstacle: watch::Sender<Option<String>>,
}

// === impl OtherLayouts ===

impl OtherLayouts {
    pub(super) fn new(group: &str, layout: ShardLayout, longest: Duration) -> Self {
        Self {
            layout,
            watch: LayoutWatch::new(group, layout),
            longest,
            obstacle: watch::Sender::new(None),
        }
    }

    /// The reason for which this process may not lead, while it may not.
    pub(super) fn obstacle(&self) -> watch::Receiver<Option<String>> {
        self.obstacle.subscribe()
    }

    /// Takes in an event, before any part hears of it.
    pub(super) fn note(&mut self, now: Instant, event: &WatchEvent<Lease>) {
        match event {
            WatchEvent::Listed { items, .. } => {
                for lease in items {
                    self.note_lease(now, lease, NewsSource::List);
                }
                self.watch.handle_listed();
            }
            WatchEvent::Applied(lease) => self.note_lease(now, lease, NewsSource::Watch),
            // A deletion ends no belief, and after a gap comes a list.
            WatchEvent::Deleted(_)
            | WatchEvent::Rewound { .. }
            | WatchEvent::Gap { .. }
            | WatchEvent::Synced
            | WatchEvent::Failed(_) => {}
        }
        self.judge(now);
    }

    /// Publishes whether this process may lead, and says when to look again.
    pub(super) fn judge(&self, now: Instant) -> Option<Instant> {
        let (obstacle, until) = match self.watch.verdict(now, self.longest) {
            LayoutVerdict::Taken {
                lease,
                layout,
                until,
            } => {
                let text = format!(
                    "lease {lease} of another layout is held: {layout}, and not {}",
                    self.layout
                );
                (Some(text), Some(until))
            }
            // Before the first list no part knows its Lease, so none can lead.
            LayoutVerdict::Free | LayoutVerdict::Unknown => (None, None),
        };
        self.obstacle.send_if_modified(|known| {
            let is_news = *known != obstacle;
            *known = obstacle;
            is_news
        });
        until
    }

    fn note_lease(&mut self, now: Instant, lease: &Lease, source: NewsSource) {
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        // A Lease that cannot be read names no holder that this process could know of.
        if let Ok(snapshot) = lease.snapshot() {
            self.watch.handle_lease(now, name, snapshot, source);
        }
    }
}
