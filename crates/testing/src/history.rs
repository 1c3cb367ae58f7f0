//! The changes of a lease and its candidates, each by the name of what it is in the protocol.

use std::collections::BTreeMap;

use elector_api::Lease;
use elector_apiserver::{ChangeKind, ObjectChange};
use elector_protocol::Transition;
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
    let record = |object: &Value| Some(Lease::from_value(object.clone()).snapshot().ok()?.record);
    let after = match kind {
        ChangeKind::Deleted => return Some("delete lease".to_owned()),
        ChangeKind::Added => return None,
        ChangeKind::Modified => record(new)?,
    };
    let before = record(old?)?;
    Some(match Transition::between(Some(&before), Some(&after))? {
        Transition::Granted | Transition::HandedOver | Transition::Acquired => {
            format!("grant {}", after.holder?)
        }
        Transition::Resumed => "resume".to_owned(),
        Transition::Rejoined => "rejoin".to_owned(),
        Transition::Signalled => "prefer".to_owned(),
        Transition::Renewed if before.is_unaccepted_grant() => "accept".to_owned(),
        Transition::Renewed => "renew".to_owned(),
        Transition::Released | Transition::Removed | Transition::Deleted => "release".to_owned(),
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
