//! The audit log of a real API server: which Pod wrote what, and when, and which account asked for what.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use elector_api::parse_time;
use elector_protocol::Timestamp;
use serde_json::Value;

/// The audit log of an API server, which has the requests about Leases, LeaseCandidates and Events.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// A write as the API server logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedWrite {
    /// The Pod whose token it was done with.
    pub pod: String,
    /// The verb, the resource, the namespace and the name.
    pub what: String,
    /// When the server received it.
    pub at: Timestamp,
    /// The status of the answer.
    pub code: i64,
}

/// A verb of a resource, as RBAC names them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceVerb {
    group: String,
    resource: String,
    verb: String,
}

/// The verbs that change an object.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// The policy of the log: one line for each request when it has been answered, and one when a watch begins.
const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {
      "level": "Metadata",
      "resources": [
        {"group": "coordination.k8s.io", "resources": ["leases", "leasecandidates"]},
        {"group": "elector.dev", "resources": ["leasecandidates"]},
        {"group": "events.k8s.io", "resources": ["events"]}
      ]
    },
    {"level": "None"}
  ]
}
"#;

// === impl AuditLog ===

impl AuditLog {
    /// A log in that folder, with the flags by which an API server writes it.
    pub(super) fn in_folder(folder: &Path) -> Result<(Self, Vec<String>)> {
        let (policy, path) = (folder.join("audit-policy.json"), folder.join("audit.log"));
        fs::write(&policy, POLICY)
            .with_context(|| format!("failed to write {}", policy.display()))?;
        let flags = vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", path.display()),
            // A line is there before its answer is.
            "--audit-log-mode=blocking".to_owned(),
        ];
        Ok((Self { path }, flags))
    }

    /// The writes of a Pod so far, in the order of their answers.
    pub fn writes_of(&self, pod: &str) -> Result<Vec<AuditedWrite>> {
        let events = self.events()?;
        let writes = events.iter().filter(|event| {
            let verb = event["verb"].as_str();
            verb.is_some_and(|verb| WRITES.contains(&verb)) && pod_of(event) == Some(pod)
        });
        writes
            .map(|event| AuditedWrite::of(event).context("an audit event without its fields"))
            .collect()
    }

    /// The number of requests in this namespace so far. A watch counts when it begins.
    pub fn requests_in(&self, namespace: &str) -> Result<usize> {
        let events = self.events()?;
        let is_meant = |event: &&Value| {
            event["objectRef"]["namespace"] == namespace
                && (event["verb"] != "watch" || event["stage"] == "ResponseStarted")
        };
        Ok(events.iter().filter(is_meant).count())
    }

    /// The verbs of this user's requests so far.
    pub fn verbs_of(&self, user: &str) -> Result<BTreeSet<ResourceVerb>> {
        self.verbs(user, |_| true)
    }

    /// The verbs refused to this user so far.
    pub fn refused_to(&self, user: &str) -> Result<BTreeSet<ResourceVerb>> {
        self.verbs(user, |event| event["responseStatus"]["code"] == 403)
    }

    fn verbs(
        &self,
        user: &str,
        is_meant: impl Fn(&Value) -> bool,
    ) -> Result<BTreeSet<ResourceVerb>> {
        let events = self.events()?;
        let asked = events
            .iter()
            .filter(|event| event["user"]["username"] == user);
        let asked = asked.filter(|event| is_meant(event));
        asked
            .map(|event| ResourceVerb::of(event).context("an audit event without its fields"))
            .collect()
    }

    fn events(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(&self.path)
            .with_context(|| format!("failed to read {}", self.path.display()))?;
        // The last line may be half written.
        let whole = text.lines().filter(|line| line.ends_with('}'));
        whole.map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

/// The Pod whose token a request came with.
fn pod_of(event: &Value) -> Option<&str> {
    event["user"]["extra"]["authentication.kubernetes.io/pod-name"][0].as_str()
}

// === impl ResourceVerb ===

impl ResourceVerb {
    /// That verb of that resource of that group.
    pub fn new(group: &str, resource: &str, verb: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
        }
    }

    fn of(event: &Value) -> Option<Self> {
        let object = |field: &str| event["objectRef"][field].as_str();
        Some(Self::new(
            object("apiGroup")?,
            object("resource")?,
            event["verb"].as_str()?,
        ))
    }
}

impl fmt::Display for ResourceVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.verb, self.resource, self.group)
    }
}

// === impl AuditedWrite ===

impl AuditedWrite {
    fn of(event: &Value) -> Option<Self> {
        let object = |field: &str| event["objectRef"][field].as_str();
        // A creation is named by its body, which is not logged.
        let name = object("name").unwrap_or_default();
        Some(Self {
            pod: pod_of(event)?.to_owned(),
            what: format!(
                "{} {} {}/{name}",
                event["verb"].as_str()?,
                object("resource")?,
                object("namespace")?
            ),
            at: parse_time(event["requestReceivedTimestamp"].as_str()?).ok()?,
            code: event["responseStatus"]["code"].as_i64().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_belongs_to_the_pod_whose_token_it_was_done_with() {
        let folder = tempfile::tempdir().unwrap();
        let (log, flags) = AuditLog::in_folder(folder.path()).unwrap();
        assert_eq!(flags.len(), 3);
        let event = |pod: &str| {
            json!({
                "stage": "ResponseComplete", "verb": "update", "user": {
                    "username": "system:serviceaccount:ns:elector",
                    "extra": {"authentication.kubernetes.io/pod-name": [pod]},
                },
                "objectRef": {
                    "apiGroup": "coordination.k8s.io", "resource": "leases", "namespace": "ns", "name": "l",
                },
                "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
                "responseStatus": {"code": 409},
            })
        };
        let text = format!("{}\n{}\n{{\"half", event("one"), event("other"));
        fs::write(folder.path().join("audit.log"), text).unwrap();
        let writes = log.writes_of("one").unwrap();
        assert_eq!(writes.len(), 1);
        let expected = ("update leases ns/l", 409);
        assert_eq!((writes[0].what.as_str(), writes[0].code), expected);
        assert_eq!(log.writes_of("none").unwrap(), []);
        let user = "system:serviceaccount:ns:elector";
        let update = ResourceVerb::new("coordination.k8s.io", "leases", "update");
        assert!(log.verbs_of(user).unwrap().into_iter().eq([update]));
        assert!(log.refused_to(user).unwrap().is_empty());
        assert!(log.verbs_of("system:admin").unwrap().is_empty());
    }
}
