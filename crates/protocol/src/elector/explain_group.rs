//! The groups of leases, assigned from the objects alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::elector::explain::{NOW, Objects, instant, replay};
use crate::elector::state::Settings;
use crate::group::LeaseGroup;
use crate::names::{Identity, LeaseKey};
use crate::time::Timestamp;

/// Says of each of these elections, for [`Explanation::of`](crate::elector::Explanation::of), to which candidate it is
/// assigned at `now`, and to which group it belongs, where it is a part of one; and returns the groups, by namespace and name.
///
/// Members have been there since their oldest candidate was created. What the processes of a Pod let expire is in no object.
pub fn assign_groups(
    elections: &mut BTreeMap<LeaseKey, Objects>,
    now: Timestamp,
    settings: &Settings,
) -> BTreeMap<(Arc<str>, Arc<str>), LeaseGroup> {
    let mut groups: BTreeMap<(Arc<str>, Arc<str>), LeaseGroup> = BTreeMap::new();
    let mut created: BTreeMap<(Arc<str>, Identity), Timestamp> = BTreeMap::new();
    for (key, objects) in elections.iter_mut() {
        let election = replay(objects, now);
        let membership = election.membership();
        let of_candidates = membership.map(|membership| Arc::clone(&membership.group));
        objects.group = objects.group.take().or(of_candidates);
        let Some(name) = &objects.group else {
            continue;
        };
        for candidate in &objects.candidates {
            let spec = candidate.offer().ok();
            if let Some(membership) = spec.and_then(|spec| spec.membership.as_ref()) {
                let member = (Arc::clone(&key.namespace), membership.member.clone());
                let since = created.entry(member).or_insert(candidate.created);
                *since = candidate.created.min(*since);
            }
        }
        let part = election.part(name, NOW, now, settings);
        let group = groups.entry((Arc::clone(&key.namespace), Arc::clone(name)));
        group.or_default().handle_part(NOW, &key.name, part);
    }
    for ((namespace, _), group) in &mut groups {
        let members: Vec<Identity> = group.members().map(|(name, _, _)| name.clone()).collect();
        for member in members {
            if let Some(since) = created.get(&(Arc::clone(namespace), member.clone())) {
                group.set_member_since(&member, instant(*since, now));
            }
        }
        for change in group.assign(NOW) {
            let key = LeaseKey::new(Arc::clone(namespace), change.part);
            if let Some(objects) = elections.get_mut(&key) {
                objects.assigned = change.candidate;
            }
        }
    }
    groups
}
