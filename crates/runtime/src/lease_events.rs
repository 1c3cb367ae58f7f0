//! Events on Leases: how they are recorded, and how those are read that tell what is held back.

use std::borrow::Cow;
use std::sync::Arc;

use elector_api::{CandidateApi, EventObject, HoldBackEvent, PREFERENCE_HELD_BACK, ToldEvent};
use elector_protocol::{Identity, LeaseKey, ResourceVersion, Uid};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::line::cut_bytes;
use crate::request::{Cause, RequestError, Target, Verb};
use crate::terminal::printable;

/// The content of an Event on a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The lease.
    pub lease: LeaseKey,
    /// Its Lease, where there is one. Without the uid `kubectl describe` does not show the Event.
    pub uid: Option<Uid>,
    /// The revision that it is about. Events that agree in all but their notes become one with a count; with a revision,
    /// only those of the same one.
    pub version: Option<ResourceVersion>,
    /// Its severity, as `type` reports it.
    pub severity: EventSeverity,
    /// Why, in one CamelCase word.
    pub reason: &'static str,
    /// The action that was done or not done, in one CamelCase word.
    pub action: &'static str,
    /// One sentence. Names of others in it are made printable, and it is cut to 1024 bytes.
    pub note: String,
    /// The candidate that it is about besides, and the API of that.
    pub related: Option<(CandidateApi, Identity)>,
}

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSeverity {
    /// All is as it should be.
    Normal,
    /// Worth a look.
    Warning,
}

/// Records Events on Leases, one after the other, each within the time of a request.
pub struct LeaseEventRecorder {
    cluster: Cluster,
    reporter: Reporter,
    recorder: Recorder,
    /// The number of Events given to the recorder.
    recorded: usize,
}

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

/// The longest note that a server takes, in bytes.
const LONGEST_NOTE: usize = 1024;
/// The longest reporting instance that a server takes, in bytes.
const LONGEST_INSTANCE: usize = 128;
/// The number of Events that the recorder may remember, to count repetitions. It keeps each for six minutes.
const REMEMBERED: usize = 1000;
/// The number of Events that are read at once.
const PAGE: usize = 500;

const EVENTS: &str = "events.events.k8s.io";

// === impl LeaseEventRecorder ===

impl LeaseEventRecorder {
    /// A recorder that names itself in the Events: `controller` is what kind of program it is, and `instance` which one.
    pub fn new(cluster: Cluster, controller: &str, instance: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: Some(cut_bytes(&printable(instance), LONGEST_INSTANCE)),
        };
        Self {
            recorder: Recorder::new(cluster.client().clone(), reporter.clone()),
            cluster,
            reporter,
            recorded: 0,
        }
    }

    /// Creates an Event, or counts the repetition of one.
    ///
    /// # Errors
    ///
    /// When the server does not confirm it. It is not tried again.
    pub async fn record(&mut self, event: &RecordedEvent) -> Result<(), RequestError> {
        if self.recorded >= REMEMBERED {
            self.forget();
        }
        self.recorded += 1;
        let answer = self.publish(event).await;
        // The Event that was to be counted has been deleted.
        if let Err(error) = &answer
            && error.code() == Some(404)
        {
            self.forget();
            return self.publish(event).await;
        }
        answer
    }

    async fn publish(&self, event: &RecordedEvent) -> Result<(), RequestError> {
        let (told, regarding) = (event.told(), event.regarding());
        let target = Target {
            verb: Verb::Create,
            resource: Cow::Borrowed(EVENTS),
            namespace: Some(Arc::clone(&event.lease.namespace)),
            name: None,
        };
        let request = self.recorder.publish(&told, &regarding);
        let timeout = self.cluster.request_timeout();
        let answer = self.cluster.call(target, timeout, request).await;
        answer.map_err(|mut error| {
            // The recorder does not say which of the two it asked for.
            if matches!(&error.cause, Cause::Forbidden(message) if message.contains(" cannot patch ")) {
                error.target.verb = Verb::Patch;
            }
            error
        })
    }

    fn forget(&mut self) {
        let client: Client = self.cluster.client().clone();
        self.recorder = Recorder::new(client, self.reporter.clone());
        self.recorded = 0;
    }
}

// === impl RecordedEvent ===

impl RecordedEvent {
    fn told(&self) -> Event {
        let text = |text: &str| Some(text.to_owned());
        Event {
            type_: match self.severity {
                EventSeverity::Normal => EventType::Normal,
                EventSeverity::Warning => EventType::Warning,
            },
            reason: self.reason.to_owned(),
            note: Some(cut_bytes(&printable(&self.note), LONGEST_NOTE)),
            action: self.action.to_owned(),
            secondary: self.related.as_ref().map(|(api, name)| ObjectReference {
                api_version: text(api.api_version()),
                kind: text("LeaseCandidate"),
                namespace: text(&self.lease.namespace),
                name: text(name.as_str()),
                ..ObjectReference::default()
            }),
        }
    }

