//! The two forms of an Event. Stored is the old one, of the core group.

use std::borrow::Cow;

use serde_json::Value;

use crate::kind::{Bucket, Kind};
use crate::schema::Type;
use crate::store::ObjectFields;

/// The fields whose names differ, old and new.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An object as its kind shows it.
pub(crate) fn shown<'a>(kind: &Kind, stored: &'a ObjectFields) -> Cow<'a, ObjectFields> {
    if !is_new(kind) {
        return Cow::Borrowed(stored);
    }
    let mut event = ObjectFields::new();
    for (name, value) in stored {
        let name = NAMES
            .iter()
            .find(|(old, _)| old == name)
            .map_or(name.as_str(), |(_, new)| new);
        // The new form leaves empty texts out.
        let left_out = *value == "" && kind.schema.field(name).is_some_and(|field| !field.keep);
        if !left_out {
            event.insert(name.to_owned(), value.clone());
        }
    }
    Cow::Owned(event)
}

/// An object as it is stored, made of what a client sent.
pub(crate) fn stored(kind: &Kind, sent: ObjectFields) -> ObjectFields {
    if !is_new(kind) {
        return sent;
    }
    let mut event = ObjectFields::new();
    for (name, value) in sent {
        let name = NAMES
            .iter()
            .find(|(_, new)| *new == name)
            .map_or(name.as_str(), |(old, _)| old);
        event.insert(name.to_owned(), value);
    }
    for name in ["reportingComponent", "reportingInstance"] {
        event.entry(name).or_insert_with(|| Value::from(""));
    }
    event
}

fn is_new(kind: &Kind) -> bool {
    kind.bucket == Bucket::Events
        && matches!(
            kind.schema.field("note").map(|field| field.kind),
            Some(Type::Text)
        )
}
