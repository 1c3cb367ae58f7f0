//! The labels and the owner that a holder wants on its Lease.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::lease::Lease;

/// The labels and the owner that a holder wants on its Lease. They travel with the writes that it makes anyway, and what
/// others have put there stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaseMetadata {
    /// Labels, each in place of one of its key.
    pub labels: BTreeMap<String, String>,
    /// An owner beside those that are there.
    pub owner: Option<OwnerReference>,
}

// === impl LeaseMetadata ===

impl LeaseMetadata {
    /// True if nothing of it would change that Lease.
    pub fn is_on(&self, lease: &Lease) -> bool {
        let labels = lease.metadata.labels.as_ref();
        let has = |(key, value): (&String, &String)| {
            labels.and_then(|labels| labels.get(key)) == Some(value)
        };
        let missing = self.owner.as_ref().filter(|owner| !is_owned(lease, owner));
        self.labels.iter().all(has) && missing.is_none()
    }

    /// Puts it on that Lease. An owner of the same uid is left as it is.
    pub fn put_on(&self, lease: &mut Lease) {
        if !self.labels.is_empty() {
            let labels = lease.metadata.labels.get_or_insert_default();
            labels.extend(self.labels.clone());
        }
        if let Some(owner) = self.owner.clone().filter(|owner| !is_owned(lease, owner)) {
            let owners = lease.metadata.owner_references.get_or_insert_default();
            owners.push(owner);
        }
    }
}

fn is_owned(lease: &Lease, by: &OwnerReference) -> bool {
    let mut owners = lease.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == by.uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_owners_of_others_stay_and_nothing_is_put_twice() {
        let owner = |name: &str| {
            let owner =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name});
            serde_json::from_value::<OwnerReference>(owner).unwrap()
        };
        let text = |text: &str| text.to_owned();
        let wanted = LeaseMetadata {
            labels: [(text("team"), text("web")), (text("tier"), text("1"))].into(),
            owner: Some(owner("web")),
        };
        let mut lease = Lease::from_value(json!({
            "metadata": {"labels": {"team": "other", "theirs": "kept"}, "ownerReferences": [owner("chart")]},
        }));
        assert!(!wanted.is_on(&lease));
        for _ in 0..2 {
            wanted.put_on(&mut lease);
            assert!(wanted.is_on(&lease));
            assert_eq!(
                serde_json::to_value(&lease.metadata).unwrap(),
                json!({
                    "labels": {"team": "web", "theirs": "kept", "tier": "1"},
                    "ownerReferences": [owner("chart"), owner("web")],
                })
            );
        }
        let (without_label, without_owner) = (&mut lease.clone(), &mut lease);
        without_label.metadata.labels = None;
        without_owner.metadata.owner_references = None;
        assert!(!wanted.is_on(without_label) && !wanted.is_on(without_owner));
        let nothing = LeaseMetadata::default();
        nothing.put_on(without_owner);
        assert!(nothing.is_on(without_owner) && without_owner.metadata.owner_references.is_none());
    }
}
