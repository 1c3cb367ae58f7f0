//! Objects from a file: what `kubectl get` prints, as JSON or YAML, in any of its forms.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use elector_api::{
    CandidateApi, EventObject, HoldBackEvent, Lease, LeaseCandidate, Malformed, creation_time,
    validate_candidate,
};
use elector_protocol::elector::{self, PreferenceField, Settings};
use elector_protocol::{CandidateRecord, LeaseKey, LeaseSnapshot, Rejection, Timestamp};
use serde::Deserialize as _;
use serde_json::Value;

use super::group::GroupsByName;
use crate::input;

/// Everything that is to be explained.
#[derive(Debug, Default)]
pub(crate) struct InputObjects {
    /// Each lease that was chosen.
    pub(crate) elections: BTreeMap<LeaseKey, elector::Objects>,
    /// Leases that are among them and cannot be read, with the reason.
    pub(crate) unreadable: BTreeMap<LeaseKey, String>,
    /// Notes on annotations that cannot be read, and are ignored.
    pub(crate) notes: BTreeMap<LeaseKey, Vec<String>>,
    /// The server's support for `spec.preferredHolder`, as far as the objects show it.
    pub(crate) preference_field: PreferenceField,
    /// Candidates that name what no Lease can be called, so that they belong to no election.
    misnamed: Vec<(LeaseKey, CandidateRecord)>,
    /// The groups of leases, once they are assigned.
    pub(crate) groups: GroupsByName,
    /// Objects that could not be used, one line each.
    pub(crate) faults: Vec<String>,
}

/// The length to which a name that no Lease can have is shown, in characters; no server serves a longer one.
const LONGEST_NAME: usize = 253;

/// Which leases are explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseChoice {
    /// Those that a candidate names.
    WithCandidates,
    /// Those, and the Leases that were elected before: with a strategy, or a token of Elector's candidates.
    Elected,
    /// The one of this name, whether a candidate names it or not.
    Named(String),
}

/// Collects objects of all kinds in any order.
#[derive(Debug)]
pub(crate) struct Collector {
    choice: LeaseChoice,
    /// The revisions of each Lease, in the order of the input.
    leases: BTreeMap<LeaseKey, Vec<Lease>>,
    /// The hold-backs in Events of electors.
    hold_backs: Vec<HoldBackEvent>,
    objects: InputObjects,
}

// === impl InputObjects ===

impl InputObjects {
    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path, choice: LeaseChoice) -> anyhow::Result<Self> {
        let (name, bytes) = input::read(path)?;
        let text = String::from_utf8(bytes).with_context(|| format!("read {name}"))?;
        let documents = parse(&text).with_context(|| format!("read {name} as JSON or YAML"))?;
        let mut collector = Collector::new(choice);
        for (index, document) in documents.into_iter().enumerate() {
            let place = format!("{name}: document {}", index + 1);
            match document {
                Ok(document) => collector.document(document, &place),
                Err(why) => collector.objects.faults.push(format!("{place}: {why}")),
            }
        }
        Ok(collector.finish())
    }

    /// Shows each candidate that names what no Lease can be called, under that name.
    pub(crate) fn show_misnamed(&mut self) {
        for (key, candidate) in std::mem::take(&mut self.misnamed) {
            let election = self.elections.entry(key).or_default();
            election.candidates.push(candidate);
        }
    }

    /// Assigns the parts of groups, before any of them is dropped.
    pub(crate) fn assign_groups(&mut self, now: Timestamp, settings: &Settings) {
        self.groups = elector::assign_groups(&mut self.elections, now, settings);
    }

    /// Drops the elections outside of a namespace or with another name.
    pub(crate) fn keep(&mut self, namespace: Option<&str>, lease: Option<&str>) {
        self.elections.retain(|key, _| {
            namespace.is_none_or(|wanted| wanted == &*key.namespace)
                && lease.is_none_or(|wanted| wanted == &*key.name)
        });
    }
}

// === impl LeaseChoice ===

impl LeaseChoice {
    /// The one of that name, or those that a candidate names.
    pub(crate) fn named(lease: Option<&str>) -> Self {
        lease.map_or(Self::WithCandidates, |name| Self::Named(name.to_owned()))
    }

    /// True where a Lease is chosen that no candidate names.
    fn has(&self, lease: &Lease) -> bool {
        match self {
            Self::WithCandidates => false,
            Self::Elected => {
                let annotations = lease.metadata.annotations.as_ref();
                let noted = |name| annotations.is_some_and(|all| all.contains_key(name));
                lease.spec.strategy.is_some()
                    || noted(elector_api::annotation::STRATEGY)
                    || noted(elector_api::annotation::TOKEN)
            }
            Self::Named(name) => lease.metadata.name.as_ref() == Some(name),
        }
    }
}

