//! The whole check: every Lease of a history, and what the candidates say.

use std::collections::BTreeMap;

use elector_protocol::{LeaseKey, ResourceVersion};

use crate::balance::BalanceChecker;
use crate::checker::LeaseChecker;
use crate::entry::{EntryContent, HistoryEntry};
use crate::history::History;
use crate::leadership;
use crate::participants::Participants;
use crate::verdict::Verdict;
use crate::work_trace::{WorkTrace, work_intervals};

/// Checks each lease that has participants.
pub fn verify(history: &History, participants: &Participants) -> Verdict {
    let entries = history.entries();
    let start = history.start();
    let work_intervals = work_intervals(entries);
    let mut traces = WorkTrace::of_each(entries, &work_intervals, participants);
    let mut checkers: BTreeMap<&LeaseKey, LeaseChecker<'_>> = participants
        .leases()
        .map(|lease| {
            (
                lease,
                LeaseChecker::new(lease, participants, history, start),
            )
        })
        .collect();
    let mut balance = BalanceChecker::new(history, participants);
    // The two kinds of objects come by different watches; their versions tell what came first.
    let mut objects: Vec<(ResourceVersion, &HistoryEntry)> = entries
        .iter()
        .filter_map(|entry| Some((entry.content.version()?, entry)))
        .collect();
    objects.sort_by_key(|(version, _)| *version);
    for (version, entry) in objects {
        match &entry.content {
            EntryContent::Lease(_, lease) => {
                let for_balance = balance.revision(lease, version, entry.at);
                if let Some(checker) = checkers.get_mut(&lease.key()) {
                    checker.revision(lease, version, entry.at, for_balance);
                }
            }
            EntryContent::LeaseGone(_, lease) => {
                balance.gone(&lease.key(), entry.at);
                if let Some(checker) = checkers.get_mut(&lease.key()) {
                    checker.gone(version, entry.at);
                }
            }
            EntryContent::Candidate(name, candidate) => {
                balance.candidate(name, candidate);
                if let Some(checker) = checkers.get_mut(&candidate.lease_key()) {
                    checker.ack(name, candidate, version, entry.at);
                }
            }
            // Its answers stay true.
            EntryContent::CandidateGone(name, candidate) => {
                balance.candidate_gone(name, candidate);
            }
            EntryContent::Event(_) | EntryContent::Note(_) => {}
        }
    }
    let mut moves = balance.finish();
    let leases = checkers.into_iter().map(|(lease, checker)| {
        let trace = traces.remove(lease).unwrap_or_default();
        let mut lease_verdict = leadership::check(
            lease,
            history.trace_coverage(),
            participants,
            &trace,
            checker.finish(),
        );
        if let Some(of_group) = moves.remove(lease) {
            of_group.join(&mut lease_verdict);
        }
        (lease.clone(), lease_verdict)
    });
    Verdict {
        leases: leases.collect(),
    }
}

#[cfg(test)]
mod tests;
