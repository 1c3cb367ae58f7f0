//! The members of groups, by their candidates.

use std::collections::{BTreeMap, BTreeSet};

use elector_api::{LeaseCandidate, annotation};
use elector_protocol::{Identity, LeaseKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The candidates by namespace and name. That one is deleted changes nothing about what it was.
#[derive(Debug, Default)]
pub(super) struct GroupMembers(BTreeMap<(String, String), MemberOffer>);

/// The words of a candidate that say which member it belongs to, and all that a strategy may look at.
#[derive(Debug)]
pub(super) struct MemberOffer {
    lease: LeaseKey,
    group: Option<String>,
    /// The member, a process.
    pub(super) member: Option<String>,
    /// True where an operator may want it not to lead.
    pub(super) stands_down: bool,
    /// Versions, strategies and priority.
    pub(super) offer: [String; 5],
    /// True while the object is there.
    stands: bool,
}

/// The label of a group's Leases and candidates: its name.
const GROUP: &str = "elector.dev/group";
/// The annotation of a candidate: its member.
const MEMBER: &str = "elector.dev/member";

// === impl GroupMembers ===

impl GroupMembers {
    /// A candidate was created or changed.
    pub(super) fn record(&mut self, name: &str, candidate: &LeaseCandidate) {
        let key = key(name, candidate);
        self.0.insert(key, MemberOffer::of(candidate));
    }

    /// A candidate was deleted.
    pub(super) fn remove(&mut self, name: &str, candidate: &LeaseCandidate) {
        if let Some(offer) = self.0.get_mut(&key(name, candidate)) {
            offer.stands = false;
        }
    }

    /// The offer of a candidate of this name.
    pub(super) fn offer(&self, namespace: &str, name: &Identity) -> Option<&MemberOffer> {
        let key = (namespace.to_owned(), name.as_str().to_owned());
        self.0.get(&key)
    }

    /// The leases that candidates of a group ever named.
    pub(super) fn parts_of<'a>(
        &'a self,
        namespace: &'a str,
        group: &'a str,
    ) -> impl Iterator<Item = &'a LeaseKey> {
        self.of_group(namespace, group).map(|offer| &offer.lease)
    }

    /// The members of a group, where they do not all stand for the same parts.
    pub(super) fn standing_unlike<'a>(
        &'a self,
        namespace: &'a str,
        group: &'a str,
    ) -> Option<Vec<&'a str>> {
        let mut parts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for offer in self.of_group(namespace, group).filter(|offer| offer.stands) {
            if let Some(member) = &offer.member {
                parts.entry(member).or_default().insert(&offer.lease.name);
            }
        }
        let mut sets = parts.values();
        let first = sets.next();
        let alike = sets.all(|set| Some(set) == first);
        (!alike).then(|| parts.into_keys().collect())
    }

    fn of_group<'a>(
        &'a self,
        namespace: &'a str,
        group: &'a str,
    ) -> impl Iterator<Item = &'a MemberOffer> {
        self.0.values().filter(move |offer| {
            offer.group.as_deref() == Some(group) && &*offer.lease.namespace == namespace
        })
    }
}

// === impl MemberOffer ===

impl MemberOffer {
    fn of(candidate: &LeaseCandidate) -> Self {
        let (metadata, spec) = (&candidate.metadata, &candidate.spec);
        let said = |name: &str| {
            let annotations = metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(name)).cloned()
        };
        Self {
            lease: candidate.lease_key(),
            group: group_of(metadata),
            member: said(MEMBER),
            stands_down: said(annotation::STAND_DOWN).is_some(),
            offer: [
                spec.binary_version.clone(),
                spec.emulation_version.clone(),
                spec.strategy.clone(),
                spec.preferred_strategies.join(" "),
                said(annotation::PRIORITY).unwrap_or_default(),
            ],
            stands: true,
        }
    }
}

/// The group of an object, by its label.
pub(super) fn group_of(metadata: &ObjectMeta) -> Option<String> {
    let name = metadata.labels.as_ref()?.get(GROUP)?;
    (!name.is_empty()).then(|| name.clone())
}

fn key(name: &str, candidate: &LeaseCandidate) -> (String, String) {
    let namespace = candidate.metadata.namespace.clone().unwrap_or_default();
    (namespace, name.to_owned())
}
