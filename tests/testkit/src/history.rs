//! The changes of a lease and its candidates, each by the name of what it is in the protocol.

use std::collections::BTreeMap;

use elector_apiserver::{ChangeKind, ObjectChange};
use serde_json::Value;

/// A name for each change. A Lease that is created, or changed while it has no holder, has none.
pub(crate) fn named(changes: Vec<ObjectChange>) -> Vec<String> {
    let mut before: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut names = Vec::new();
    for change in changes {
        let name = change.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        let key = (change.resource.clone(), name.to_owned());
        let (kind, new) = (change.kind, change.object.clone());
        let old = before.insert(key, change.object);
        if change.resource.starts_with("leases.") {
            names.extend(of_lease(kind, old.as_ref(), &new));
        } else if change.resource.starts_with("leasecandidates.") {
            names.push(of_candidate(kind, old.as_ref(), &new).to_owned());
        }
    }
    names
}

fn of_lease(kind: ChangeKind, old: Option<&Value>, new: &Value) -> Option<String> {
    let spec = |object: &Value, field: &str| object["spec"][field].clone();
    let holder = |object: &Value| {
        spec(object, "holderIdentity")
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    let term = |object: &Value| spec(object, "leaseTransitions").as_i64().unwrap_or(0);
    let old = match (kind, old) {
        (ChangeKind::Deleted, _) => return Some("delete lease".to_owned()),
        (ChangeKind::Added, _) | (_, None) => return None,
        (ChangeKind::Modified, Some(old)) => old,
    };
    if holder(new).is_empty() {
        return (!holder(old).is_empty()).then(|| "release".to_owned());
    }
    Some(if term(old) != term(new) {
        format!("grant {}", holder(new))
    } else if spec(old, "renewTime") == spec(new, "renewTime") {
        "prefer".to_owned()
    } else if spec(old, "acquireTime") == spec(old, "renewTime") {
        "accept".to_owned()
    } else {
        "renew".to_owned()
    })
}

fn of_candidate(kind: ChangeKind, old: Option<&Value>, new: &Value) -> &'static str {
    match (kind, old) {
        (ChangeKind::Added, _) => "register",
        (ChangeKind::Deleted, _) => "withdraw",
        (ChangeKind::Modified, Some(old)) if old["spec"]["pingTime"] != new["spec"]["pingTime"] => {
            "ping"
        }
        (ChangeKind::Modified, _) => "acknowledge",
    }
}
