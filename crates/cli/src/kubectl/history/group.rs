//! The past of a group of leases: its parts, and the members that led them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::bail;
use elector_api::Lease;
use elector_protocol::{LeaseKey, Timestamp};
use elector_runtime::Cluster;
use elector_verify::EntryContent;

use super::past::{LeasePast, read_recording};
use crate::kubectl::pages::list_all;

/// The past of each lease with the label of a group, by their names.
pub(super) struct GroupPast {
    /// The namespace and the name of the group.
    pub(super) name: String,
    pub(super) parts: Vec<LeasePast>,
}

/// The label of the Leases of a group: its name.
const GROUP: &str = "elector.dev/group";

// === impl GroupPast ===

impl GroupPast {
    /// The reports of electors in Events, and the Leases.
    pub(super) async fn in_cluster(
        cluster: &Cluster,
        namespace: &str,
        group: &str,
    ) -> anyhow::Result<Self> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let query = format!("&labelSelector={}%3D{group}", GROUP.replace('/', "%2F"));
        let resource = "leases.coordination.k8s.io";
        let leases: Vec<Lease> =
            list_all(cluster, resource, Some(namespace), &path, &query).await?;
        let mut parts = Vec::new();
        for lease in leases.iter().filter(|lease| is_of(group, lease)) {
            parts.push(LeasePast::with_lease(cluster, &lease.key(), Some(lease)).await?);
        }
        Self::of(namespace, group, parts, "no Lease on the server")
    }

    /// The past in a recorded watch, of each Lease that had the label in any revision.
    pub(super) fn recorded(path: &Path, namespace: &str, group: &str) -> anyhow::Result<Self> {
        let history = read_recording(path)?;
        let leases = history.entries().iter().filter_map(|entry| {
            let EntryContent::Lease(_, lease) = &entry.content else {
                return None;
            };
            let key = lease.key();
            (is_of(group, lease) && &*key.namespace == namespace).then_some(key)
        });
        let leases: BTreeSet<LeaseKey> = leases.collect();
        let parts = leases
            .iter()
            .map(|lease| LeasePast::of_history(&history, lease));
        Self::of(
            namespace,
            group,
            parts.collect(),
            "no Lease in the recording",
        )
    }

    fn of(
        namespace: &str,
        group: &str,
        mut parts: Vec<LeasePast>,
        none: &str,
    ) -> anyhow::Result<Self> {
        parts.sort_by(|one, other| one.lease.name.cmp(&other.lease.name));
        let past = Self {
            name: format!("{namespace}/{group}"),
            parts,
        };
        if past.parts.is_empty() {
            bail!(
                "find anything about group {}: {none} has its label {GROUP}",
                past.name
            );
        }
        if past.from().is_none() {
            bail!(
                "find anything about group {}: no Event tells of its leases, and none has a holder",
                past.name
            );
        }
        Ok(past)
    }

    /// When the oldest change of a leader was that is known.
    pub(super) fn from(&self) -> Option<Timestamp> {
        let lines = self.parts.iter().flat_map(|part| &part.lines);
        lines
            .filter(|line| line.is_change)
            .map(|line| line.at)
            .min()
    }

    /// When it was last heard of; `None` for now.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.parts.iter().filter_map(|part| part.until).max()
    }

    /// The reach of this past, in words.
    pub(super) fn reach(&self, now: Timestamp) -> String {
        let oldest = self.parts.iter().filter(|part| !part.lines.is_empty());
        let oldest = oldest.min_by_key(|part| part.lines.first().map(|line| line.at));
        oldest.map_or_else(String::new, |part| part.reach(now))
    }

    /// All members that ever led a part, by name.
    pub(super) fn members(&self) -> Vec<&str> {
        let led = self.parts.iter().flat_map(|part| {
            let leaders = part.lines.iter().filter_map(|line| line.leader.as_deref());
            leaders.map(|leader| member_of(&part.lease, leader))
        });
        led.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The member that a leader is: candidates of members are named by the member and the lease.
pub(super) fn member_of<'a>(lease: &LeaseKey, leader: &'a str) -> &'a str {
    let member = leader
        .strip_suffix(&*lease.name)
        .and_then(|rest| rest.strip_suffix('.'));
    member.filter(|member| !member.is_empty()).unwrap_or(leader)
}

/// A group's name as it is given on the command line: it has to stand in a label.
pub(super) fn group_name(text: &str) -> Result<String, String> {
    let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    let legal = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
    if text.len() <= 63
        && text.chars().all(legal)
        && ends(text.chars().next())
        && ends(text.chars().last())
    {
        return Ok(text.to_owned());
    }
    Err(
        "the name of a group is the value of a label: at most 63 letters, digits, '-', '_' and '.', with a letter or a \
         digit at both ends"
            .to_owned(),
    )
}

fn is_of(group: &str, lease: &Lease) -> bool {
    let labels = lease.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(GROUP))
        .is_some_and(|name| name == group)
}
