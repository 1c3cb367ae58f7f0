//! Tables for people: the API server's printer columns.

use elector_api::age;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kind::{Bucket, Kind};
use crate::store::ObjectFields;

/// A column: its name, the field that it shows, what it says of itself.
struct Column {
    name: &'static str,
    shows: Shows,
    about: &'static str,
    /// Shown with `-o wide` only.
    wide: bool,
}

enum Shows {
    Name,
    /// A text by its path below the object.
    Text(&'static [&'static str]),
    /// A time by its path, as how long ago it was.
    Ago(&'static [&'static str]),
    /// When an event was first and last seen.
    FirstSeen,
    LastSeen,
    /// The number of its occurrences.
    Count,
    /// The component that reports it.
    Reporter,
    /// `kind/name` of what an event is about.
    Regarding,
}

const fn column(name: &'static str, shows: Shows, about: &'static str) -> Column {
    Column {
        name,
        shows,
        about,
        wide: false,
    }
}

const fn wide(column: Column) -> Column {
    Column {
        wide: true,
        ..column
    }
}

const NAME: Column = column(
    "Name",
    Shows::Name,
    "The name, unique among its kind in the namespace.",
);
const AGE: Column = column(
    "Age",
    Shows::Ago(&["metadata", "creationTimestamp"]),
    "How long ago it was created.",
);

static LEASE: [Column; 3] = [
    NAME,
    column(
        "Holder",
        Shows::Text(&["spec", "holderIdentity"]),
        "Who leads; empty for nobody.",
    ),
    AGE,
];

static CANDIDATE: [Column; 5] = [
    NAME,
    column(
        "LeaseName",
        Shows::Text(&["spec", "leaseName"]),
        "The Lease that it wants to hold.",
    ),
    column(
        "BinaryVersion",
        Shows::Text(&["spec", "binaryVersion"]),
        "The version of its binary.",
    ),
    column(
        "EmulationVersion",
        Shows::Text(&["spec", "emulationVersion"]),
        "The version that it behaves as.",
    ),
    AGE,
];

static CUSTOM_CANDIDATE: [Column; 7] = [
    NAME,
    column(
        "Lease",
        Shows::Text(&["spec", "leaseName"]),
        "The Lease that it wants to hold.",
    ),
    column(
        "Binary",
        Shows::Text(&["spec", "binaryVersion"]),
        "The version of its binary.",
    ),
    column(
        "Emulation",
        Shows::Text(&["spec", "emulationVersion"]),
        "The version that it behaves as.",
    ),
    column(
        "Strategy",
        Shows::Text(&["spec", "strategy"]),
        "How it wishes the leader to be chosen.",
    ),
    column(
        "Answered",
        Shows::Ago(&["spec", "renewTime"]),
        "How long ago it last said that it is there.",
    ),
    AGE,
];

static NAMESPACE: [Column; 3] = [
    NAME,
    column(
        "Status",
        Shows::Text(&["status", "phase"]),
        "Active or Terminating.",
    ),
    AGE,
];

static EVENT: [Column; 10] = [
    column(
        "Last Seen",
        Shows::LastSeen,
        "How long ago it last happened.",
    ),
    column("Type", Shows::Text(&["type"]), "Normal or Warning."),
    column("Reason", Shows::Text(&["reason"]), "Why, in one word."),
    column("Object", Shows::Regarding, "What it is about."),
    wide(column(
        "Subobject",
        Shows::Text(&["involvedObject", "fieldPath"]),
        "The part of it.",
    )),
    wide(column("Source", Shows::Reporter, "Who reports.")),
    column("Message", Shows::Text(&["message"]), "What happened."),
    wide(column(
        "First Seen",
        Shows::FirstSeen,
        "How long ago it first happened.",
    )),
    wide(column("Count", Shows::Count, "How often it happened.")),
    wide(NAME),
];

static ANY: [Column; 2] = [NAME, AGE];

/// The definitions of a kind's columns.
pub(crate) fn definitions(kind: &Kind) -> Value {
    let columns = of(kind).iter().map(|column| {
        let format = if matches!(column.shows, Shows::Name) {
            "name"
        } else {
            ""
        };
        let kind = match column.shows {
            Shows::Ago(_) if kind.custom => "date",
            _ => "string",
        };
        json!({
            "name": column.name, "type": kind, "format": format, "description": column.about,
            "priority": i32::from(column.wide),
        })
    });
    columns.collect()
}

/// The cells of an object's row.
pub(crate) fn cells(kind: &Kind, fields: &ObjectFields, now: Timestamp) -> Value {
    let first = |paths: &[&[&str]]| {
        let mut texts = paths.iter().map(|path| text(fields, path));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    };
    let cells = of(kind).iter().map(|column| match column.shows {
        Shows::Name => text(fields, &["metadata", "name"]).into(),
        Shows::Text(path) => text(fields, path).into(),
        Shows::Ago(path) => ago(text(fields, path), now).into(),
        Shows::FirstSeen => ago(first(&[&["firstTimestamp"], &["eventTime"]]), now).into(),
        Shows::LastSeen => {
            let series: &[&str] = &["series", "lastObservedTime"];
            ago(
                first(&[
                    series,
                    &["lastTimestamp"],
                    &["firstTimestamp"],
                    &["eventTime"],
                ]),
                now,
            )
            .into()
        }
        Shows::Count => {
            let series = fields.get("series").and_then(|series| series.get("count"));
            series
                .or(fields.get("count"))
                .cloned()
                .unwrap_or_else(|| 1.into())
        }
        Shows::Reporter => {
            let component = first(&[&["source", "component"], &["reportingComponent"]]);
            match first(&[&["source", "host"], &["reportingInstance"]]) {
                "" => component.into(),
                instance => Value::from(format!("{component}, {instance}")),
            }
        }
        Shows::Regarding => {
            let part = |name| text(fields, &["involvedObject", name]);
            match (part("kind").to_lowercase(), part("name")) {
                (kind, "") => kind.into(),
                (kind, name) => format!("{kind}/{name}").into(),
            }
        }
    });
    cells.collect()
}

fn of(kind: &Kind) -> &'static [Column] {
    match kind.bucket {
        Bucket::Leases => &LEASE,
        Bucket::Candidates => &CANDIDATE,
        Bucket::CustomCandidates => &CUSTOM_CANDIDATE,
        Bucket::Namespaces => &NAMESPACE,
        Bucket::Events => &EVENT,
        Bucket::Other(_) => &ANY,
    }
}

fn text<'a>(fields: &'a ObjectFields, path: &[&str]) -> &'a str {
    let mut parts = path.iter();
    let first = parts.next().and_then(|part| fields.get(*part));
    let value = parts.fold(first, |value, part| value.and_then(|value| value.get(part)));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// The age of a time, `<unknown>` where the object has none.
fn ago(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => age(now.as_second() - time.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}
