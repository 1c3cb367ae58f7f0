//! The entries of a history.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate, Rfc3339, parse_time};
use elector_protocol::{LeaseKey, ResourceVersion, Timestamp, Token};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    /// When it was seen; for an event of a candidate, when the candidate says it happened.
    pub at: Timestamp,
    /// Its content.
    pub content: EntryContent,
}

/// The content of an entry. Names are those of the objects' metadata.
#[derive(Clone, Debug)]
pub enum EntryContent {
    /// The Lease of this name was created or changed.
    Lease(String, Arc<Lease>),
    /// The Lease of this name was deleted; its last revision.
    LeaseGone(String, Arc<Lease>),
    /// A candidate object was created or changed.
    Candidate(String, Arc<LeaseCandidate>),
    /// A candidate object was deleted; its last revision.
    CandidateGone(String, Arc<LeaseCandidate>),
    /// A candidate's process said something, or ended.
    Event(Event),
    /// A remark of the recorder.
    Note(String),
}

/// A statement of a candidate's process about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The candidate.
    pub name: String,
    /// The statement.
    pub kind: EventKind,
    /// The lease that it is about, where it says so.
    pub lease: Option<LeaseKey>,
    /// The term, where it knows one.
    pub term: Option<i64>,
    /// The fencing token of the term, where it knows one.
    pub token: Option<Token>,
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It runs.
    Start,
    /// Its work begins: it believes that it leads.
    Leading,
    /// Its work has ended.
    WorkStopped,
    /// It leads no more.
    Lost,
    /// Its process was killed, as the killer says.
    Killed,
}

/// The line that a candidate writes for each event.
#[derive(Deserialize)]
struct EventLine {
    event: EventKind,
    name: String,
    time: String,
    #[serde(default)]
    lease: Option<String>,
    #[serde(default)]
    term: Option<Value>,
    #[serde(default)]
    token: Option<u64>,
}

/// The time from `earlier` to `later`, zero when it is the other way round.
pub fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(later.as_micros() - earlier.as_micros()).unwrap_or(0))
}

// === impl HistoryEntry ===

impl HistoryEntry {
    /// The entry as one line of a recording, which a [`RecordingReader`](crate::RecordingReader) reads; `None` for a note.
    pub fn line(&self) -> Option<String> {
        let at = Rfc3339(self.at).to_string();
        let seen = |kind: &str, object: Value| json!({"at": at, "type": kind, "object": object});
        let document = match &self.content {
            EntryContent::Lease(_, lease) => seen("MODIFIED", serde_json::to_value(&**lease).ok()?),
            EntryContent::LeaseGone(_, lease) => {
                seen("DELETED", serde_json::to_value(&**lease).ok()?)
            }
            EntryContent::Candidate(_, candidate) => {
                seen("MODIFIED", serde_json::to_value(&**candidate).ok()?)
            }
            EntryContent::CandidateGone(_, candidate) => {
                seen("DELETED", serde_json::to_value(&**candidate).ok()?)
            }
            EntryContent::Event(event) => {
                let mut line = json!({"event": event.kind, "name": event.name, "time": at});
                if let Some(lease) = &event.lease {
                    line["lease"] = lease.to_string().into();
                }
                if let Some(term) = event.term {
                    line["term"] = term.into();
                }
                if let Some(token) = event.token {
                    line["token"] = token.0.0.into();
                }
                line
            }
            EntryContent::Note(_) => return None,
        };
        Some(document.to_string())
    }
}

// === impl Event ===

impl Event {
    /// A statement of `name`, about no lease and no term in particular.
    pub fn new(name: impl Into<String>, kind: EventKind) -> Self {
        Self {
            name: name.into(),
            kind,
            lease: None,
            term: None,
            token: None,
        }
    }

    /// Reads the line of a candidate; `None` for one that is no event.
    pub fn parse(line: &str) -> Option<(Timestamp, Self)> {
        let line: EventLine = serde_json::from_str(line).ok()?;
        let at = parse_time(&line.time).ok()?;
        let term = line.term.and_then(|term| match term {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        });
        let lease = line.lease.as_deref().and_then(|lease| {
            let (namespace, name) = lease.split_once('/')?;
            Some(LeaseKey::new(namespace, name))
        });
        let event = Self {
            name: line.name,
            kind: line.event,
            lease,
            term,
            token: line.token.map(|token| Token(ResourceVersion(token))),
        };
        Some((at, event))
    }
}

// === impl EntryContent ===

