//! Who believed when, by what the candidates say.

use elector_protocol::{LeaseKey, Timestamp, Token};

use crate::entry::{Entry, EventKind, What};
use crate::roster::Roster;

/// From one instant to another, one process believed that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Who.
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

/// Who believed when, in the order of the beginnings.
pub fn beliefs(entries: &[Entry]) -> Vec<Belief> {
    let mut beliefs: Vec<Belief> = Vec::new();
    for entry in entries {
        let What::Event(event) = &entry.what else {
            continue;
        };
        let named = |belief: &&mut Belief| {
            let same = event.lease.is_none() || belief.lease == event.lease;
            belief.name == event.name && same
        };
        match event.kind {
            EventKind::Start => {
                if let Some(belief) = beliefs.iter_mut().rfind(named)
                    && belief.to.is_none()
                {
                    belief.restart = belief.restart.or(Some(entry.at));
                }
            }
            EventKind::Leading => beliefs.push(Belief {
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
                if let Some(belief) = beliefs.iter_mut().rfind(named)
                    && (belief.to.is_none() || kind == EventKind::WorkStopped)
                {
                    if kind == EventKind::Lost {
                        belief.lost = Some(entry.at);
                    }
                    belief.to = Some(entry.at);
                }
            }
        }
    }
    beliefs.sort_by_key(|belief| belief.from);
    beliefs
}

// === impl Belief ===

impl Belief {
    /// Whether it is about this lease.
    pub(crate) fn is_about(&self, lease: &LeaseKey, roster: &Roster) -> bool {
        match &self.lease {
            Some(said) => said == lease,
            None => roster.leases_of(&self.name).contains(&lease),
        }
    }
}
