//! Answers, freed of what differs between any two servers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// An answer as it came.
#[derive(Clone, Debug)]
pub(super) struct RawAnswer {
    pub(super) status: u16,
    /// The headers that matter.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// An answer that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparableAnswer {
    /// The request, as the case has it.
    pub request: String,
    /// Status and headers, then each line of the body.
    pub lines: Vec<String>,
}

/// The numbers of one case's uids and revisions.
#[derive(Debug, Default)]
struct Placeholders {
    uids: BTreeMap<String, usize>,
    revisions: BTreeMap<u64, usize>,
}

/// Beginnings of names that the cases let the server complete.
const GENERATED: [&str; 2] = ["A-", "gen-"];

/// Brings the answers of one case into a form that is equal wherever the servers agree.
pub(super) fn comparable(answers: &[(String, RawAnswer)]) -> Vec<ComparableAnswer> {
    let bodies: Vec<_> = answers.iter().map(|(_, raw)| parts(&raw.body)).collect();
    let names = Placeholders::of(bodies.iter().flatten());
    answers
        .iter()
        .zip(bodies)
        .map(|((request, raw), parts)| {
            let mut lines = vec![raw.status.to_string()];
            lines.extend(
                raw.headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}")),
            );
            if parts.is_empty() && !raw.body.is_empty() {
                lines.push(format!("text {:?}", raw.body));
            }
            for mut part in parts {
                if !is_passing_bookmark(&part) {
                    names.replace(&mut part, &[]);
                    lines.push(part.to_string());
                }
            }
            ComparableAnswer {
                request: request.clone(),
                lines,
            }
        })
        .collect()
}

/// The JSON values of a body: one, or those of a watch. None where it is no JSON.
fn parts(body: &str) -> Vec<Value> {
    let parts = serde_json::Deserializer::from_str(body).into_iter();
    parts.collect::<Result<_, _>>().unwrap_or_default()
}

/// A bookmark that says how far the server is, which is a matter of time.
fn is_passing_bookmark(part: &Value) -> bool {
    part["type"] == "BOOKMARK" && part["object"]["metadata"]["annotations"].is_null()
}

// === impl Placeholders ===

impl Placeholders {
    /// Numbers uids as they appear, and revisions in their order.
    fn of<'a>(parts: impl Iterator<Item = &'a Value>) -> Self {
        let (mut names, mut revisions) = (Self::default(), BTreeSet::new());
        for part in parts {
            names.collect(part, &mut revisions);
        }
        names.revisions = revisions.into_iter().zip(1..).collect();
        names
    }

    fn collect(&mut self, value: &Value, revisions: &mut BTreeSet<u64>) {
        match value {
            Value::Object(fields) => {
                let is_list =
                    fields.contains_key("items") || fields.contains_key("columnDefinitions");
                let is_bookmark = fields.get("type").is_some_and(|kind| kind == "BOOKMARK");
                let revision = fields
                    .get("metadata")
                    .and_then(|metadata| metadata.get("resourceVersion"));
                if let Some(Value::String(revision)) = revision.filter(|_| !is_list)
                    && let Ok(revision) = revision.parse()
                {
                    revisions.insert(revision);
                }
                if let Some(Value::String(uid)) = fields.get("uid")
                    && uid.len() == 36
                    && !uid.starts_with("00000000")
                {
                    let next = self.uids.len() + 1;
                    self.uids.entry(uid.clone()).or_insert(next);
                }
                if !is_bookmark {
                    fields
                        .values()
                        .for_each(|value| self.collect(value, revisions));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, revisions)),
            _ => {}
        }
    }

    /// Replaces everything that differs. `path` is that of the value.
    fn replace(&self, value: &mut Value, path: &[&str]) {
        match value {
            Value::Object(fields) => {
                fields.remove("managedFields");
                let is_list =
                    fields.contains_key("items") || fields.contains_key("columnDefinitions");
                let is_bookmark = fields
                    .get("annotations")
                    .is_some_and(|one| one.get("k8s.io/initial-events-end").is_some());
                for (name, value) in fields.iter_mut() {
                    let path: Vec<_> = path.iter().copied().chain([name.as_str()]).collect();
                    self.replace(value, &path);
                    if name == "metadata" && is_list && value.get("resourceVersion").is_some() {
                        value["resourceVersion"] = "<of the list>".into();
                    }
                }
                if is_bookmark {
                    fields.insert("resourceVersion".to_owned(), "<of the list>".into());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item, path)),
            Value::String(text) => {
                let known = match path {
                    [.., "creationTimestamp" | "deletionTimestamp"] => Some("<time>".to_owned()),
                    [.., "columnDefinitions", "description"] => Some("<text>".to_owned()),
                    [.., "continue"] => Some("<token>".to_owned()),
                    [.., "cells"] if is_age(text) => Some("<age>".to_owned()),
                    [.., "resourceVersion"] => {
                        text.parse().ok().map(|revision| self.revision(revision))
                    }
                    _ => None,
                };
                *text = known.unwrap_or_else(|| self.in_text(text));
            }
            _ => {}
        }
    }

    fn revision(&self, revision: u64) -> String {
        match self.revisions.get(&revision) {
            Some(number) => format!("<revision {number}>"),
            None => "<revision>".to_owned(),
        }
    }

    /// Replaces what is known in a message.
    fn in_text(&self, text: &str) -> String {
        let mut text = without_object(text);
        for (uid, number) in &self.uids {
            text = text.replace(uid, &format!("<uid {number}>"));
        }
        for revision in self.revisions.keys() {
            text = text.replace(
                &format!("({revision})"),
                &format!("({})", self.revision(*revision)),
            );
        }
        if let Some((before, _)) = text.split_once(", current: ") {
            text = format!("{before}, current: <revision>");
        }
        for beginning in GENERATED {
            text = without_ending(&text, beginning);
        }
        text
    }
}

/// A patched object that an error repeats has its fields in an order that means nothing.
fn without_object(text: &str) -> String {
    let marks = ("Invalid value: \"{", "}\": ");
    match (text.find(marks.0), text.rfind(marks.1)) {
        (Some(start), Some(end)) if start < end => {
            format!(
                "{}Invalid value: <object>: {}",
                &text[..start],
                &text[end + marks.1.len()..]
            )
        }
        _ => text.to_owned(),
    }
}

/// Replaces the five letters that complete a name.
fn without_ending(text: &str, beginning: &str) -> String {
    let mut whole = String::new();
    for (index, part) in text.split(beginning).enumerate() {
        if index > 0 {
            whole.push_str(beginning);
        }
        let ending = part.get(..5).filter(|ending| {
            ending
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        });
        match ending.filter(|_| index > 0) {
            Some(ending) => {
                whole.push_str("<ending>");
                whole.push_str(&part[ending.len()..]);
            }
            None => whole.push_str(part),
        }
    }
    whole
}

/// True of a cell with an age: `5s`, `3h12m`.
fn is_age(text: &str) -> bool {
    let parts: Vec<_> = text.split_inclusive(['s', 'm', 'h', 'd', 'y']).collect();
    let is_part = |part: &&str| {
        let digits = part.trim_end_matches(['s', 'm', 'h', 'd', 'y']);
        digits.len() + 1 == part.len()
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    !parts.is_empty() && parts.iter().all(is_part)
}