impl EntryContent {
    /// A revision of a Lease, its last one where the Lease is `gone`.
    pub fn lease(lease: Lease, gone: bool) -> Self {
        let name = lease.metadata.name.clone().unwrap_or_default();
        let variant = if gone { Self::LeaseGone } else { Self::Lease };
        variant(name, Arc::new(lease))
    }

    /// A revision of a candidate object, its last one where the object is `gone`.
    pub fn candidate(candidate: LeaseCandidate, gone: bool) -> Self {
        let name = candidate.metadata.name.clone().unwrap_or_default();
        let variant = if gone {
            Self::CandidateGone
        } else {
            Self::Candidate
        };
        variant(name, Arc::new(candidate))
    }

    /// The resourceVersion of the revision, which tells what came first; `None` for what is no object.
    pub fn version(&self) -> Option<ResourceVersion> {
        let metadata = match self {
            Self::Lease(_, lease) | Self::LeaseGone(_, lease) => &lease.metadata,
            Self::Candidate(_, candidate) | Self::CandidateGone(_, candidate) => {
                &candidate.metadata
            }
            Self::Event(_) | Self::Note(_) => return None,
        };
        let version = metadata.resource_version.as_ref()?.parse().ok()?;
        Some(ResourceVersion(version))
    }
}

impl fmt::Display for EntryContent {
    /// One line for a reader who knows the day.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Option<Timestamp>| time.map_or_else(|| "-".to_owned(), clock_of_day);
        let version = |version: &Option<String>| version.clone().unwrap_or_default();
        match self {
            Self::Lease(name, lease) | Self::LeaseGone(name, lease) => {
                let spec = &lease.spec;
                write!(
                    f,
                    "lease {name} @{}: holder {:?} term {} duration {} acquired {} renewed {}",
                    version(&lease.metadata.resource_version),
                    spec.holder_identity,
                    spec.lease_transitions.unwrap_or(0),
                    spec.lease_duration_seconds.unwrap_or(0),
                    time(&spec.acquire_time),
                    time(&spec.renew_time),
                )?;
                for (name, value) in [
                    ("strategy", &spec.strategy),
                    ("preferred", &spec.preferred_holder),
                ] {
                    if let Some(value) = value {
                        write!(f, " {name} {value:?}")?;
                    }
                }
                for (key, value) in lease.metadata.annotations.iter().flatten() {
                    write!(f, " {}={value}", key.trim_start_matches("elector.dev/"))?;
                }
                if matches!(self, Self::LeaseGone(..)) {
                    f.write_str(" DELETED")?;
                }
                Ok(())
            }
            Self::Candidate(name, candidate) => {
                let spec = &candidate.spec;
                write!(
                    f,
                    "candidate {name} @{}: lease {} binary {} emulation {:?} strategy {} pinged {} renewed {}",
                    version(&candidate.metadata.resource_version),
                    spec.lease_name,
                    spec.binary_version,
                    spec.emulation_version,
                    spec.strategy,
                    time(&spec.ping_time),
                    time(&spec.renew_time),
                )
            }
            Self::CandidateGone(name, _) => write!(f, "candidate {name} DELETED"),
            Self::Event(event) => {
                write!(f, "***** {} {:?}", event.name, event.kind)?;
                match event.term {
                    Some(term) => write!(f, " term {term}"),
                    None => Ok(()),
                }
            }
            Self::Note(text) => write!(f, "----- {text}"),
        }
    }
}

/// Hours, minutes and seconds: the day is the same all along.
fn clock_of_day(time: Timestamp) -> String {
    let text = Rfc3339(time).to_string();
    text.split('T').next_back().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_candidates_are_understood() {
        let client_go =
            r#"{"event":"work-stopped","name":"a","time":"1970-01-01T00:00:01.000002Z"}"#;
        let (at, event) = Event::parse(client_go).unwrap();
        assert_eq!(at.as_micros(), 1_000_002);
        assert_eq!(event, Event::new("a", EventKind::WorkStopped));

        let ours = r#"{"event":"leading","name":"a","time":"1970-01-01T00:00:01.000002Z","lease":"ns/web","term":3,"token":7}"#;
        let (_, event) = Event::parse(ours).unwrap();
        assert_eq!(event.term, Some(3));
        assert_eq!(event.token, Some(Token(ResourceVersion(7))));
        assert_eq!(event.lease, Some(LeaseKey::new("ns", "web")));
        assert_eq!(Event::parse("panic: no"), None);
        // A label holds a term as text.
        for (term, expected) in [(r#""3""#, Some(3)), ("[3]", None)] {
            let line = ours.replace(r#""term":3"#, &format!(r#""term":{term}"#));
            assert_eq!(Event::parse(&line).unwrap().1.term, expected);
        }
    }
}
