//! Which electors there are, and which of them acts.

use elector_api::{CandidateApi, Lease, age};

use super::line::{CheckLine, apply_overlay};
use super::place::CheckedPlace;
use crate::kubectl::pods::{Pod, list_pods};

const CHECK: &str = "electors";
const VERSION: &str = "app.kubernetes.io/version";
/// The version of this plugin.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Looks at the lock of the electors and at their Pods.
pub(super) async fn check(
    place: &CheckedPlace,
    api: Option<CandidateApi>,
    lines: &mut Vec<CheckLine>,
) {
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
            let fix = format!(
                "{}, or say where the electors are, with --elector-namespace and --elector-lock; candidates in auto mode \
                 go on without any",
                apply_overlay(api)
            );
            let text = format!(
                "there is no lock {namespace}/{name}: no elector with --leader-elect has ever run there"
            );
            lines.push(CheckLine::warning(CHECK, text, fix).awaited());
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
    let query = "&labelSelector=app.kubernetes.io%2Fname%3Delector";
    let pods = match list_pods(&place.cluster, Some(namespace), query).await {
        Ok(pods) => pods,
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
    lines.extend(pods.iter().map(|pod| judge_pod(pod, namespace, holder)));
    lines.extend(stand_by(&pods, namespace));
    let mut versions: Vec<&str> = pods.iter().map(version).collect();
    versions.sort_unstable();
    versions.dedup();
    let others: Vec<_> = versions
        .iter()
        .filter(|each| **each != OWN_VERSION)
        .copied()
        .collect();
    if !others.is_empty() {
        let text = format!(
            "this plugin is of version {OWN_VERSION}, and electors are of {}",
            others.join(", ")
        );
        let fix = "what explain and status say may differ from what they do: use the plugin of their version";
        lines.push(CheckLine::warning(CHECK, text, fix));
    }
    if versions.len() > 1 {
        lines.push(CheckLine::warning(
            CHECK,
            format!("electors of {} versions run side by side: {}", versions.len(), versions.join(", ")),
            format!("safe, and meant for the time of an upgrade: kubectl -n {namespace} rollout status deployment/elector"),
        ));
    }
}

/// A warning where no replica could take over from the one that acts, or where one node has them all.
fn stand_by(pods: &[Pod], namespace: &str) -> Option<CheckLine> {
    let ready: Vec<_> = pods.iter().filter(|pod| pod.is_ready()).collect();
    let first = ready.first()?;
    if ready.len() == 1 {
        let text = "one elector is ready, and none stands by";
        let fix = format!("kubectl -n {namespace} scale deployment/elector --replicas=2");
        return Some(CheckLine::warning(CHECK, text, fix).awaited());
    }
    let node = first.spec.node_name.as_str();
    let is_there = |pod: &&Pod| pod.spec.node_name == node;
    (!node.is_empty() && ready.iter().all(is_there)).then(|| {
        let text = format!("all electors that are ready run on node {node}, and fail with it");
        let fix = format!(
            "where there is another node, delete one for it to be scheduled anew: kubectl -n {namespace} delete pod {}",
            first.metadata.name
        );
        CheckLine::warning(CHECK, text, fix)
    })
}

fn version(pod: &Pod) -> &str {
    let labels = &pod.metadata.labels;
    labels.get(VERSION).map_or("unknown", String::as_str)
}

fn judge_pod(pod: &Pod, namespace: &str, holder: Option<&str>) -> CheckLine {
    let (name, version) = (&pod.metadata.name, version(pod));
    if !pod.is_ready() {
        let phase = &pod.status.phase;
        let text = format!("Pod {name}, version {version}, is not ready ({phase})");
        let fix = format!(
            "kubectl -n {namespace} describe pod {name}; its /readyz?verbose names the check"
        );
        return CheckLine::warning(CHECK, text, fix).awaited();
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
