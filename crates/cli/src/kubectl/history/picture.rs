//! The past as a picture.

use elector_protocol::Timestamp;

use super::past::{LeasePast, PastLine};
use super::second::in_seconds;
use crate::output;

/// What no leader is called.
const NOBODY: &str = "<none>";

/// A line for each leader in the order in which they came, with a mark for each part of the time in which it led; a part in
/// which it led for a while only has one too.
pub(super) fn draw(past: &LeasePast, until: Timestamp, width: usize) -> String {
    let changes: Vec<&PastLine> = past.lines.iter().filter(|line| line.is_change).collect();
    let Some(first) = changes.first() else {
        return String::new();
    };
    let start = first.at.as_micros();
    let lasts = (until.as_micros() - start).max(1);
    let cell = |time: Timestamp| {
        let part = i128::from(time.as_micros() - start) * i128::try_from(width).unwrap_or(0);
        let index = usize::try_from(part / i128::from(lasts)).unwrap_or(0);
        index.min(width - 1)
    };
    let mut rows: Vec<(String, Vec<char>)> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let ends = changes
            .get(index + 1)
            .map_or(until, |next| next.at.min(until));
        let name = change.leader.as_deref().unwrap_or(NOBODY);
        let known = rows.iter().position(|(other, _)| other == name);
        let row = known.unwrap_or_else(|| {
            rows.push((name.to_owned(), vec!['.'; width]));
            rows.len() - 1
        });
        // Up to the part in which the next one begins, and at least one part.
        let (from, to) = (cell(change.at), cell(ends));
        let to = if index + 1 == changes.len() {
            width
        } else {
            to.max(from + 1)
        };
        rows[row].1[from..to.min(width)].fill(if change.leader.is_some() { '#' } else { '!' });
    }
    let (from, to) = (in_seconds(first.at), in_seconds(until));
    let gap = width.saturating_sub(from.len() + to.len()).max(1);
    let header = [
        "LEADER".to_owned(),
        format!("{from}{}{to}", " ".repeat(gap)),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, cells)| [name, cells.into_iter().collect()]);
    let lines = output::columns(&[header].into_iter().chain(rows).collect::<Vec<_>>(), 3);
    lines.join("\n") + "\n"
}
