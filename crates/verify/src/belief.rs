//! Who believed when, by what the candidates say, and who believed too early or too long.

use elector_protocol::{LeaseKey, Timestamp};

use crate::entry::{Entry, EventKind, What, between};
use crate::roster::{Maker, Roster};
use crate::verdict::{Finding, Invariant, Level};

/// From one instant to another, one process believed that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Who.
    pub name: String,
    /// The lease that it is about, where the candidate says so.
    pub lease: Option<LeaseKey>,
    /// When its work began.
    pub from: Timestamp,
    /// When its work had ended, or it was killed; where neither is known, when it said that it lost. `None` while it
    /// leads.
    pub to: Option<Timestamp>,
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
            EventKind::Leading => beliefs.push(Belief {
                name: event.name.clone(),
                lease: event.lease.clone(),
                from: entry.at,
                to: None,
            }),
            kind @ (EventKind::WorkStopped | EventKind::Lost | EventKind::Killed) => {
                // After a loss by deadline the work may end later; it is the work that must not overlap.
                let named = |belief: &&mut Belief| {
                    belief.name == event.name
                        && (event.lease.is_none() || belief.lease == event.lease)
                };
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

/// The beliefs that are about this lease.
pub(crate) fn about<'b>(
    beliefs: &'b [Belief],
    lease: &LeaseKey,
    roster: &Roster,
) -> Vec<(&'b Belief, Maker)> {
    let about = beliefs.iter().filter_map(|belief| {
        let meant = match &belief.lease {
            Some(said) => said == lease,
            None => roster.leases_of(&belief.name).contains(&lease),
        };
        meant.then_some((belief, roster.maker(lease, &belief.name)?))
    });
    about.collect()
}

/// S1: who began while another still led.
pub(crate) fn overlaps(lease: &LeaseKey, beliefs: &[(&Belief, Maker)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, (early, maker)) in beliefs.iter().enumerate() {
        for (late, other) in &beliefs[index + 1..] {
            if early.to.is_some_and(|end| end <= late.from) {
                continue;
            }
            let longer = early.to.map_or_else(
                || "and leads on".to_owned(),
                |end| format!("for {:.3} s longer", between(late.from, end).as_secs_f64()),
            );
            let level = if [*maker, *other] == [Maker::Ours; 2] {
                Level::Promised
            } else {
                Level::AsClientGo
            };
            findings.push(Finding {
                invariant: Invariant::S1,
                lease: lease.clone(),
                level,
                at: late.from,
                before: None,
                after: None,
                sentence: format!(
                    "two believed at once: {} led {longer} when {} began",
                    early.name, late.name
                ),
            });
        }
    }
    findings
}
