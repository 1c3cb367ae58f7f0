//! The participants of a history.

use std::collections::{BTreeMap, BTreeSet};

use elector_api::{LeaseCandidate, annotation};
use elector_protocol::{LeaseKey, ResourceVersion};

use crate::entry::EntryContent;
use crate::history::History;
use crate::limits::Limits;
use crate::placeholder;
use crate::reading::has_token;
use crate::recorded_writer::RecordedWriter;

/// The input of a check besides the history.
#[derive(Clone, Debug, Default)]
pub struct Participants {
    /// The candidates and holders of each lease by name. Other leases are not judged.
    members: BTreeMap<LeaseKey, BTreeMap<String, Implementation>>,
    /// The locks of electors. All other leases are for work.
    locks: BTreeMap<LeaseKey, LeasePurpose>,
    /// Revisions that a stranger wrote: they break no rule, and S1 is excused after some of them.
    foreign: BTreeSet<ResourceVersion>,
    /// The writers of revisions, where the recorder knows them.
    writers: BTreeMap<ResourceVersion, RecordedWriter>,
    /// The exactness of the times, and the longest spans.
    pub limits: Limits,
}

/// The code that a candidate or a plain holder runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Implementation {
    /// This repository's.
    Elector,
    /// Unmodified client-go, also inside Kubernetes' own components.
    ClientGo,
}

/// The purpose of a lease, which says how long those that acquire it have to wait (R18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LeasePurpose {
    /// Its holder does work that no other process may do at the same time.
    #[default]
    Work,
    /// The electors choose the active one of them by it. An unheld one is acquired at once, also after a deletion,
    /// since two active electors do no harm (R17).
    ElectorLock,
    /// The lock of the elector that is built into Kubernetes. Electors displace live holders of it.
    BuiltinLock,
}

// === impl Participants ===

impl Participants {
    /// Without members.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Adds a candidate for this lease or a holder of it.
    pub fn add(
        &mut self,
        lease: LeaseKey,
        name: impl Into<String>,
        implementation: Implementation,
    ) {
        self.members
            .entry(lease)
            .or_default()
            .insert(name.into(), implementation);
    }

    /// Says what a lease is for, where it is a lock of electors.
    pub fn add_lock(&mut self, lease: LeaseKey, purpose: LeasePurpose) {
        self.locks.insert(lease, purpose);
    }

    /// The purpose of this lease.
    pub fn purpose(&self, lease: &LeaseKey) -> LeasePurpose {
        self.locks.get(lease).copied().unwrap_or_default()
    }

    /// Adds a revision that a stranger wrote.
    pub fn add_foreign(&mut self, version: ResourceVersion) {
        self.foreign.insert(version);
    }

    /// Adds the writer of a revision, which is then judged by what that process knew.
    pub fn add_writer(&mut self, version: ResourceVersion, writer: RecordedWriter) {
        self.writers.insert(version, writer);
    }

    /// The writer of this revision, where it is known.
    pub(crate) fn writer(&self, version: ResourceVersion) -> Option<&RecordedWriter> {
        self.writers.get(&version)
    }

    /// Keeps only the leases for which `wanted` says so.
    pub fn retain(&mut self, wanted: impl Fn(&LeaseKey) -> bool) {
        self.members.retain(|lease, _| wanted(lease));
    }

    /// True where a stranger wrote this revision.
    pub(crate) fn is_foreign(&self, version: ResourceVersion) -> bool {
        self.foreign.contains(&version)
    }

    /// The participants, by what the history shows: marked candidates and holders with a token are ours, all others
    /// client-go's. A lease that no candidate names and whose holders have no token is left out. The locks of electors
    /// are those with the usual names.
    #[must_use]
    pub fn deduce(history: &History, limits: Limits) -> Self {
        let mut participants = Self::new(limits);
        for (namespace, name, purpose) in LOCKS {
            participants.add_lock(LeaseKey::new(namespace, name), purpose);
        }
        let mut plain: Vec<(LeaseKey, String)> = Vec::new();
        for entry in history.entries() {
            match &entry.content {
                EntryContent::Candidate(name, candidate) => {
                    let lease = candidate.lease_key();
                    if is_marked(candidate) {
                        participants.add(lease, name.as_str(), Implementation::Elector);
                    } else if participants.implementation(&lease, name).is_none() {
                        participants.add(lease, name.as_str(), Implementation::ClientGo);
                    }
                }
                EntryContent::Lease(_, lease) => {
                    let Ok(record) = lease.record() else {
                        continue;
                    };
                    let Some(holder) = placeholder::holder(&record) else {
                        continue;
                    };
                    if has_token(&record) {
                        participants.add(lease.key(), holder.as_str(), Implementation::Elector);
                    } else {
                        plain.push((lease.key(), holder.as_str().to_owned()));
                    }
                }
                EntryContent::LeaseGone(..)
                | EntryContent::CandidateGone(..)
                | EntryContent::Event(_)
                | EntryContent::Note(_) => {}
            }
        }
        for (lease, holder) in plain {
            if let Some(members) = participants.members.get_mut(&lease) {
                members.entry(holder).or_insert(Implementation::ClientGo);
            }
        }
        participants
    }

