//! Judges a journal: did two of our candidates believe at once, and was each change of a Lease a legal move?

mod trial;

use std::collections::BTreeMap;
use std::time::Duration;

use elector_protocol::{Identity, Timestamp};

use self::trial::Trial;
use crate::rig::journal::{Entry, EventKind, What, between};

/// What a judge has to know besides the journal.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Who stands or holds under which name.
    pub members: BTreeMap<String, Member>,
    /// Revisions that the test itself wrote: nobody is blamed for them.
    pub written_by_test: Vec<String>,
    /// How long a record without a duration must be left alone, and how long a Lease must be absent: `W_max`.
    pub longest_lease: Duration,
}

/// A candidate, or a plain holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose code it is.
    pub maker: Maker,
    /// The lease that it is about.
    pub lease: String,
}

/// Whose code a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    /// This repository's.
    Ours,
    /// Unmodified client-go, also inside Kubernetes' own components.
    ClientGo,
}

/// From one instant to another, one process believed that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Who.
    pub name: String,
    /// When its work began.
    pub from: Timestamp,
    /// When its work had ended, or it was killed; where neither is known, when it said that it lost. `None` while it
    /// leads.
    pub to: Option<Timestamp>,
}

/// Everything that is wrong with this journal, one line each.
pub fn judge(entries: &[Entry], roster: &Roster) -> Vec<String> {
    let mut faults = overlaps(&beliefs(entries), roster);
    // The two kinds of objects come by different watches; their versions tell what came first.
    let mut objects: Vec<(u64, &Entry)> = entries
        .iter()
        .filter_map(|entry| Some((version(&entry.what)?, entry)))
        .collect();
    objects.sort_by_key(|(version, _)| *version);
    let mut trial = Trial::default();
    // A lease that nobody here is about is somebody else's affair.
    let judged = |name: &String| roster.members.values().any(|member| member.lease == *name);
    for (_, entry) in objects {
        match &entry.what {
            What::Lease(name, lease) if judged(name) => {
                trial.revision(name, lease, entry.at, roster);
            }
            What::LeaseGone(name, _) => {
                trial.gone(name);
            }
            What::Candidate(name, candidate) => trial.answer(name, candidate, entry.at),
            // What it answered stays true.
            What::Lease(..) | What::CandidateGone(..) | What::Event(_) | What::Note(_) => {}
        }
    }
    faults.append(&mut trial.into_faults());
    faults.append(&mut unfounded(entries, roster));
    faults
}

/// The resourceVersion of what happened to an object.
fn version(what: &What) -> Option<u64> {
    let metadata = match what {
        What::Lease(_, lease) | What::LeaseGone(_, lease) => &lease.metadata,
        What::Candidate(_, candidate) | What::CandidateGone(_, candidate) => &candidate.metadata,
        What::Event(_) | What::Note(_) => return None,
    };
    metadata.resource_version.as_ref()?.parse().ok()
}

/// S2: one of ours leads only after its own write on a record that names it, which carries the token.
fn unfounded(entries: &[Entry], roster: &Roster) -> Vec<String> {
    let accepted = |name: &str, lease: &str, at: Timestamp| {
        entries.iter().any(|entry| match &entry.what {
            What::Lease(revised, revision) if revised == lease => {
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
    let mut faults = Vec::new();
    for belief in beliefs(entries) {
        let Some(member) = roster.members.get(&belief.name) else {
            continue;
        };
        if member.maker == Maker::Ours && !accepted(&belief.name, &member.lease, belief.from) {
            faults.push(format!(
                "{} led in {} without having accepted (S2)",
                belief.name, member.lease
            ));
        }
    }
    faults
}

/// Who believed when, in the order of the beginnings.
pub fn beliefs(entries: &[Entry]) -> Vec<Belief> {
    let mut beliefs: Vec<Belief> = Vec::new();
    for entry in entries {
        let What::Event(event) = &entry.what else {
            continue;
        };
        match event.kind {
            EventKind::Start => {}
            EventKind::Leading => {
                let name = event.name.clone();
                beliefs.push(Belief {
                    name,
                    from: entry.at,
                    to: None,
                });
            }
            kind @ (EventKind::WorkStopped | EventKind::Lost | EventKind::Killed) => {
                // After a loss by deadline the work may end later; it is the work that must not overlap.
                let named = |belief: &&mut Belief| belief.name == event.name;
                if let Some(belief) = beliefs.iter_mut().rfind(named)
                    && (belief.to.is_none() || kind == EventKind::WorkStopped)
                {
                    belief.to = Some(entry.at);
                }
            }
        }
    }
    beliefs.sort_by_key(|belief| belief.from);
    beliefs
}

fn overlaps(beliefs: &[Belief], roster: &Roster) -> Vec<String> {
    let lease = |belief: &Belief| {
        let member = roster.members.get(&belief.name)?;
        (member.maker == Maker::Ours).then_some(&member.lease)
    };
    let ours: Vec<_> = beliefs
        .iter()
        .filter_map(|belief| Some((belief, lease(belief)?)))
        .collect();
    let mut faults = Vec::new();
    for (index, (early, lease)) in ours.iter().enumerate() {
        for (late, _) in ours[index + 1..].iter().filter(|(_, other)| other == lease) {
            if early.to.is_none_or(|end| end > late.from) {
                let longer = early.to.map_or_else(
                    || "and leads on".to_owned(),
                    |end| format!("for {:.3} s longer", between(late.from, end).as_secs_f64()),
                );
                faults.push(format!(
                    "two believed at once in {lease}: {} led {longer} when {} began",
                    early.name, late.name
                ));
            }
        }
    }
    faults
}

// === impl Roster ===

impl Roster {
    fn maker(&self, holder: &Identity) -> Option<Maker> {
        Some(self.members.get(holder.as_str())?.maker)
    }
}

#[cfg(test)]
mod tests;
