//! Recordings as people have them: watch events, objects, lists and the events of candidates, in any mix.

mod position;
mod scan;

use std::collections::{BTreeMap, BTreeSet};

use elector_api::{CandidateApi, Lease, LeaseCandidate, creation_time, parse_time};
use elector_protocol::{ResourceVersion, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

pub use self::position::Position;
use self::scan::{TextPart, scan};
use crate::entry::{EntryContent, Event, HistoryEntry};
use crate::history::{Beginning, History, Times, TraceCoverage};

/// Reads recordings, one source after the other, into one [`History`].
///
/// It takes what `kubectl get leases -w -o json --output-watch-events` prints, the same with the time at which each
/// event was received in a field `at` (RFC 3339, or seconds since 1970), single objects, lists, and the lines that a
/// candidate prints for its events.
///
/// ```
/// use elector_verify::RecordingReader;
///
/// let mut reader = RecordingReader::default();
/// reader.read("trace", r#"{"event": "start", "name": "a", "time": "2026-01-01T00:00:00Z"}"#);
/// reader.read("watch", "no JSON");
/// let (history, errors) = reader.finish();
/// assert_eq!(history.entries().len(), 1);
/// assert_eq!(errors[0].to_string(), "watch: line 1: neither a JSON object nor a part of one");
/// ```
#[derive(Debug, Default)]
pub struct RecordingReader {
    /// With the time of receipt, where the recording has it.
    objects: Vec<(Option<Timestamp>, EntryContent)>,
    /// Revisions of Leases that a watch brought as changes, so that there is none missing before them.
    followed: BTreeSet<ResourceVersion>,
    events: Vec<HistoryEntry>,
    errors: Vec<ReadError>,
}

/// Something that could not be read, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source}: {position}: {why}", source = .of)]
pub struct ReadError {
    /// The name of the source.
    pub of: String,
    /// Where in it.
    pub position: Position,
    /// The rule that is broken.
    pub why: String,
}

/// The change of an object, by its watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchChange {
    /// It was there, and perhaps for long: a list says so, or a watch that has just begun.
    Listed,
    /// It changed.
    Changed,
    /// It was deleted.
    Deleted,
}

/// The longest message on one thing that cannot be read, in characters.
const LONGEST_WHY: usize = 400;

/// A clock that is a day ahead of all others is none.
const DAY_MICROS: i64 = 86_400_000_000;

// === impl RecordingReader ===

impl RecordingReader {
    /// Reads a source; `of` names it in errors.
    pub fn read(&mut self, of: &str, text: &str) {
        for found in scan(text) {
            match found {
                TextPart::Document { position, value } => {
                    for why in self.document(value) {
                        self.add_error(of, position, why);
                    }
                }
                TextPart::Unreadable { position, why } => self.add_error(of, position, why),
            }
        }
    }

    /// The history that was read, and the errors.
    ///
    /// Objects without a time of receipt get the newest time that had been written by then, and the history is one of
    /// [`Times::Written`].
    pub fn finish(mut self) -> (History, Vec<ReadError>) {
        let received = self.objects.iter().all(|(at, _)| at.is_some());
        let times = if received {
            Times::Seen
        } else {
            Times::Written
        };
        self.objects
            .sort_by_cached_key(|(_, content)| content.version());
        let gaps = gaps(&self.objects, &self.followed);
        let mut entries = date(self.objects);
        entries.append(&mut self.events);
        // Files are read one after the other; what they tell happened at the same time.
        entries.sort_by_key(|entry| entry.at);
        let mut history = History::from(entries)
            .with_times(times)
            .with_beginning(Beginning::Midway)
            .with_trace_coverage(TraceCoverage::Partial);
        for version in gaps {
            history.gap_before(version);
        }
        (history, self.errors)
    }

    fn add_error(&mut self, of: &str, position: Position, mut why: String) {
        let of = of.to_owned();
        // A quote from a recording may be a megabyte of it.
        if let Some((end, _)) = why.char_indices().nth(LONGEST_WHY) {
            why.truncate(end);
            why.push('…');
        }
        self.errors.push(ReadError { of, position, why });
    }

    /// Takes in a document; what is wrong with it.
    fn document(&mut self, document: Value) -> Vec<String> {
        if let Some(Value::Array(items)) = document.get("items") {
            return self.list(&document, items);
        }
        self.single(document).err().into_iter().collect()
    }

