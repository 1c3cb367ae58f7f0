//! Scripts: streams of JSON documents, read as far as they can be.

use std::time::Duration;

use elector_api::{Lease, LeaseCandidate, parse_duration};
use elector_protocol::elector::NewsSource;
use kube::core::{ObjectList, WatchEvent};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// One document of a script.
#[derive(Debug)]
pub(crate) enum ScriptDocument {
    /// Leases, in one of the ways that a server sends them.
    Leases(Notification<Lease>),
    /// Candidates.
    Candidates(Notification<LeaseCandidate>),
    /// An order to the driver: its name and what it is about.
    Order(String, Value),
    /// Neither.
    Other,
}

/// A notification of a server.
#[derive(Debug)]
pub(crate) enum Notification<T> {
    /// One revision.
    Seen(T, NewsSource),
    /// A deletion, with the last revision.
    Deleted(T),
    /// Everything that there is.
    Listed(Vec<T>),
}

/// The longest script that is run, in documents: each costs a step of every election.
const LONGEST: usize = 48;

/// The documents of a script, up to the first that is no JSON.
pub(crate) fn documents(bytes: &[u8]) -> Vec<ScriptDocument> {
    let text = String::from_utf8_lossy(bytes);
    let mut stream = serde_json::Deserializer::from_str(&text).into_iter::<IgnoredAny>();
    let mut documents = Vec::new();
    let mut start = 0;
    while let Some(Ok(IgnoredAny)) = stream.next() {
        let end = stream.byte_offset();
        documents.push(read(&text[start..end]));
        start = end;
        if documents.len() == LONGEST {
            break;
        }
    }
    documents
}

/// The duration of an order to wait: a Go duration, or milliseconds.
pub(crate) fn duration(value: &Value) -> Duration {
    let duration = match value {
        Value::String(text) => parse_duration(text).unwrap_or_default(),
        value => Duration::from_millis(value.as_u64().unwrap_or_default()),
    };
    // A process does not live until its clock overflows.
    duration.min(Duration::from_secs(100 * 365 * 86_400))
}

/// Reads one document, by the very types that the production code reads it by.
fn read(text: &str) -> ScriptDocument {
    // Reading any text as either kind must not fail in another way than by an error.
    let (lease, candidate) = (
        serde_json::from_str::<Lease>(text),
        serde_json::from_str::<LeaseCandidate>(text),
    );
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return ScriptDocument::Other;
    };
    let kind = |value: &Value| value["kind"].as_str().unwrap_or_default().to_owned();
    if value.get("type").is_some() {
        return match kind(&value["object"]).as_str() {
            "LeaseCandidate" => {
                frame(text).map_or(ScriptDocument::Other, ScriptDocument::Candidates)
            }
            _ => frame(text).map_or(ScriptDocument::Other, ScriptDocument::Leases),
        };
    }
    match kind(&value).as_str() {
        "LeaseList" => list(text).map_or(ScriptDocument::Other, ScriptDocument::Leases),
        "LeaseCandidateList" => {
            list(text).map_or(ScriptDocument::Other, ScriptDocument::Candidates)
        }
        "LeaseCandidate" => candidate.map_or(ScriptDocument::Other, |candidate| {
            ScriptDocument::Candidates(Notification::Seen(candidate, NewsSource::Watch))
        }),
        "Lease" => lease.map_or(ScriptDocument::Other, |lease| {
            ScriptDocument::Leases(Notification::Seen(lease, NewsSource::Watch))
        }),
        _ => match value {
            Value::Object(map) if map.len() == 1 => map
                .into_iter()
                .next()
                .map_or(ScriptDocument::Other, |(name, about)| {
                    ScriptDocument::Order(name, about)
                }),
            _ => ScriptDocument::Other,
        },
    }
}

fn frame<T: DeserializeOwned>(text: &str) -> Option<Notification<T>> {
    match serde_json::from_str(text).ok()? {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            Some(Notification::Seen(object, NewsSource::Watch))
        }
        WatchEvent::Deleted(object) => Some(Notification::Deleted(object)),
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    }
}

fn list<T: DeserializeOwned + Clone>(text: &str) -> Option<Notification<T>> {
    let list: ObjectList<T> = serde_json::from_str(text).ok()?;
    Some(Notification::Listed(list.items))
}