    fn regarding(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(self.lease.namespace.to_string()),
            name: Some(self.lease.name.to_string()),
            uid: self.uid.as_ref().map(ToString::to_string),
            resource_version: self.version.map(|version| version.0.to_string()),
            ..ObjectReference::default()
        }
    }
}

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
pub async fn list_told_events(
    cluster: &Cluster,
    lease: &LeaseKey,
) -> Result<Vec<ToldEvent>, RequestError> {
    // In their old form, as `kubectl describe` asks for them: that of the new API selects by other names.
    let selector = format!(
        "involvedObject.kind%3DLease%2CinvolvedObject.name%3D{}",
        lease.name
    );
    let namespace = Some(&*lease.namespace);
    let events = list_events(cluster, ("events", "/api/v1"), namespace, &selector).await?;
    let told = events.iter().filter_map(EventObject::told);
    let mut told: Vec<_> = told.filter(|event| event.lease == *lease).collect();
    told.sort_by_key(|event| event.at);
    Ok(told)
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
    use crate::testing::{Reply, Script, failure};

    fn event() -> RecordedEvent {
        RecordedEvent {
            lease: LeaseKey::new("ns", "l"),
            uid: Some(Uid::new("u")),
            version: None,
            severity: EventSeverity::Warning,
            reason: "Expired",
            action: "Elect",
            note: format!("a\u{1b}[2J\nleads {}", "ü".repeat(1000)),
            related: None,
        }
    }

    fn created() -> Reply {
        Reply::Json(201, json!({"metadata": {"name": "l.1", "namespace": "ns"}}))
    }

    fn patched() -> Reply {
        Reply::Json(200, json!({"metadata": {"name": "l.1", "namespace": "ns"}}))
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_created_and_its_repetition_counted() {
        let script = Script::new([created(), patched(), created()]);
        let mut recorder =
            LeaseEventRecorder::new(script.cluster(), REPORTING_CONTROLLER, &"i".repeat(200));
        recorder.record(&event()).await.unwrap();
        recorder.record(&event()).await.unwrap();
        let elsewhere = RecordedEvent {
            version: Some(ResourceVersion(7)),
            ..event()
        };
        recorder.record(&elsewhere).await.unwrap();
        let seen = script.seen();
        let lines: Vec<_> = seen
            .iter()
            .map(|request| request.line.split('?').next().unwrap())
            .collect();
        let events = "/apis/events.k8s.io/v1/namespaces/ns/events";
        assert_eq!(lines[0], format!("POST {events}"));
        assert!(
            lines[1].starts_with(&format!("PATCH {events}/l.")),
            "{}",
            lines[1]
        );
        assert_eq!(lines[2], format!("POST {events}"));
        let (first, repeated) = (&seen[0].body, &seen[1].body);
        assert_eq!(first["regarding"]["uid"], "u");
        assert_eq!(first["type"], "Warning");
        assert_eq!(first["reportingController"], "elector.dev/elector");
        assert_eq!(
            first["reportingInstance"].as_str().unwrap().len(),
            128 + "…".len() - 3
        );
        let note = first["note"].as_str().unwrap();
        assert!(note.starts_with(r"a\u{1b}[2J\nleads ü"), "{note}");
        assert!((1020..=1024).contains(&note.len()), "{}", note.len());
        assert_eq!(repeated["series"]["count"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_deleted_meanwhile_is_created_again() {
        let gone = failure(404, "NotFound", "gone");
        let script = Script::new([created(), gone, created()]);
        let mut recorder = LeaseEventRecorder::new(script.cluster(), REPORTING_CONTROLLER, "i");
        recorder.record(&event()).await.unwrap();
        recorder.record(&event()).await.unwrap();
        let verbs: Vec<_> = script
            .lines()
            .iter()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(verbs, ["POST", "PATCH", "POST"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_recorder_does_not_remember_more_than_so_many() {
        let script = Script::new((0..=REMEMBERED).map(|_| created()));
        let mut recorder = LeaseEventRecorder::new(script.cluster(), REPORTING_CONTROLLER, "i");
        for version in 0..REMEMBERED as u64 {
            let event = RecordedEvent {
                version: Some(ResourceVersion(version)),
                ..event()
            };
            recorder.record(&event).await.unwrap();
        }
        let repeated = RecordedEvent {
            version: Some(ResourceVersion(0)),
            ..event()
        };
        recorder.record(&repeated).await.unwrap();
        assert!(script.lines()[REMEMBERED].starts_with("POST "));
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_that_is_missing_is_named() {
        let message =
            |verb| format!("events.events.k8s.io is forbidden: User \"u\" cannot {verb} resource");
        let [create, patch] =
            ["create", "patch"].map(|verb| failure(403, "Forbidden", &message(verb)));
        let script = Script::new([create, created(), patch]);
        let mut recorder = LeaseEventRecorder::new(script.cluster(), REPORTING_CONTROLLER, "i");
        for expected in [Err("create"), Ok(()), Err("patch")] {
            let answer = recorder
                .record(&event())
                .await
                .map_err(|error| error.to_string());
            match expected {
                Ok(()) => answer.unwrap(),
                Err(verb) => {
                    let text = answer.unwrap_err();
                    let start = format!(
                        "{verb} events.events.k8s.io in namespace ns: RBAC does not grant the verb {verb}: "
                    );
                    assert!(text.starts_with(&start), "{text}");
                }
            }
        }
    }

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
        assert_eq!(
            script.lines(),
            [path.to_owned(), format!("{path}&continue=t")]
        );
    }
}
