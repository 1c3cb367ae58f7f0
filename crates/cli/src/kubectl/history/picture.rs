//! The past as a picture of characters.

use elector_protocol::Timestamp;

use super::past::{LeasePast, in_seconds};
use super::segments::{leaders, segments};
use crate::output;

/// A line for each leader in the order in which they came, with a mark for each part of the time in which it led; a part in
/// which it led for a while only has one too.
pub(super) fn draw(past: &LeasePast, until: Timestamp, width: usize) -> String {
    let segments = segments(past, until);
    let Some(first) = segments.first() else {
        return String::new();
    };
    let start = first.from.as_micros();
    let lasts = (until.as_micros() - start).max(1);
    let cell = |time: Timestamp| {
        let part = i128::from(time.as_micros() - start) * i128::try_from(width).unwrap_or(0);
        let index = usize::try_from(part / i128::from(lasts)).unwrap_or(0);
        index.min(width - 1)
    };
    let leaders = leaders(&segments);
    let mut rows: Vec<Vec<char>> = vec![vec!['.'; width]; leaders.len()];
    for (index, segment) in segments.iter().enumerate() {
        // Up to the part in which the next one begins, and at least one part.
        let from = cell(segment.from);
        let to = if index + 1 == segments.len() {
            width
        } else {
            cell(segment.to).max(from + 1)
        };
        let mark = if segment.change.leader.is_some() {
            '#'
        } else {
            '!'
        };
        let row = leaders.iter().zip(&mut rows);
        for (_, row) in row.filter(|(leader, _)| **leader == segment.leader()) {
            row[from..to.min(width)].fill(mark);
        }
    }
    let (from, to) = (in_seconds(first.from), in_seconds(until));
    let gap = width.saturating_sub(from.len() + to.len()).max(1);
    let header = [
        "LEADER".to_owned(),
        format!("{from}{}{to}", " ".repeat(gap)),
    ];
    let rows = leaders.iter().zip(rows);
    let rows = rows.map(|(name, cells)| [(*name).to_owned(), cells.into_iter().collect()]);
    let lines = output::columns(&[header].into_iter().chain(rows).collect::<Vec<_>>(), 3);
    lines.join("\n") + "\n"
}