// === impl Collector ===

impl Collector {
    /// An empty collection.
    pub(crate) fn new(choice: LeaseChoice) -> Self {
        Self {
            choice,
            leases: BTreeMap::new(),
            hold_backs: Vec::new(),
            objects: InputObjects::default(),
        }
    }

    /// Takes in a Lease, or another revision of one.
    pub(crate) fn lease(&mut self, lease: Lease) {
        self.leases.entry(lease.key()).or_default().push(lease);
    }

    /// Takes in a candidate.
    pub(crate) fn candidate(&mut self, candidate: &LeaseCandidate) {
        match candidate.candidate() {
            Ok(found) => self.admit(candidate, found),
            Err(fault) => {
                self.fault(&fault);
                let shown = misnamed(candidate, &fault);
                self.objects.misnamed.extend(shown);
            }
        }
    }

    /// Takes in a candidate that no server has judged: one that a server would not take is rejected.
    fn unjudged_candidate(&mut self, candidate: &LeaseCandidate) {
        let error = validate_candidate(candidate).into_iter().next();
        match (candidate.candidate(), error) {
            (Ok(found), Some(error)) if found.spec.is_ok() => {
                self.admit(candidate, rejected(found, error.to_string()));
            }
            _ => self.candidate(candidate),
        }
    }

    fn admit(&mut self, candidate: &LeaseCandidate, found: CandidateRecord) {
        let key = candidate.lease_key();
        for note in candidate.notes() {
            self.note(key.clone(), format!("candidate {}: {note}", found.name));
        }
        let election = self.objects.elections.entry(key).or_default();
        election.candidates.push(found);
    }

    /// Takes in what an elector reported in an Event.
    pub(crate) fn hold_back(&mut self, event: HoldBackEvent) {
        self.hold_backs.push(event);
    }

    /// Joins leases, candidates and Events. Leases that are not chosen are left out.
    pub(crate) fn finish(mut self) -> InputObjects {
        for (key, mut revisions) in std::mem::take(&mut self.leases) {
            let Some(lease) = revisions.pop() else {
                continue;
            };
            if self.objects.preference_field == PreferenceField::Unknown {
                self.objects.preference_field = shown_by(&lease);
            }
            if self.choice.has(&lease) {
                self.objects.elections.entry(key.clone()).or_default();
            }
            let Some(election) = self.objects.elections.get_mut(&key) else {
                continue;
            };
            election.group = lease.group().ok().flatten().map(Arc::from);
            let notes = lease.notes();
            match lease.snapshot() {
                Ok(snapshot) => {
                    let created = creation_time(&lease.metadata);
                    let earlier = revisions.iter().filter_map(|lease| lease.snapshot().ok());
                    let is_earlier = |lease: &LeaseSnapshot| lease.version < snapshot.version;
                    election.earlier = earlier.filter(is_earlier).collect();
                    election.lease = Some((snapshot, created.unwrap_or(Timestamp::MIN)));
                }
                Err(fault) => {
                    self.fault(&fault);
                    let fault = fault.to_string();
                    self.objects.unreadable.insert(key.clone(), fault);
                }
            }
            for note in notes {
                self.note(key.clone(), note.to_string());
            }
        }
        for event in self.hold_backs {
            let Some(election) = self.objects.elections.get_mut(&event.lease) else {
                continue;
            };
            // A Lease of the same name that was there before is another one.
            let uid = election.lease.as_ref().map(|(lease, _)| &lease.uid);
            if event.uid.is_none() || event.uid.as_ref() == uid {
                election.notices.push(event.notice);
            }
        }
        self.objects
    }

    fn note(&mut self, key: LeaseKey, note: String) {
        self.objects.notes.entry(key).or_default().push(note);
    }

    fn fault(&mut self, fault: &Malformed) {
        self.objects.faults.push(fault.to_string());
    }