    fn list(&mut self, list: &Value, items: &[Value]) -> Vec<String> {
        let of_list = |field: &str| list.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, api_version) = (of_list("kind"), of_list("apiVersion"));
        let kind = kind.strip_suffix("List").unwrap_or_default();
        let mut faults = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut item = item.clone();
            // The items of a typed list leave their kind to the list.
            if let (Some(object), false) = (item.as_object_mut(), kind.is_empty()) {
                object.entry("kind").or_insert_with(|| kind.into());
                object
                    .entry("apiVersion")
                    .or_insert_with(|| api_version.into());
            }
            if let Err(why) = self.object(None, WatchChange::Listed, item) {
                faults.push(format!("item {}: {why}", index + 1));
            }
        }
        faults
    }

    fn single(&mut self, document: Value) -> Result<(), String> {
        if let Some(event) = document.get("event") {
            // They say nothing of the beginning and the end of work and belief.
            if event == "renewed" || event == "stopping" {
                return Ok(());
            }
            let line = document.to_string();
            let (at, event) = Event::parse(&line).ok_or(
                "an event of a candidate needs event (start, leading, work-stopped, lost or killed), name and time",
            )?;
            let content = EntryContent::Event(event);
            self.events.push(HistoryEntry { at, content });
            return Ok(());
        }
        if document.get("object").is_some() {
            return self.watch_event(document);
        }
        self.object(None, WatchChange::Changed, document)
    }

    fn watch_event(&mut self, mut event: Value) -> Result<(), String> {
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        let change = match event.get("type").and_then(Value::as_str) {
            Some("ADDED") => WatchChange::Listed,
            Some("MODIFIED") => WatchChange::Changed,
            Some("DELETED") => WatchChange::Deleted,
            Some("BOOKMARK") => return Ok(()),
            Some("ERROR") => {
                let message = object.get("message").and_then(Value::as_str);
                return Err(format!(
                    "the watch ended in an error: {}",
                    message.unwrap_or("without a message")
                ));
            }
            _ => return Err("a watch event needs a type: ADDED, MODIFIED or DELETED".to_owned()),
        };
        let at = match event.get("at") {
            None | Some(Value::Null) => None,
            Some(at) => {
                let time = time(at).ok_or("at must be an RFC 3339 time, or seconds since 1970")?;
                Some(time)
            }
        };
        self.object(at, change, object)
    }

    fn object(
        &mut self,
        at: Option<Timestamp>,
        change: WatchChange,
        object: Value,
    ) -> Result<(), String> {
        let text = |field: &str| {
            object
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let content = match (text("kind"), text("apiVersion")) {
            ("Lease", Lease::API_VERSION) => {
                let lease = Lease::from_value(object);
                check_identified("Lease", &lease.metadata)?;
                EntryContent::lease(lease, change == WatchChange::Deleted)
            }
            ("LeaseCandidate", version) if CandidateApi::of_api_version(version).is_some() => {
                let candidate = LeaseCandidate::from_value(object);
                check_identified("LeaseCandidate", &candidate.metadata)?;
                EntryContent::candidate(candidate, change == WatchChange::Deleted)
            }
            (kind @ ("Lease" | "LeaseCandidate"), version) => {
                return Err(format!("{kind} of unknown apiVersion {version:?}"));
            }
            ("", _) => {
                return Err(
                    "neither a Kubernetes object, nor a watch event, nor an event of a candidate"
                        .to_owned(),
                );
            }
            // Anything else may stand in a recording of mixed kinds.
            _ => return Ok(()),
        };
        if change == WatchChange::Changed {
            self.followed.extend(content.version());
        }
        self.objects.push((at, content));
        Ok(())
    }
}

/// Refuses an object without the fields that tell one revision from another.
fn check_identified(kind: &str, metadata: &ObjectMeta) -> Result<(), String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
    let of = format!("{kind} {namespace}/{name}");
    if name.is_empty() {
        return Err(format!("{of}: metadata.name: Required value"));
    }
    if text(&metadata.uid).is_empty() {
        return Err(format!("{of}: metadata.uid: Required value"));
    }
    let version = text(&metadata.resource_version);
    if version.parse::<u64>().is_err() {
        return Err(format!(
            "{of}: metadata.resourceVersion: Invalid value: {version:?}: must be an integer"
        ));
    }
    Ok(())
}

/// RFC 3339, or seconds since 1970 with a fraction, as jq's `now`.
fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => parse_time(text).ok(),
        Value::Number(seconds) => {
            let micros = seconds.as_f64()? * 1e6;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what is too large is no time, which is checked"
            )]
            Timestamp::from_micros(micros as i64)
        }
        _ => None,
    }
}

/// The revisions of Leases that are only known to have been there, although their object was known before.
fn gaps(
    objects: &[(Option<Timestamp>, EntryContent)],
    followed: &BTreeSet<ResourceVersion>,
) -> Vec<ResourceVersion> {
    let mut known = BTreeSet::new();
    let mut gaps = Vec::new();
    for (_, content) in objects {
        if let (EntryContent::Lease(_, lease), Some(version)) = (content, content.version())
            && !known.insert(&lease.metadata.uid)
            && !followed.contains(&version)
        {
            gaps.push(version);
        }
    }
    gaps
}

/// Gives each object, in the order of their versions, a time.
fn date(objects: Vec<(Option<Timestamp>, EntryContent)>) -> Vec<HistoryEntry> {
    let mut written: BTreeMap<(bool, String, String), Option<Timestamp>> = BTreeMap::new();
    let mut newest: Option<Timestamp> = None;
    let mut entries = Vec::with_capacity(objects.len());
    for (received, content) in objects {
        let at = received.or_else(|| {
            let (key, renewed, created) = renewal(&content)?;
            let news = match written.insert(key, renewed) {
                // The first revision may be of any age, but it is not older than its object.
                None => renewed.max(created),
                Some(before) => renewed.filter(|_| renewed != before),
            };
            news.filter(|news| {
                newest.is_none_or(|newest| news.as_micros() - newest.as_micros() < DAY_MICROS)
            })
        });
        newest = newest.max(at);
        if let Some(at) = received.or(newest) {
            entries.push(HistoryEntry { at, content });
        } else {
            let at = Timestamp::MIN;
            entries.push(HistoryEntry { at, content });
        }
    }
    entries
}

type Renewal = ((bool, String, String), Option<Timestamp>, Option<Timestamp>);

/// Which object it is, when its writer renewed it, and when it was created.
fn renewal(content: &EntryContent) -> Option<Renewal> {
    let (is_lease, metadata, renewed) = match content {
        EntryContent::Lease(_, lease) => (true, &lease.metadata, lease.spec.renew_time),
        EntryContent::Candidate(_, candidate) => {
            (false, &candidate.metadata, candidate.spec.renew_time)
        }
        EntryContent::LeaseGone(..)
        | EntryContent::CandidateGone(..)
        | EntryContent::Event(_)
        | EntryContent::Note(_) => {
            return None;
        }
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = (is_lease, text(&metadata.namespace), text(&metadata.name));
    Some((key, renewed, creation_time(metadata)))
}

#[cfg(test)]
mod tests;
