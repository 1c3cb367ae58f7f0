//! The check for words of operators that still count, or that are ignored.

use elector_protocol::Timestamp;

use super::line::CheckLine;
use crate::explain::cluster::ListedObjects;
use crate::kubectl::words::{WordRow, WordState, rows};

const CHECK: &str = "words";

/// The most words that have a line each.
const LONGEST: usize = 20;

/// Looks at all words in these objects.
pub(super) fn check(listed: &ListedObjects, now: Timestamp, lines: &mut Vec<CheckLine>) {
    let rows = rows(listed, now);
    let (over, said): (Vec<_>, Vec<_>) = rows
        .iter()
        .partition(|row: &&WordRow| row.state == WordState::Over);
    lines.extend(said.iter().take(LONGEST).map(|row| judge(row)));
    if said.len() > LONGEST {
        let text = format!("{} more words of operators", said.len() - LONGEST);
        lines.push(CheckLine::warning(CHECK, text, "kubectl elector words -A"));
    }
    if said.is_empty() {
        let text = match over.len() {
            0 => "no lease is frozen, no candidate is preferred, none stands down".to_owned(),
            over => format!("no word of an operator counts; {over} are over, and without effect"),
        };
        lines.push(CheckLine::ok(CHECK, text));
    }
}

fn judge(row: &WordRow) -> CheckLine {
    let lease = format!("{}/{}", row.namespace, row.lease);
    let candidate = row.candidate.as_deref().unwrap_or_default();
    let text = match row.word {
        "freeze" => format!("{lease} is frozen"),
        "prefer" => format!("{lease} prefers {candidate}"),
        _ => format!("{candidate}, a candidate for {lease}, stands down"),
    };
    let end = match &row.until {
        Some(until) => format!(" until {until}"),
        None => String::new(),
    };
    let why = row.why.as_deref().unwrap_or("electors do not heed it");
    let text = match row.state {
        WordState::Ignored => format!("the word that {text}{end} is ignored: {why}"),
        _ => match &row.why {
            Some(why) => format!("{text}{end}, but {why}"),
            None => format!("{text}{end}"),
        },
    };
    CheckLine::warning(CHECK, text, format!("to end it: {}", row.undo))
}