    /// One document of the input: an object, or a list of them.
    fn document(&mut self, document: Value, place: &str) {
        let kind = text(&document, "/kind");
        if let Some(Value::Array(items)) = document.get("items").filter(|_| kind.ends_with("List"))
        {
            let of_list = kind.strip_suffix("List").unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                let mut item = item.clone();
                // The items of a typed list leave their kind to the list.
                if let (Some(object), false) = (item.as_object_mut(), of_list.is_empty()) {
                    object.entry("kind").or_insert_with(|| of_list.into());
                    object
                        .entry("apiVersion")
                        .or_insert_with(|| text(&document, "/apiVersion").into());
                }
                self.object(item, &format!("{place}, item {}", index + 1));
            }
            return;
        }
        self.object(document, place);
    }

    fn object(&mut self, mut object: Value, place: &str) {
        let kind = text(&object, "/kind");
        let api_version = text(&object, "/apiVersion");
        complete(&mut object);
        match (kind.as_str(), api_version.as_str()) {
            ("Lease", "coordination.k8s.io/v1") => self.lease(Lease::from_value(object)),
            ("LeaseCandidate", version) if CandidateApi::of_api_version(version).is_some() => {
                self.unjudged_candidate(&LeaseCandidate::from_value(object));
            }
            ("Event", "v1" | "events.k8s.io/v1") => {
                let event = EventObject::deserialize(object);
                self.hold_backs
                    .extend(event.ok().and_then(|event| event.hold_back()));
            }
            ("Lease" | "LeaseCandidate", version) => {
                self.objects
                    .faults
                    .push(format!("{place}: {kind} of unknown apiVersion {version:?}"));
            }
            ("", _) => self
                .objects
                .faults
                .push(format!("{place}: not a Kubernetes object, it has no kind")),
            // Anything else may stand in a list of mixed kinds.
            _ => {}
        }
    }
}

/// A candidate that nothing is wrong with but the name of its lease, with that name.
fn misnamed(candidate: &LeaseCandidate, fault: &Malformed) -> Option<(LeaseKey, CandidateRecord)> {
    let mut named = candidate.clone();
    let name = std::mem::replace(&mut named.spec.lease_name, "any".to_owned());
    let found = named.candidate().ok().filter(|_| !name.is_empty())?;
    let shown: String = name.chars().take(LONGEST_NAME).collect();
    let key = LeaseKey::new(&*named.lease_key().namespace, shown);
    Some((key, rejected(found, fault.error.to_string())))
}

fn rejected(candidate: CandidateRecord, why: String) -> CandidateRecord {
    CandidateRecord {
        spec: Err(Rejection::Malformed(why)).into(),
        ..candidate
    }
}

/// A Lease's evidence on its server: a strategy in the annotation alone was dropped from the field.
fn shown_by(lease: &Lease) -> PreferenceField {
    let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    if given(&lease.spec.strategy) {
        return PreferenceField::Kept;
    }
    let annotations = lease.metadata.annotations.as_ref();
    if annotations
        .is_some_and(|annotations| annotations.contains_key(elector_api::annotation::STRATEGY))
    {
        return PreferenceField::Dropped;
    }
    PreferenceField::Unknown
}

/// Gives a hand-written object what only a server assigns; nothing is written, so nothing depends on it.
fn complete(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.entry("uid").or_insert_with(|| "none".into());
    metadata
        .entry("resourceVersion")
        .or_insert_with(|| "0".into());
    metadata
        .entry("namespace")
        .or_insert_with(|| "default".into());
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The documents of a text, each or what is wrong with it. Of JSON nothing can be read after one that is none.
fn parse(text: &str) -> anyhow::Result<Vec<Result<Value, String>>> {
    if text.trim_start().starts_with(['{', '[']) {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        return any_of(stream.map(|document| document.map_err(anyhow::Error::from)));
    }
    let documents = yaml_documents(text).into_iter().flat_map(|document| {
        match serde_saphyr::from_multiple::<Value>(document) {
            Ok(values) => values.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(anyhow::Error::from(error))],
        }
    });
    any_of(documents.filter(|document| !matches!(document, Ok(Value::Null))))
}

/// The parts of a text that begin with the marker of a document, which YAML has nowhere else at the begin of a line.
fn yaml_documents(text: &str) -> Vec<&str> {
    let starts = text.match_indices("\n---").map(|(index, _)| index + 1);
    let marks = |start: &usize| {
        text[start + 3..]
            .chars()
            .next()
            .is_none_or(char::is_whitespace)
    };
    let mut bounds: Vec<usize> = std::iter::once(0).chain(starts.filter(marks)).collect();
    bounds.push(text.len());
    bounds
        .windows(2)
        .map(|part| &text[part[0]..part[1]])
        .collect()
}

/// These documents, unless none of them can be read.
fn any_of(
    documents: impl Iterator<Item = anyhow::Result<Value>>,
) -> anyhow::Result<Vec<Result<Value, String>>> {
    let mut documents: Vec<_> = documents.collect();
    if !documents.is_empty() && documents.iter().all(Result::is_err) {
        documents.swap_remove(0)?;
    }
    let line = |error: anyhow::Error| {
        error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    Ok(documents
        .into_iter()
        .map(|document| document.map_err(line))
        .collect())
}
