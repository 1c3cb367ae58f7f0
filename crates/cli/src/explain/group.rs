//! Groups of leases: which member each part is assigned to, and how the parts are spread.

use std::collections::BTreeMap;
use std::sync::Arc;

use elector_api::GROUP_LABEL;
use elector_protocol::LeaseGroup;
use elector_protocol::elector::Objects;
use serde::Serialize;

/// The groups among some leases, by namespace and name.
pub(crate) type GroupsByName = BTreeMap<(Arc<str>, Arc<str>), LeaseGroup>;

/// The group of a lease, and its place in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupRow {
    pub(crate) name: String,
    /// The candidate that the lease is assigned to; empty where none can lead it.
    pub(crate) assigned: String,
}

// === impl GroupRow ===

impl GroupRow {
    /// That of one lease, where it is a part of a group, once the groups are assigned.
    pub(crate) fn of(election: &Objects) -> Option<Self> {
        let assigned = election.assigned.as_ref();
        Some(Self {
            name: election.group.as_ref()?.to_string(),
            assigned: assigned.map_or_else(String::new, |name| name.as_str().to_owned()),
        })
    }

    /// The label, the name of the group, and what that says of the lease.
    pub(crate) fn line(&self) -> [String; 3] {
        let what = match self.assigned.as_str() {
            "" => "no candidate can lead this part of the group".to_owned(),
            assigned => format!("this part of the group is assigned to {assigned}"),
        };
        [GROUP_LABEL.to_owned(), self.name.clone(), what]
    }
}

/// A table of the groups that `shows` says yes to, by namespace and name: what is led, what is to move, and the parts of
/// each member.
pub(crate) fn group_lines(
    groups: &GroupsByName,
    namespaces: bool,
    shows: impl Fn(&str, &str) -> bool,
) -> Vec<Vec<String>> {
    let header = ["GROUP", "PARTS", "LED", "TO MOVE", "MEMBERS"].map(str::to_owned);
    let mut lines = Vec::new();
    for ((namespace, name), group) in groups {
        if !shows(namespace, name) {
            continue;
        }
        let counts = group.counts();
        let members = group.members().map(|(member, is_there, _)| {
            let led = group
                .parts()
                .filter(|(_, part, _)| part.holder.as_ref() == Some(member));
            let away = if is_there { "" } else { " (away)" };
            format!("{member}={}{away}", led.count())
        });
        let members: Vec<_> = members.collect();
        let cells = [
            name.to_string(),
            counts.parts.to_string(),
            (counts.parts - counts.vacant).to_string(),
            counts.to_move.to_string(),
            members.join(" "),
        ];
        lines.push((namespace.to_string(), cells));
    }
    if lines.is_empty() {
        return Vec::new();
    }
    lines.insert(0, ("NAMESPACE".to_owned(), header));
    let row = |(namespace, cells): (String, [String; 5])| {
        let first = [namespace].into_iter().filter(|_| namespaces);
        first.chain(cells).collect()
    };
    lines.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_no_candidate_can_lead_says_so() {
        let row = |assigned: &str| GroupRow {
            name: "web".to_owned(),
            assigned: assigned.to_owned(),
        };
        let texts = ["", "a.web-0"].map(|assigned| row(assigned).line()[2].clone());
        assert_eq!(
            texts,
            [
                "no candidate can lead this part of the group",
                "this part of the group is assigned to a.web-0"
            ]
        );
    }
}
