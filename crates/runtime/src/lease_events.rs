//! The recorder of Events on Leases, which is that of kube-runtime.

use std::borrow::Cow;
use std::sync::Arc;

use elector_api::CandidateApi;
use elector_protocol::{Identity, LeaseKey, ResourceVersion, Uid};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::cluster::Cluster;
use crate::event_lists::EVENTS;
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

/// The longest note that a server takes, in bytes.
const LONGEST_NOTE: usize = 1024;
/// The longest reporting instance that a server takes, in bytes.
const LONGEST_INSTANCE: usize = 128;
/// The number of Events that the recorder may remember, to count repetitions. It keeps each for six minutes.
const REMEMBERED: usize = 1000;

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
        let (published, regarding) = (event.published(), event.regarding());
        let target = Target {
            verb: Verb::Create,
            resource: Cow::Borrowed(EVENTS),
            namespace: Some(Arc::clone(&event.lease.namespace)),
            name: None,
        };
        let request = self.recorder.publish(&published, &regarding);
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
    fn published(&self) -> Event {
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

#[cfg(test)]
pub(crate) mod tests {
    use elector_api::REPORTING_CONTROLLER;
    use serde_json::json;

    use super::*;
    use crate::testing::{Reply, Script, failure};

    pub(crate) fn event() -> RecordedEvent {
        RecordedEvent {
            lease: LeaseKey::new("ns", "l"),
            uid: Some(Uid::new("u")),
            version: None,
            severity: EventSeverity::Warning,
            reason: "Expired",
            action: "Elect",
            note: format!("a\u{1b}[2J\nleads {}", "ü".repeat(1000)),
            related: Some((CandidateApi::V1Beta1, Identity::new("a").unwrap())),
        }
    }

    pub(crate) fn created() -> Reply {
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
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "ns", "name": "l", "uid": "u",
        });
        assert_eq!(first["regarding"], lease);
        let candidate = json!({
            "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "namespace": "ns", "name": "a",
        });
        assert_eq!(first["related"], candidate);
        assert_eq!(seen[2].body["regarding"]["resourceVersion"], "7");
        assert_eq!(first["type"], "Warning");
        assert_eq!(first["reportingController"], "elector.dev/elector");
        let expected = 128 + "…".len() - 3;
        assert_eq!(first["reportingInstance"].as_str().unwrap().len(), expected);
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
}
