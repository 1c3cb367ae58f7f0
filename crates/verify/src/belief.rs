//! Who believed when, by what the candidates say.

use std::collections::{BTreeMap, BTreeSet};

use elector_protocol::{LeaseKey, Timestamp, Token};

use crate::entry::{EntryContent, EventKind, HistoryEntry};
use crate::participants::{Implementation, Participants};

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

/// What is said about the work on one lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct Voice<'a> {
    /// Who believed when, and whose code that is.
    pub(crate) beliefs: Vec<(&'a Belief, Implementation)>,
    /// Who says anything at all.
    pub(crate) speakers: BTreeSet<&'a str>,
}

/// Who believed when, in the order of the beginnings.
pub fn beliefs(entries: &[HistoryEntry]) -> Vec<Belief> {
    let mut beliefs: Vec<Belief> = Vec::new();
    for entry in entries {
        let EntryContent::Event(event) = &entry.content else {
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

// === impl Voice ===

impl<'a> Voice<'a> {
    /// What is said about each lease. An event that names no lease is about each lease that its process is a
    /// member of.
    pub(crate) fn of_each(
        entries: &'a [HistoryEntry],
        beliefs: &'a [Belief],
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
        let mut voices: BTreeMap<&LeaseKey, Self> = BTreeMap::new();
        for belief in beliefs {
            for lease in about(belief.lease.as_ref(), &belief.name) {
                if let Some(implementation) = participants.implementation(lease, &belief.name) {
                    let voice = voices.entry(lease).or_default();
                    voice.beliefs.push((belief, implementation));
                }
            }
        }
        for entry in entries {
            // A kill is told by somebody else.
            if let EntryContent::Event(event) = &entry.content
                && event.kind != EventKind::Killed
            {
                for lease in about(event.lease.as_ref(), &event.name) {
                    voices
                        .entry(lease)
                        .or_default()
                        .speakers
                        .insert(&event.name);
                }
            }
        }
        voices
    }
}
