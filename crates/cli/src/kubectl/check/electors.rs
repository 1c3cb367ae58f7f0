//! Which electors there are, and which of them acts.

use elector_api::{Lease, age};
use serde::Deserialize;

use super::line::CheckLine;
use super::place::CheckedPlace;

/// A list of Pods, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct PodList {
    items: Vec<Pod>,
}

#[derive(Debug, Deserialize)]
struct Pod {
    metadata: PodMetadata,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
struct PodMetadata {
    name: String,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    conditions: Vec<PodCondition>,
}

#[derive(Debug, Deserialize)]
struct PodCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

const CHECK: &str = "electors";
const VERSION: &str = "app.kubernetes.io/version";

/// Looks at the lock of the electors and at their Pods.
pub(super) async fn check(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let (namespace, name) = (&place.elector_namespace, &place.elector_lock);
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let key = (Some(namespace.as_str()), Some(name.as_str()));
    let read = place
        .read::<Lease>("leases.coordination.k8s.io", key, &path)
        .await;
    let holder = match read {
        Ok(lease) => {
            let (line, holder) = judge(&lease, place);
            lines.push(line);
            holder
        }
        Err(error) if error.code() == Some(404) => {
            lines.push(CheckLine::warning(
                CHECK,
                format!("there is no lock {namespace}/{name}: no elector with --leader-elect has ever run there"),
                "install one, kubectl apply -k manifests/overlays/native, or say where it is, with --elector-namespace and \
                 --elector-lock; candidates in auto mode go on without any",
            ));
            None
        }
        Err(error) => {
            lines.push(CheckLine::warning(
                CHECK,
                format!("failed to {error}"),
                format!(
                    "use an account with this permission: kubectl -n {namespace} get lease {name}"
                ),
            ));
            None
        }
    };
    pods(place, holder.as_deref(), lines).await;
}

/// The verdict on the lock, and its holder.
fn judge(lease: &Lease, place: &CheckedPlace) -> (CheckLine, Option<String>) {
    let (namespace, name) = (&place.elector_namespace, &place.elector_lock);
    let look =
        format!("investigate: kubectl -n {namespace} get pods, and the logs of the electors");
    let record = match lease.snapshot() {
        Ok(lease) => lease.record,
        Err(fault) => {
            let text = format!("the lock of the electors cannot be read, so none acts: {fault}");
            let fix = format!(
                "delete it, the electors make a new one: kubectl -n {namespace} delete lease {name}"
            );
            return (CheckLine::error(CHECK, text, fix), None);
        }
    };
    let Some(holder) = &record.holder else {
        let text = format!("no elector is active: none holds the lock {namespace}/{name}");
        return (CheckLine::error(CHECK, text, look), None);
    };
    let micros = |time: Option<elector_protocol::Timestamp>| {
        time.map(|time| (place.now.as_micros() - time.as_micros()).div_euclid(1_000_000))
    };
    let renewed = micros(record.renew_time).unwrap_or(i64::MAX);
    let lasts = record.duration().map_or(0, |duration| duration.as_secs());
    if i64::try_from(lasts).is_ok_and(|lasts| renewed > lasts) {
        let text = format!(
            "no elector is active: {holder} has not renewed the lock {namespace}/{name} for {}",
            age(renewed)
        );
        return (CheckLine::error(CHECK, text, look), None);
    }
    let since = micros(record.acquire_time)
        .map_or_else(String::new, |since| format!(" for {}", age(since)));
    let text = format!("{holder} has been acting{since}, in term {}", record.term.0);
    (CheckLine::ok(CHECK, text), Some(holder.as_str().to_owned()))
}

/// The Pods of electors: which version each runs, which of them acts and which is not ready.
async fn pods(place: &CheckedPlace, holder: Option<&str>, lines: &mut Vec<CheckLine>) {
    let namespace = &place.elector_namespace;
    let path = format!(
        "/api/v1/namespaces/{namespace}/pods?labelSelector=app.kubernetes.io%2Fname%3Delector"
    );
    let read = place
        .read::<PodList>("pods", (Some(namespace), None), &path)
        .await;
    let pods = match read {
        Ok(list) => list.items,
        Err(error) => {
            lines.push(CheckLine::warning(
                CHECK,
                format!("failed to {error}, so that versions are not known"),
                format!(
                    "use an account with this permission: kubectl -n {namespace} get pods --show-labels"
                ),
            ));
            return;
        }
    };
    for pod in &pods {
        lines.push(pod.judge(namespace, holder));
    }
    let mut versions: Vec<&str> = pods.iter().map(Pod::version).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        lines.push(CheckLine::warning(
            CHECK,
            format!("electors of {} versions run side by side: {}", versions.len(), versions.join(", ")),
            format!("safe, and meant for the time of an upgrade: kubectl -n {namespace} rollout status deployment/elector"),
        ));
    }
}

// === impl Pod ===

impl Pod {
    fn version(&self) -> &str {
        let labels = &self.metadata.labels;
        labels.get(VERSION).map_or("unknown", String::as_str)
    }

    fn judge(&self, namespace: &str, holder: Option<&str>) -> CheckLine {
        let (name, version) = (&self.metadata.name, self.version());
        let ready =
            |condition: &PodCondition| condition.kind == "Ready" && condition.status == "True";
        if !self.status.conditions.iter().any(ready) {
            return CheckLine::warning(
                CHECK,
                format!(
                    "Pod {name}, version {version}, is not ready ({})",
                    self.status.phase
                ),
                format!(
                    "kubectl -n {namespace} describe pod {name}; its /readyz?verbose names the check"
                ),
            );
        }
        // An identity is made of the name of its Pod and of a random number.
        let acts = holder.is_some_and(|holder| {
            let identity = holder.strip_prefix("elector_").unwrap_or(holder);
            identity
                .rsplit_once('_')
                .is_some_and(|(pod, _)| pod == name)
        });
        let role = if acts { "acts" } else { "stands by" };
        CheckLine::ok(CHECK, format!("Pod {name}, version {version}, {role}"))
    }
}
