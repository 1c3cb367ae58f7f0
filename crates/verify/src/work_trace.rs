//! When each process worked as the leader, by what the candidates say.

use std::collections::{BTreeMap, BTreeSet};

use elector_protocol::{LeaseKey, Timestamp, Token};

use crate::entry::{EntryContent, EventKind, HistoryEntry};
use crate::participants::{Implementation, Participants};

/// From one instant to another, one process worked as the leader: it believed that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkInterval {
    /// The process.
    pub name: String,
    /// The lease that it is about, where the candidate says so.
    pub lease: Option<LeaseKey>,
    /// The term, where the candidate says so.
    pub term: Option<i64>,
    /// The token of the term, where the candidate says so.
    pub token: Option<Token>,
    /// When its work began.
    pub from: Timestamp,
    /// When its work had ended, or it was killed; where neither is known, when it said that it lost. `None` while it
    /// leads.
    pub to: Option<Timestamp>,
    /// When it said that it had lost, if it did before its work had ended: then the lease was not its own to give away.
    pub lost: Option<Timestamp>,
    /// When a process of that name started next, where none of the ends is known.
    pub restart: Option<Timestamp>,
}

/// The candidates' trace of the work on one lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkTrace<'a> {
    /// The work, and the code that the process runs.
    pub(crate) intervals: Vec<(&'a WorkInterval, Implementation)>,
    /// The processes that say anything at all.
    pub(crate) traced: BTreeSet<&'a str>,
}

/// The work of all processes, in the order of the beginnings.
pub fn work_intervals(entries: &[HistoryEntry]) -> Vec<WorkInterval> {
    let mut intervals: Vec<WorkInterval> = Vec::new();
    for entry in entries {
        let EntryContent::Event(event) = &entry.content else {
            continue;
        };
        let named = |interval: &&mut WorkInterval| {
            let same = event.lease.is_none() || interval.lease == event.lease;
            interval.name == event.name && same
        };
        match event.kind {
            EventKind::Start => {
                if let Some(interval) = intervals.iter_mut().rfind(named)
                    && interval.to.is_none()
                {
                    interval.restart = interval.restart.or(Some(entry.at));
                }
            }
            EventKind::Leading => intervals.push(WorkInterval {
                name: event.name.clone(),
                lease: event.lease.clone(),
                term: event.term,
                token: event.token,
                from: entry.at,
                to: None,
                lost: None,
                restart: None,
            }),
            kind @ (EventKind::WorkStopped | EventKind::Lost | EventKind::Killed) => {
                // After a loss by deadline the work may end later; it is the work that must not overlap.
                if let Some(interval) = intervals.iter_mut().rfind(named)
                    && (interval.to.is_none() || kind == EventKind::WorkStopped)
                {
                    if kind == EventKind::Lost {
                        interval.lost = Some(entry.at);
                    }
                    interval.to = Some(entry.at);
                }
            }
        }
    }
    intervals.sort_by_key(|interval| interval.from);
    intervals
}

// === impl WorkTrace ===

impl<'a> WorkTrace<'a> {
    /// The trace of each lease. An event that names no lease is about each lease
    /// that its process stands for or holds.
    pub(crate) fn of_each(
        entries: &'a [HistoryEntry],
        intervals: &'a [WorkInterval],
        participants: &'a Participants,
    ) -> BTreeMap<&'a LeaseKey, Self> {
        let mut member_of: BTreeMap<&str, Vec<&LeaseKey>> = BTreeMap::new();
        for (lease, name) in participants.members() {
            member_of.entry(name).or_default().push(lease);
        }
        let about = |said: Option<&'a LeaseKey>, name: &str| match said {
            Some(said) => vec![said],
            None => member_of.get(name).cloned().unwrap_or_default(),
        };
        let mut traces: BTreeMap<&LeaseKey, Self> = BTreeMap::new();
        for interval in intervals {
            for lease in about(interval.lease.as_ref(), &interval.name) {
                if let Some(implementation) = participants.implementation(lease, &interval.name) {
                    let trace = traces.entry(lease).or_default();
                    trace.intervals.push((interval, implementation));
                }
            }
        }
        for entry in entries {
            // A kill is reported by another process.
            if let EntryContent::Event(event) = &entry.content
                && event.kind != EventKind::Killed
            {
                for lease in about(event.lease.as_ref(), &event.name) {
                    traces.entry(lease).or_default().traced.insert(&event.name);
                }
            }
        }
        traces
    }
}