    /// The leases that are judged.
    pub fn leases(&self) -> impl Iterator<Item = &LeaseKey> {
        self.members.keys()
    }

    /// The code that this participant runs.
    pub fn implementation(&self, lease: &LeaseKey, name: &str) -> Option<Implementation> {
        self.members.get(lease)?.get(name).copied()
    }

    /// Every member of every lease.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&LeaseKey, &str)> {
        self.members.iter().flat_map(|(lease, members)| {
            let names = members.keys().map(String::as_str);
            names.map(move |name| (lease, name))
        })
    }
}

/// The locks of electors under their usual names.
const LOCKS: [(&str, &str, LeasePurpose); 2] = [
    ("elector-system", "elector", LeasePurpose::ElectorLock),
    (
        "kube-system",
        "leader-election-controller",
        LeasePurpose::BuiltinLock,
    ),
];

/// True where a candidate says that it speaks our protocol.
fn is_marked(candidate: &LeaseCandidate) -> bool {
    let annotations = candidate.metadata.annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(annotation::PROTOCOL))
        .is_some_and(|version| version == annotation::PROTOCOL_VERSION)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read::RecordingReader;

    #[test]
    fn the_participants_show_in_the_history() {
        let metadata = |name: &str, annotations: serde_json::Value| json!({"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "1", "annotations": annotations});
        let candidate = |name, annotations| {
            json!({
                "kind": "LeaseCandidate", "apiVersion": "coordination.k8s.io/v1beta1",
                "metadata": metadata(name, annotations), "spec": {"leaseName": "web"},
            })
        };
        let lease = |name, holder: &str, annotations| {
            json!({
                "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                "metadata": metadata(name, annotations),
                "spec": {"holderIdentity": holder, "acquireTime": "2026-01-01T00:00:00Z"},
            })
        };
        let token = json!({"elector.dev/token": "1", "elector.dev/token-term": "0"});
        let mut unreadable = lease("unreadable", "with-a-token", token.clone());
        unreadable["spec"]["leaseDurationSeconds"] = "soon".into();
        let mut reader = RecordingReader::default();
        for document in [
            lease("web", "stranger", json!({})),
            candidate("ours", json!({"elector.dev/protocol": "1"})),
            candidate("of-the-future", json!({"elector.dev/protocol": "2"})),
            candidate("go", json!({})),
            lease("solo", "with-a-token", token.clone()),
            lease("solo", "elector.dev:reserved-from:x", token),
            lease("node", "kubelet", json!({})),
            unreadable,
        ] {
            reader.read("f", &document.to_string());
        }
        let mut participants = Participants::deduce(&reader.finish().0, Limits::default());
        let web = LeaseKey::new("ns", "web");
        let solo = LeaseKey::new("ns", "solo");
        assert_eq!(participants.leases().collect::<Vec<_>>(), [&solo, &web]);
        for (lease, name, implementation) in [
            (&web, "ours", Some(Implementation::Elector)),
            (&web, "of-the-future", Some(Implementation::ClientGo)),
            (&web, "go", Some(Implementation::ClientGo)),
            (&web, "stranger", Some(Implementation::ClientGo)),
            (&web, "with-a-token", None),
            (&solo, "with-a-token", Some(Implementation::Elector)),
            (&solo, "elector.dev:reserved-from:x", None),
        ] {
            let expected = implementation;
            assert_eq!(participants.implementation(lease, name), expected, "{name}");
        }
        participants.retain(|lease| *lease == solo);
        assert_eq!(participants.leases().collect::<Vec<_>>(), [&solo]);
    }
}
