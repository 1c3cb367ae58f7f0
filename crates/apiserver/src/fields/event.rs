//! The fields of Events, in their old and their new form.

use super::{API_VERSION, KIND, METADATA, MICRO, SECONDS, field, kept, structs};
use crate::schema::{Struct, Type};

structs! {
    OBJECT_REFERENCE = "ObjectReference" "v1" [] {
        field "kind" = 1, Type::Text, "The kind.";
        field "namespace" = 2, Type::Text, "The namespace.";
        field "name" = 3, Type::Text, "The name.";
        field "uid" = 4, Type::Text, "The uid.";
        field "apiVersion" = 5, Type::Text, "The group and version.";
        field "resourceVersion" = 6, Type::Text, "The revision.";
        field "fieldPath" = 7, Type::Text, "A part of it.";
    }

    EVENT_SOURCE = "EventSource" "v1" [] {
        field "component" = 1, Type::Text, "The component that reports.";
        field "host" = 2, Type::Text, "Where it runs.";
    }

    EVENT_SERIES = "EventSeries" "v1" [] {
        field "count" = 1, Type::Int32, "How often it happened.";
        field "lastObservedTime" = 2, MICRO, "When it last happened.";
    }

    /// `v1` Event.
    pub(crate) EVENT = "Event" "v1" [API_VERSION, KIND, METADATA] {
        kept "involvedObject" = 2, Type::Struct(&OBJECT_REFERENCE), "The object it is about.";
        field "reason" = 3, Type::Text, "Why, in one word.";
        field "message" = 4, Type::Text, "What happened.";
        kept "source" = 5, Type::Struct(&EVENT_SOURCE), "Who reports.";
        kept "firstTimestamp" = 6, SECONDS, "When it first happened.";
        kept "lastTimestamp" = 7, SECONDS, "When it last happened.";
        field "count" = 8, Type::Int32, "How often it happened.";
        field "type" = 9, Type::Text, "Normal or Warning.";
        kept "eventTime" = 10, MICRO, "When it first happened.";
        field "series" = 11, Type::Struct(&EVENT_SERIES), "Repetitions.";
        field "action" = 12, Type::Text, "What was done.";
        field "related" = 13, Type::Struct(&OBJECT_REFERENCE), "A second object.";
        kept "reportingComponent" = 14, Type::Text, "Who reports.";
        kept "reportingInstance" = 15, Type::Text, "Which instance of it.";
    }

    /// `events.k8s.io/v1` Event.
    pub(crate) NEW_EVENT = "Event" "v1" [API_VERSION, KIND, METADATA] {
        kept "eventTime" = 2, MICRO, "When it first happened.";
        field "series" = 3, Type::Struct(&EVENT_SERIES), "Repetitions.";
        field "reportingController" = 4, Type::Text, "Who reports.";
        field "reportingInstance" = 5, Type::Text, "Which instance of it.";
        field "action" = 6, Type::Text, "What was done.";
        field "reason" = 7, Type::Text, "Why, in one word.";
        kept "regarding" = 8, Type::Struct(&OBJECT_REFERENCE), "The object it is about.";
        field "related" = 9, Type::Struct(&OBJECT_REFERENCE), "A second object.";
        field "note" = 10, Type::Text, "What happened.";
        field "type" = 11, Type::Text, "Normal or Warning.";
        kept "deprecatedSource" = 12, Type::Struct(&EVENT_SOURCE), "Who reports, in the old form.";
        kept "deprecatedFirstTimestamp" = 13, SECONDS, "When it first happened, in the old form.";
        kept "deprecatedLastTimestamp" = 14, SECONDS, "When it last happened, in the old form.";
        field "deprecatedCount" = 15, Type::Int32, "How often it happened, in the old form.";
    }
}
