//! The status as a table, as kubectl prints objects.

use elector_api::{age, parse_time};
use elector_protocol::Timestamp;

use super::row::{LeaseState, StatusCandidate, StatusRow};
use crate::output::{Columns, RED, YELLOW, coloured};

/// A table of leases.
#[derive(Debug, Default)]
pub(super) struct StatusTable {
    /// True where the namespace is shown.
    pub(super) namespaces: bool,
    /// True where there are more columns.
    pub(super) wide: bool,
    /// True where the candidates of each lease follow it.
    pub(super) candidates: bool,
    /// True while the columns are still to be named.
    pub(super) headers: bool,
    pub(super) columns: Columns,
}

/// The word of kubectl for an absent value.
const NONE: &str = "<none>";

// === impl StatusTable ===

impl StatusTable {
    /// These rows, below the names of the columns the first time.
    pub(super) fn text(&mut self, rows: &[StatusRow], now: Timestamp) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let mut lines = Vec::new();
        if std::mem::take(&mut self.headers) {
            lines.push((self.header(), None));
        }
        for row in rows {
            lines.push((self.line(row, now), colour(row)));
            let candidates = row.candidates.iter().filter(|_| self.candidates);
            lines.extend(candidates.map(|each| (self.candidate(each, now), None)));
        }
        let (cells, colours): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        coloured(self.columns.lines(&cells), colours)
    }

    fn header(&self) -> Vec<String> {
        let more = ["RENEWED", "DURATION", "STRATEGY"].into_iter();
        let names = ["NAMESPACE"].into_iter().filter(|_| self.namespaces);
        let names = names
            .chain(["LEASE", "STATE", "HOLDER", "SINCE", "TERM", "NEXT"])
            .chain(["CANDIDATES"])
            .chain(more.filter(|_| self.wide))
            .chain(["WHY"]);
        names.map(str::to_owned).collect()
    }

    fn line(&self, row: &StatusRow, now: Timestamp) -> Vec<String> {
        let eligible = row.candidates.iter().filter(|each| each.eligible).count();
        let state = match row.state {
            LeaseState::Led => "Led",
            LeaseState::Leaderless => "Leaderless",
            LeaseState::Unreadable => "Unreadable",
        };
        let duration = row.lease_duration_seconds;
        let more = [
            ago(row.renewed.as_deref(), now),
            or_none(duration.map(|seconds| format!("{seconds}s"))),
            or_none(row.strategy.clone()),
        ];
        let names = [row.namespace.clone()].into_iter();
        let cells = names
            .filter(|_| self.namespaces)
            .chain([
                row.lease.clone(),
                state.to_owned(),
                or_none(Some(row.holder.clone())),
                ago(row.since.as_deref(), now),
                or_none(row.term.map(|term| term.to_string())),
                or_none(Some(row.next.clone())),
                format!("{eligible}/{}", row.candidates.len()),
            ])
            .chain(more.into_iter().filter(|_| self.wide))
            .chain([row.why.clone()]);
        cells.collect()
    }

    /// A candidate below its lease: its rank below the state, its versions below the holder, and when it last answered below
    /// since when that one leads.
    fn candidate(&self, candidate: &StatusCandidate, now: Timestamp) -> Vec<String> {
        let rank = match candidate.rank {
            Some(rank) => format!("rank {rank}"),
            None if candidate.eligible => "unranked".to_owned(),
            None => "ineligible".to_owned(),
        };
        let text = |version: &Option<String>| version.clone().unwrap_or_default();
        let binary = text(&candidate.binary_version);
        let versions = match text(&candidate.emulation_version) {
            emulation if emulation.is_empty() || emulation == binary => binary,
            emulation => format!("{binary} as {emulation}"),
        };
        let mut cells = vec![String::new(); usize::from(self.namespaces)];
        cells.extend([
            format!("  {}", candidate.name),
            rank,
            versions,
            ago(candidate.renewed.as_deref(), now),
        ]);
        cells.resize(self.header().len() - 1, String::new());
        cells.push(candidate.why.clone());
        cells
    }
}

fn colour(row: &StatusRow) -> Option<u8> {
    match row.state {
        LeaseState::Leaderless | LeaseState::Unreadable => Some(RED),
        LeaseState::Led => Some(YELLOW).filter(|_| !row.next.is_empty()),
    }
}

fn or_none(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| NONE.to_owned())
}

/// The age of a time.
fn ago(time: Option<&str>, now: Timestamp) -> String {
    let time = time.and_then(|time| parse_time(time).ok());
    let micros = time.map(|time| now.as_micros() - time.as_micros());
    or_none(micros.map(|micros| age(micros.div_euclid(1_000_000))))
}
