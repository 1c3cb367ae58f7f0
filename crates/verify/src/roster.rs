//! Who takes part, and what a judge may take for granted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_protocol::{LeaseKey, ResourceVersion};

/// What a judge has to know besides the history.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Who stands or holds under which name, lease by lease. Leases that are not named here are not judged.
    members: BTreeMap<LeaseKey, BTreeMap<String, Maker>>,
    /// Revisions that a stranger wrote: nobody is blamed for them, and S1 is excused after some of them.
    foreign: BTreeSet<ResourceVersion>,
    /// How exact the times are, and how long what may last.
    pub limits: Limits,
}

/// Whose code a candidate or a plain holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    /// This repository's.
    Ours,
    /// Unmodified client-go, also inside Kubernetes' own components.
    ClientGo,
}

/// The bounds of what can be told from a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// `W_max`, which counts for a record without a duration. 15 s, as `--max-lease-duration`.
    pub longest_lease: Duration,
    /// How far the clocks of those who write may be apart; `None` where nothing is known, and the times that two of
    /// them wrote are then never compared. 20 ms, for the clocks of one machine.
    pub clocks: Option<Duration>,
    /// How much later than the elector whoever recorded may have seen a revision. 1 s.
    pub sight: Duration,
    /// How long an answer counts without a question. 5 s (R15).
    pub fresh: Duration,
}

// === impl Roster ===

impl Roster {
    /// A roster without members.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Enters who stands for this lease, or holds it, under this name.
    pub fn enrol(&mut self, lease: LeaseKey, name: impl Into<String>, maker: Maker) {
        self.members
            .entry(lease)
            .or_default()
            .insert(name.into(), maker);
    }

    /// Enters a revision that a stranger wrote.
    pub fn foreign(&mut self, version: ResourceVersion) {
        self.foreign.insert(version);
    }

    /// Whether a stranger wrote this revision.
    pub(crate) fn is_foreign(&self, version: ResourceVersion) -> bool {
        self.foreign.contains(&version)
    }

    /// The leases that are judged.
    pub fn leases(&self) -> impl Iterator<Item = &LeaseKey> {
        self.members.keys()
    }

    /// Whose code this is.
    pub fn maker(&self, lease: &LeaseKey, name: &str) -> Option<Maker> {
        self.members.get(lease)?.get(name).copied()
    }

    /// The leases that this name is about.
    pub(crate) fn leases_of(&self, name: &str) -> Vec<&LeaseKey> {
        let about = self
            .members
            .iter()
            .filter(|(_, members)| members.contains_key(name));
        about.map(|(lease, _)| lease).collect()
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            longest_lease: Duration::from_secs(15),
            clocks: Some(Duration::from_millis(20)),
            sight: Duration::from_secs(1),
            fresh: Duration::from_secs(5),
        }
    }
}
