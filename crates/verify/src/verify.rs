//! The whole trial: every Lease of a history, and what the candidates say.

use std::collections::BTreeMap;

use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};

use crate::belief::{Belief, about, beliefs, overlaps};
use crate::entry::{Entry, What};
use crate::history::History;
use crate::roster::{Maker, Roster};
use crate::trial::Trial;
use crate::verdict::{Case, Finding, Invariant, Level, Verdict};

/// Judges each lease of the roster.
pub fn verify(history: &History, roster: &Roster) -> Verdict {
    let entries = history.entries();
    let beliefs = beliefs(entries);
    let mut trials: BTreeMap<&LeaseKey, Trial<'_>> = roster
        .leases()
        .map(|lease| (lease, Trial::new(lease, roster, history.beginning())))
        .collect();
    // The two kinds of objects come by different watches; their versions tell what came first.
    let mut objects: Vec<(ResourceVersion, &Entry)> = entries
        .iter()
        .filter_map(|entry| Some((entry.what.version()?, entry)))
        .collect();
    objects.sort_by_key(|(version, _)| *version);
    for (version, entry) in objects {
        match &entry.what {
            What::Lease(_, lease) => {
                if let Some(trial) = trials.get_mut(&lease.key()) {
                    trial.revision(lease, version, entry.at);
                }
            }
            What::LeaseGone(_, lease) => {
                if let Some(trial) = trials.get_mut(&lease.key()) {
                    trial.gone();
                }
            }
            What::Candidate(name, candidate) => {
                let namespace = candidate.metadata.namespace.as_deref().unwrap_or_default();
                let near = |(lease, _): &(&&LeaseKey, _)| &*lease.namespace == namespace;
                for (_, trial) in trials.iter_mut().filter(near) {
                    trial.answer(name, candidate, entry.at);
                }
            }
            // What it answered stays true.
            What::CandidateGone(..) | What::Event(_) | What::Note(_) => {}
        }
    }
    let judged = trials.into_iter().map(|(lease, trial)| {
        let (mut findings, extent) = trial.finish();
        let about = about(&beliefs, lease, roster);
        findings.append(&mut overlaps(lease, &about));
        findings.append(&mut unfounded(entries, lease, &about));
        findings.sort_by_key(|finding| (finding.at, finding.after));
        (lease.clone(), Case { findings, extent })
    });
    Verdict {
        cases: judged.collect(),
    }
}

/// S2: one of ours leads only after its own write on a record that names it, which carries the token.
fn unfounded(entries: &[Entry], lease: &LeaseKey, beliefs: &[(&Belief, Maker)]) -> Vec<Finding> {
    let accepted = |name: &str, at: Timestamp| {
        entries.iter().any(|entry| match &entry.what {
            What::Lease(_, revision) if revision.key() == *lease => {
                revision.record().is_ok_and(|record| {
                    let holds = record
                        .holder
                        .as_ref()
                        .is_some_and(|holder| holder.as_str() == name);
                    holds
                        && record.has_token()
                        && record.renew_time.is_some_and(|renewed| renewed <= at)
                })
            }
            _ => false,
        })
    };
    let mut findings = Vec::new();
    for (belief, maker) in beliefs {
        if *maker == Maker::Ours && !accepted(&belief.name, belief.from) {
            findings.push(Finding {
                invariant: Invariant::S2,
                lease: lease.clone(),
                level: Level::Promised,
                at: belief.from,
                before: None,
                after: None,
                sentence: format!("{} led without having accepted", belief.name),
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests;
