//! The report: a table for people, JSON for programs.

use elector_api::Rfc3339;
use elector_protocol::elector::{
    Action, Explanation, RankedCandidate, Reason, Settings, WakeAfter,
};
use elector_protocol::{Identity, Timestamp};
use serde::Serialize;

use super::group::GroupRow;
use super::input::InputObjects;
use super::operator::OperatorRow;
use crate::output::columns;

/// One lease. The JSON form is stable: fields may be added, none is renamed or removed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    namespace: String,
    lease: String,
    action: &'static str,
    holder: String,
    preferred_holder: String,
    strategy: Option<String>,
    ping: Vec<String>,
    reason: String,
    held_back: Option<HeldBackRow>,
    /// Where it is a part of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupRow>,
    operator: OperatorRow,
    wake: Option<WakeRow>,
    candidates: Vec<CandidateRow>,
}

/// A better candidate that is not preferred yet.
#[derive(Debug, Serialize)]
pub(crate) struct HeldBackRow {
    candidate: String,
    until: String,
    reason: String,
}

/// When the elector would look again if nothing changed before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WakeRow {
    after_seconds: f64,
    reason: String,
}

/// One candidate of a lease.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateRow {
    name: String,
    eligible: bool,
    rank: Option<usize>,
    reason: String,
}

/// Explains every election, sorted by namespace and lease.
pub(crate) fn rows(objects: &InputObjects, now: Timestamp, settings: &Settings) -> Vec<Row> {
    let name = |identity: &Option<Identity>| {
        identity
            .as_ref()
            .map(|identity| identity.as_str().to_owned())
            .unwrap_or_default()
    };
    let rows = objects.elections.iter().map(|(key, election)| {
        let told = Explanation::of(election, now, settings);
        let operator = OperatorRow::new(&told.overrides, &told.ignored, objects.notes.get(key));
        let candidates = told
            .candidates
            .into_iter()
            .map(CandidateRow::from)
            .collect();
        let mut row = Row {
            namespace: key.namespace.to_string(),
            lease: key.name.to_string(),
            action: told.action.as_str(),
            holder: name(&told.holder),
            preferred_holder: name(&told.preferred_holder),
            strategy: told.strategy.map(|strategy| strategy.to_string()),
            ping: told.ping.iter().map(ToString::to_string).collect(),
            reason: told.reason.to_string(),
            held_back: HeldBackRow::of(&told.reason, now),
            group: GroupRow::of(election),
            operator,
            wake: told.wake.map(WakeRow::from),
            candidates,
        };
        if let Some(fault) = objects.unreadable.get(key) {
            row.leave_alone(fault);
        }
        row
    });
    rows.collect()
}

/// A kubectl-like table, a line for each lease and an indented one for each candidate.
pub(crate) fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut lines = vec![
        [
            "NAMESPACE",
            "LEASE",
            "ACTION",
            "HOLDER",
            "PREFERRED",
            "REASON",
        ]
        .map(str::to_owned),
    ];
    for row in rows {
        lines.push([
            row.namespace.clone(),
            row.lease.clone(),
            row.action.to_owned(),
            row.holder.clone(),
            row.preferred_holder.clone(),
            row.reason_and_wake(),
        ]);
        let group = row.group.as_ref().map(GroupRow::line);
        for [annotation, counts, what] in group.into_iter().chain(row.operator.lines()) {
            let empty = String::new;
            lines.push([
                empty(),
                format!("  {annotation}"),
                counts,
                empty(),
                empty(),
                what,
            ]);
        }
        for candidate in &row.candidates {
            let rank = candidate
                .rank
                .map_or_else(|| "-".to_owned(), |rank| rank.to_string());
            let ranked = if candidate.eligible {
                rank
            } else {
                "no".to_owned()
            };
            lines.push([
                String::new(),
                format!("  {}", candidate.name),
                ranked,
                String::new(),
                String::new(),
                candidate.reason.clone(),
            ]);
        }
    }
    let mut text = columns(&lines, 3).join("\n");
    text.push('\n');
    text
}

// === impl Row ===

impl Row {
    fn reason_and_wake(&self) -> String {
        match &self.wake {
            Some(WakeRow {
                after_seconds,
                reason,
            }) => format!(
                "{}; next look at the latest in {after_seconds:.1}s, when {reason}",
                self.reason
            ),
            None => self.reason.clone(),
        }
    }

    /// A Lease that cannot be read is not written either.
    fn leave_alone(&mut self, fault: &str) {
        self.action = Action::Leave.as_str();
        self.holder.clear();
        self.preferred_holder.clear();
        self.ping.clear();
        (self.strategy, self.held_back, self.wake) = (None, None, None);
        fault.clone_into(&mut self.reason);
    }
}

// === impl HeldBackRow ===

impl HeldBackRow {
    fn of(reason: &Reason, now: Timestamp) -> Option<Self> {
        let Reason::HeldBack {
            better,
            because,
            remaining,
            ..
        } = reason
        else {
            return None;
        };
        let micros = i64::try_from(remaining.as_micros()).unwrap_or(i64::MAX);
        let until = Timestamp::from_micros(now.as_micros().saturating_add(micros));
        Some(Self {
            candidate: better.as_str().to_owned(),
            until: Rfc3339(until.unwrap_or(Timestamp::MAX)).to_string(),
            reason: because.to_string(),
        })
    }
}

// === impl WakeRow ===

impl From<WakeAfter> for WakeRow {
    fn from(wake: WakeAfter) -> Self {
        Self {
            after_seconds: wake.after.as_secs_f64(),
            reason: wake.why.to_string(),
        }
    }
}

// === impl CandidateRow ===

impl From<RankedCandidate> for CandidateRow {
    fn from(ranked: RankedCandidate) -> Self {
        Self {
            name: ranked.name.as_str().to_owned(),
            eligible: ranked.eligible,
            rank: ranked.rank,
            reason: ranked.reason,
        }
    }
}
