//! The status of one lease, in values.

use std::collections::BTreeMap;

use elector_api::Rfc3339;
use elector_protocol::elector::{Action, Explanation, IgnoredOverride, Objects, Reason, Settings};
use elector_protocol::{CandidateRecord, Identity, LeaseKey, LeaseRecord, OutOfTime, Timestamp};
use serde::Serialize;

use super::proof_wait::ProofWait;
use crate::explain::group::GroupRow;
use crate::explain::input::InputObjects;
use crate::explain::operator::why_ignored;

/// One lease. The JSON form is stable: fields may be added, none is renamed or removed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) struct StatusRow {
    pub(in crate::kubectl) namespace: String,
    pub(in crate::kubectl) lease: String,
    pub(in crate::kubectl) state: LeaseState,
    /// Empty where the lease is unheld.
    pub(in crate::kubectl) holder: String,
    /// When the holder got the lease.
    pub(in crate::kubectl) since: Option<String>,
    /// When it last renewed.
    pub(in crate::kubectl) renewed: Option<String>,
    /// The duration of the record.
    pub(in crate::kubectl) lease_duration_seconds: Option<u64>,
    /// Since when it has no leader, as far as the objects tell.
    pub(in crate::kubectl) leaderless_since: Option<String>,
    /// When it is free at the latest, where it waits for the proof that no former holder leads.
    pub(in crate::kubectl) free_at: Option<String>,
    /// `None` where there is no Lease.
    pub(in crate::kubectl) term: Option<i32>,
    /// The candidate that leads after this holder, as far as that is decided; empty otherwise.
    pub(in crate::kubectl) next: String,
    pub(in crate::kubectl) strategy: Option<String>,
    /// The next action of an elector.
    pub(in crate::kubectl) action: &'static str,
    pub(in crate::kubectl) why: String,
    /// Where it is a part of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::kubectl) group: Option<GroupRow>,
    pub(in crate::kubectl) candidates: Vec<StatusCandidate>,
}

/// One candidate of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::kubectl) struct StatusCandidate {
    pub(in crate::kubectl) name: String,
    pub(in crate::kubectl) eligible: bool,
    pub(in crate::kubectl) rank: Option<usize>,
    pub(in crate::kubectl) binary_version: Option<String>,
    pub(in crate::kubectl) emulation_version: Option<String>,
    /// When it last answered a ping.
    pub(in crate::kubectl) renewed: Option<String>,
    pub(in crate::kubectl) why: String,
}

/// The state of a lease. The words are those of the metric `elector_leases`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::kubectl) enum LeaseState {
    Led,
    Leaderless,
    /// The Lease cannot be read, so that nothing is known.
    Unreadable,
}

/// All elections, sorted by namespace and lease.
pub(in crate::kubectl) fn rows(objects: &InputObjects, now: Timestamp) -> Vec<StatusRow> {
    let settings = settings(objects);
    let rows = objects.elections.iter().map(|(key, election)| {
        let told = Explanation::of(election, now, &settings);
        let record = election.lease.as_ref().map(|(lease, _)| &lease.record);
        let mut row = StatusRow::of(key, record, &told, now);
        if row.state == LeaseState::Leaderless {
            let since = leaderless_since(election);
            row.leaderless_since = since.map(|since| Rfc3339(since).to_string());
        }
        if let Some(wait) = ProofWait::of(election, &told, now, &settings) {
            row.free_at = Some(Rfc3339(wait.until).to_string());
            row.why = wait.why;
        }
        row.group = GroupRow::of(election);
        row.candidates = StatusCandidate::all(&told, &election.candidates);
        if let Some(fault) = objects.unreadable.get(key) {
            row.state = LeaseState::Unreadable;
            row.action = Action::Leave.as_str();
            row.next.clear();
            row.why.clone_from(fault);
        }
        row
    });
    rows.collect()
}

/// The settings of the electors, as far as the objects tell.
pub(in crate::kubectl) fn settings(objects: &InputObjects) -> Settings {
    Settings {
        preference_field: objects.preference_field,
        ..Settings::default()
    }
}

// === impl StatusRow ===

impl StatusRow {
    fn of(
        key: &LeaseKey,
        record: Option<&LeaseRecord>,
        told: &Explanation,
        now: Timestamp,
    ) -> Self {
        let holder = record.and_then(|record| record.holder.as_ref());
        let time = |time: fn(&LeaseRecord) -> Option<Timestamp>| {
            let time = time(record.filter(|_| holder.is_some())?)?;
            Some(Rfc3339(time).to_string())
        };
        let state = if record.is_some_and(|record| is_led(record, now)) {
            LeaseState::Led
        } else {
            LeaseState::Leaderless
        };
        Self {
            namespace: key.namespace.to_string(),
            lease: key.name.to_string(),
            state,
            holder: name(holder),
            since: time(|record| record.acquire_time),
            renewed: time(|record| record.renew_time),
            lease_duration_seconds: record
                .and_then(LeaseRecord::duration)
                .map(|duration| duration.as_secs()),
            leaderless_since: None,
            free_at: None,
            term: record.map(|record| record.term.0),
            next: name(next(told, holder)),
            strategy: told.strategy.as_ref().map(ToString::to_string),
            action: told.action.as_str(),
            why: [why(told)]
                .into_iter()
                .chain(
                    told.ignored
                        .iter()
                        .filter(is_too_far_ahead)
                        .map(why_ignored),
                )
                .collect::<Vec<_>>()
                .join("; "),
            group: None,
            candidates: Vec::new(),
        }
    }

