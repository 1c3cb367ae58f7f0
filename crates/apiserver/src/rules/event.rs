//! The rules of Events: lenient in the core group for the sake of old clients, strict in `events.k8s.io`.

use elector_api::{FieldError, names};
use serde_json::Value;

use crate::kind::Kind;
use crate::store::{ObjectFields, metadata_text};

/// The longest texts, in bytes.
const LONGEST_OVERRIDE: usize = 128;
const LONGEST_NOTE: usize = 1024;

/// The errors of a new event.
pub(super) fn create_errors(kind: &Kind, new: &ObjectFields) -> Vec<FieldError> {
    let mut errors = lenient_errors(kind, new);
    if kind.group.is_empty() {
        return errors;
    }
    errors.extend(series_errors(new));
    if is_none(new, "eventTime") {
        errors.push(FieldError::required("eventTime", ""));
    }
    let severity = text(new, "type");
    if !matches!(severity, "Normal" | "Warning") {
        errors.push(FieldError::invalid(
            "type",
            "",
            format!("has invalid value: {severity}"),
        ));
    }
    let source = new["source"]
        .as_object()
        .is_some_and(|source| !source.is_empty());
    let unset = [
        ("firstTimestamp", !is_none(new, "firstTimestamp")),
        ("lastTimestamp", !is_none(new, "lastTimestamp")),
        ("count", !is_none(new, "count")),
        ("source", source),
    ];
    let set = unset.into_iter().filter(|(_, set)| *set);
    errors.extend(set.map(|(field, _)| FieldError::invalid(field, "", "needs to be unset")));
    errors
}

/// The errors of an update: in the new form only a series may change.
pub(super) fn update_errors(
    kind: &Kind,
    new: &ObjectFields,
    old: &ObjectFields,
) -> Vec<FieldError> {
    const FIXED: [&str; 13] = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    let mut errors = lenient_errors(kind, new);
    if kind.group.is_empty() {
        return errors;
    }
    if new.get("series") != old.get("series") {
        errors.extend(series_errors(new));
    }
    for field in FIXED
        .into_iter()
        .filter(|field| new.get(*field) != old.get(*field))
    {
        let shown = if field == "reportingComponent" {
            "reportingController"
        } else {
            field
        };
        let value = new.get(field).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(shown, value, "field is immutable"));
    }
    errors
}

/// The rules of both forms. An event with an eventTime is held to more.
fn lenient_errors(kind: &Kind, new: &ObjectFields) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = metadata_text(new, "namespace");
    let about = new["involvedObject"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let mut elsewhere = || {
        let error = FieldError::invalid(
            "involvedObject.namespace",
            about,
            "does not match event.namespace",
        );
        errors.push(error);
    };
    if is_none(new, "eventTime") {
        let agrees = if about.is_empty() {
            namespace == "default"
        } else {
            about == namespace
        };
        if !agrees {
            elsewhere();
        }
        return errors;
    }
    if about.is_empty() && !matches!(namespace, "default" | "kube-system") {
        elsewhere();
    }
    let controller = text(new, "reportingComponent");
    let shown = if kind.group.is_empty() {
        "reportingComponent"
    } else {
        "reportingController"
    };
    if controller.is_empty() {
        errors.push(FieldError::required(shown, ""));
    }
    let rules = names::qualified_name(controller).into_iter();
    errors.extend(rules.map(|rule| FieldError::invalid(shown, controller, rule)));
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(new, field);
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        if value.len() > LONGEST_OVERRIDE {
            let rule = format!("can have at most {LONGEST_OVERRIDE} characters");
            errors.push(FieldError::invalid(field, "", rule));
        }
    }
    if text(new, "message").len() > LONGEST_NOTE {
        let rule = format!("can have at most {LONGEST_NOTE} characters");
        errors.push(FieldError::invalid("message", "", rule));
    }
    errors
}

fn series_errors(new: &ObjectFields) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(series) = new.get("series") {
        if series["count"].as_i64().unwrap_or_default() < 2 {
            errors.push(FieldError::invalid(
                "series.count",
                "",
                "should be at least 2",
            ));
        }
        if series["lastObservedTime"].is_null() {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    errors
}

fn is_none(event: &ObjectFields, field: &str) -> bool {
    event.get(field).is_none_or(Value::is_null)
}

fn text<'a>(event: &'a ObjectFields, field: &str) -> &'a str {
    event.get(field).and_then(Value::as_str).unwrap_or_default()
}
