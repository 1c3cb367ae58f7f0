//! Lists of Events on Leases: what electors reported of them.

use std::borrow::Cow;
use std::sync::Arc;

use elector_api::{EventObject, HoldBackEvent, PREFERENCE_HELD_BACK, ReportedEvent};
use elector_protocol::LeaseKey;
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::request::{RequestError, Target, Verb};

/// One page of a list of Events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventPage {
    metadata: PageMetadata,
    items: Vec<EventObject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// The number of Events that are read at once.
const PAGE: usize = 500;

/// Events as RBAC names them.
pub(crate) const EVENTS: &str = "events.events.k8s.io";

/// The reports of electors on preferences that they hold back, in one namespace or in all.
///
/// # Errors
///
/// When the server gives no usable answer.
pub async fn list_hold_backs(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<HoldBackEvent>, RequestError> {
    let selector = format!("reason%3D{PREFERENCE_HELD_BACK}");
    let api = (EVENTS, "/apis/events.k8s.io/v1");
    let events = list_events(cluster, api, namespace, &selector).await?;
    Ok(events.iter().filter_map(EventObject::hold_back).collect())
}

/// The reports of electors on a lease, the oldest first, as far as the server has kept them.
///
/// # Errors
///
/// When the server gives no usable answer.
pub async fn list_reported_events(
    cluster: &Cluster,
    lease: &LeaseKey,
) -> Result<Vec<ReportedEvent>, RequestError> {
    // In their old form, as `kubectl describe` asks for them: that of the new API selects by other names.
    let selector = format!(
        "involvedObject.kind%3DLease%2CinvolvedObject.name%3D{}",
        lease.name
    );
    let namespace = Some(&*lease.namespace);
    let events = list_events(cluster, ("events", "/api/v1"), namespace, &selector).await?;
    let reported = events.iter().filter_map(EventObject::reported);
    let mut reported: Vec<_> = reported.filter(|event| event.lease == *lease).collect();
    reported.sort_by_key(|event| event.at);
    Ok(reported)
}

/// The Events of a namespace or of all that a field selector chooses.
async fn list_events(
    cluster: &Cluster,
    (resource, api): (&'static str, &str),
    namespace: Option<&str>,
    selector: &str,
) -> Result<Vec<EventObject>, RequestError> {
    let place = namespace.map_or_else(String::new, |name| format!("namespaces/{name}/"));
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let target = Target {
            verb: Verb::List,
            resource: Cow::Borrowed(resource),
            namespace: namespace.map(Arc::from),
            name: None,
        };
        let path = format!("{api}/{place}events?limit={PAGE}&fieldSelector={selector}{next}");
        let page: EventPage = cluster.request(target, &path, None).await?;
        found.extend(page.items);
        match page.metadata.next.filter(|token| !token.is_empty()) {
            // A token is of the characters that stand in an URL as they are; kube-apiserver's is base64 for URLs.
            Some(token) => next = format!("&continue={token}"),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_api::REPORTING_CONTROLLER;
    use serde_json::json;

    use super::*;
    use crate::testing::{Reply, Script};

    #[tokio::test(start_paused = true)]
    async fn what_is_held_back_is_read_page_by_page() {
        let item = |name: &str| {
            json!({
                "metadata": {"name": name, "namespace": "ns"},
                "regarding": {"kind": "Lease", "namespace": "ns", "name": name},
                "related": {"kind": "LeaseCandidate", "namespace": "ns", "name": "b"},
                "reason": PREFERENCE_HELD_BACK,
                "note": "until 2023-11-14T22:14:20Z a is not asked to make room for b: the last hand-over was not accepted",
                "eventTime": "2023-11-14T22:13:20.000000Z",
                "reportingController": REPORTING_CONTROLLER,
            })
        };
        let page = |next: &str, items: serde_json::Value| {
            Reply::Json(200, json!({"metadata": {"continue": next}, "items": items}))
        };
        let pod = json!({"regarding": {"kind": "Pod"}});
        let script = Script::new([
            page("t", json!([item("l"), pod])),
            page("", json!([item("m")])),
        ]);
        let found = list_hold_backs(&script.cluster(), Some("ns"))
            .await
            .unwrap();
        let leases: Vec<_> = found.iter().map(|event| event.lease.to_string()).collect();
        assert_eq!(leases, ["ns/l", "ns/m"]);
        let path = "GET /apis/events.k8s.io/v1/namespaces/ns/events?limit=500&fieldSelector=reason%3DPreferenceHeldBack";
        let expected = [path.to_owned(), format!("{path}&continue=t")];
        assert_eq!(script.lines(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_reported_of_a_lease_is_read_the_oldest_first() {
        let item = |namespace: &str, name: &str, reason: &str, second: u8| {
            json!({
                "involvedObject": {"kind": "Lease", "namespace": namespace, "name": name},
                "reason": reason,
                "eventTime": format!("2023-11-14T22:13:{second:02}.000000Z"),
                "reportingComponent": REPORTING_CONTROLLER,
            })
        };
        let items = json!([
            item("ns", "l", "Second", 2),
            item("ns", "m", "OfAnother", 0),
            item("other", "l", "OfAnother", 0),
            item("ns", "l", "First", 1),
        ]);
        let script = Script::new([Reply::Json(200, json!({"items": items}))]);
        let (cluster, lease) = (script.cluster(), LeaseKey::new("ns", "l"));
        let found = list_reported_events(&cluster, &lease).await.unwrap();
        let reasons: Vec<_> = found.iter().map(|event| &*event.reason).collect();
        assert_eq!(reasons, ["First", "Second"]);
        let selector = "involvedObject.kind%3DLease%2CinvolvedObject.name%3Dl";
        let expected =
            format!("GET /api/v1/namespaces/ns/events?limit=500&fieldSelector={selector}");
        assert_eq!(script.lines(), [expected]);
    }
}