    /// True where both say the same, ages and times left apart.
    pub(in crate::kubectl) fn says_the_same(&self, other: &Self) -> bool {
        let lease = |row: &Self| {
            let now = (row.state, row.holder.clone(), row.since.clone(), row.term);
            let then = (row.next.clone(), row.free_at.is_some(), row.group.clone());
            (now, then, row.strategy.clone(), row.action)
        };
        let candidates = |row: &Self| {
            let candidates = row.candidates.iter();
            let version = |each: &StatusCandidate| each.emulation_version.clone();
            let told = candidates.map(|each| (each.name.clone(), each.rank, version(each)));
            told.collect::<Vec<_>>()
        };
        lease(self) == lease(other) && candidates(self) == candidates(other)
    }
}

/// The candidate that leads after this holder, as far as that is decided.
fn next<'a>(told: &'a Explanation, holder: Option<&Identity>) -> Option<&'a Identity> {
    let named = match &told.reason {
        Reason::HolderLate { next, .. } => next.as_ref(),
        // The action is a grant.
        _ => told.holder.as_ref().filter(|next| Some(*next) != holder),
    };
    told.preferred_holder.as_ref().or(named)
}

/// True where a record has a holder that may still lead, and is no grant that waits for its acceptance.
fn is_led(record: &LeaseRecord, now: Timestamp) -> bool {
    let Some((renewed, duration)) = record.renew_time.zip(record.duration()) else {
        return false;
    };
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let ends = renewed.as_micros().saturating_add(micros);
    record.holder.is_some() && !record.is_unaccepted_grant() && now.as_micros() < ends
}

/// Since when a lease without a leader has none: since its record ended, otherwise since it was last written, otherwise
/// since the first candidate came.
fn leaderless_since(election: &Objects) -> Option<Timestamp> {
    let Some((lease, created)) = &election.lease else {
        return election.candidates.iter().map(|each| each.created).min();
    };
    let record = &lease.record;
    let written = record.renew_time.unwrap_or(*created);
    let lasts = record.duration().filter(|_| record.holder.is_some());
    let micros = i64::try_from(lasts.unwrap_or_default().as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(written.as_micros().saturating_add(micros))
}

/// True for a word that an operator waits for in vain. A word that is over says nothing any more.
fn is_too_far_ahead(word: &&IgnoredOverride) -> bool {
    match word {
        IgnoredOverride::Freeze { why, .. }
        | IgnoredOverride::Preference(_, why)
        | IgnoredOverride::StandDown { why, .. } => *why == OutOfTime::TooFarAhead,
        IgnoredOverride::NotEligible(_) => false,
    }
}

/// The reason, and for a holder that stays what makes it the best.
fn why(told: &Explanation) -> String {
    let reason = told.reason.to_string();
    let Reason::HolderIsBest(holder) = &told.reason else {
        return reason;
    };
    let best = told.candidates.iter().find(|each| each.name == *holder);
    best.map_or(reason, |best| format!("{holder} {}", best.reason))
}

fn name(name: Option<&Identity>) -> String {
    name.map_or_else(String::new, |name| name.as_str().to_owned())
}

// === impl StatusCandidate ===

impl StatusCandidate {
    /// Those of a lease, the eligible ones by rank, then the others by name.
    fn all(told: &Explanation, records: &[CandidateRecord]) -> Vec<Self> {
        let records: BTreeMap<_, _> = records.iter().map(|each| (&each.name, each)).collect();
        let candidates = told.candidates.iter().map(|ranked| {
            let record = records.get(&ranked.name);
            let spec = record.and_then(|record| record.offer().ok());
            Self {
                name: ranked.name.as_str().to_owned(),
                eligible: ranked.eligible,
                rank: ranked.rank,
                binary_version: spec.and_then(|spec| Some(spec.binary.as_ref()?.to_string())),
                emulation_version: spec.and_then(|spec| Some(spec.emulation.as_ref()?.to_string())),
                renewed: record
                    .and_then(|record| record.renew)
                    .map(|time| Rfc3339(time).to_string()),
                why: ranked.reason.clone(),
            }
        });
        candidates.collect()
    }
}
