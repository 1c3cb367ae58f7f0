//! The past as stretches of time, each with one leader or none: what pictures are drawn from.

use elector_protocol::Timestamp;

use super::past::{LeasePast, PastLine};

/// The name for no leader.
const NONE: &str = "<none>";

/// A stretch of time in which one candidate led, or none did.
pub(super) struct TimelineSegment<'a> {
    /// The change with which it began.
    pub(super) change: &'a PastLine,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// Those of a past, the oldest first, up to `until`.
pub(super) fn segments(past: &LeasePast, until: Timestamp) -> Vec<TimelineSegment<'_>> {
    let changes: Vec<&PastLine> = past.lines.iter().filter(|line| line.is_change).collect();
    let ends: Vec<Timestamp> = changes
        .iter()
        .skip(1)
        .map(|next| next.at.min(until))
        .chain([until])
        .collect();
    let segments = changes.into_iter().zip(ends);
    segments
        .map(|(change, to)| TimelineSegment {
            change,
            from: change.at,
            to,
        })
        .collect()
}

/// The leaders in the order in which they came.
pub(super) fn leaders<'a>(segments: &[TimelineSegment<'a>]) -> Vec<&'a str> {
    let mut leaders = Vec::new();
    for segment in segments {
        if !leaders.contains(&segment.leader()) {
            leaders.push(segment.leader());
        }
    }
    leaders
}

// === impl TimelineSegment ===

impl<'a> TimelineSegment<'a> {
    pub(super) fn leader(&self) -> &'a str {
        self.change.leader.as_deref().unwrap_or(NONE)
    }
}
