//! The past as a picture of characters.

use elector_protocol::Timestamp;

use super::group::{GroupPast, member_of};
use super::past::{LeasePast, in_seconds};
use super::segments::{TimelineSegment, leaders, segments};
use crate::output;

/// The time that a picture shows, and the number of its parts.
struct PictureScale {
    from: Timestamp,
    until: Timestamp,
    width: usize,
}

/// The marks of members, in the order of their names; those that come after have the last one.
const MEMBERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz?";

/// A line for each leader in the order in which they came, with a mark for each part of the time in which it led; a part in
/// which it led for a while only has one too.
pub(super) fn draw(past: &LeasePast, until: Timestamp, width: usize) -> String {
    let segments = segments(past, until);
    let Some(first) = segments.first() else {
        return String::new();
    };
    let from = first.from;
    let scale = PictureScale { from, until, width };
    let rows = leaders(&segments).into_iter().map(|name| {
        let mark = |segment: &TimelineSegment<'_>| {
            let led = segment.change.leader.is_some();
            (segment.leader() == name).then_some(if led { '#' } else { '!' })
        };
        [name.to_owned(), scale.row(&segments, mark)]
    });
    let lines = [scale.header("LEADER")].into_iter().chain(rows);
    output::columns(&lines.collect::<Vec<_>>(), 3).join("\n") + "\n"
}

/// A line for each part of a group, with the mark of the member that led it; and the members by their marks.
pub(super) fn draw_group(past: &GroupPast, until: Timestamp, width: usize) -> String {
    let Some(from) = past.from() else {
        return String::new();
    };
    let scale = PictureScale { from, until, width };
    let members = past.members();
    let mark_of = |index: usize| MEMBERS.chars().nth(index).unwrap_or('?');
    let rows = past.parts.iter().map(|part| {
        let mark = |segment: &TimelineSegment<'_>| {
            let leader = segment.change.leader.as_deref();
            let member = leader.map(|leader| member_of(&part.lease, leader));
            let index = member.and_then(|member| members.iter().position(|it| *it == member));
            Some(index.map_or('!', mark_of))
        };
        let name = part.lease.name.to_string();
        [name, scale.row(&segments(part, until), mark)]
    });
    let lines = [scale.header("LEASE")].into_iter().chain(rows);
    let mut lines = output::columns(&lines.collect::<Vec<_>>(), 3);
    let names = members.iter().enumerate();
    let names: Vec<_> = names
        .map(|(index, name)| [mark_of(index).to_string(), (*name).to_owned()])
        .collect();
    lines.push(String::new());
    lines.extend(output::columns(&names, 1));
    lines.join("\n") + "\n"
}

// === impl PictureScale ===

impl PictureScale {
    fn header(&self, first: &str) -> [String; 2] {
        let (from, to) = (in_seconds(self.from), in_seconds(self.until));
        let gap = self.width.saturating_sub(from.len() + to.len()).max(1);
        [first.to_owned(), format!("{from}{}{to}", " ".repeat(gap))]
    }

    /// A line with a mark for each stretch of time that has one.
    fn row(
        &self,
        segments: &[TimelineSegment<'_>],
        mark: impl Fn(&TimelineSegment<'_>) -> Option<char>,
    ) -> String {
        let mut cells = vec!['.'; self.width];
        for (index, segment) in segments.iter().enumerate() {
            // Up to the part in which the next one begins, and at least one part.
            let from = self.cell(segment.from);
            let to = if index + 1 == segments.len() {
                self.width
            } else {
                self.cell(segment.to).max(from + 1)
            };
            if let Some(mark) = mark(segment) {
                cells[from..to.min(self.width)].fill(mark);
            }
        }
        cells.into_iter().collect()
    }

    fn cell(&self, time: Timestamp) -> usize {
        let start = self.from.as_micros();
        let lasts = (self.until.as_micros() - start).max(1);
        let part = i128::from(time.as_micros() - start) * i128::try_from(self.width).unwrap_or(0);
        let index = usize::try_from(part / i128::from(lasts)).unwrap_or(0);
        index.min(self.width - 1)
    }
}
