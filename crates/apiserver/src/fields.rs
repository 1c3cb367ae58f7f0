//! The fields of every served kind.

use crate::gotime::Layout;
use crate::schema::{Field, Struct, Type};

const MICRO: Type = Type::Time(Layout::Micro);
const SECONDS: Type = Type::Time(Layout::Seconds);

const fn field(name: &'static str, kind: Type, about: &'static str) -> Field {
    Field {
        name,
        kind,
        keep: false,
        about,
    }
}

const fn kept(name: &'static str, kind: Type, about: &'static str) -> Field {
    Field {
        name,
        kind,
        keep: true,
        about,
    }
}

/// What is found in every object: which API it is of.
const API_VERSION: Field = field(
    "apiVersion",
    Type::Text,
    "The group and version of this object.",
);
const KIND: Field = field("kind", Type::Text, "The kind of this object.");
const METADATA: Field = kept(
    "metadata",
    Type::Struct(&OBJECT_META),
    "Name, version, labels, annotations and owners.",
);

/// An owner in the metadata.
pub(crate) static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    package: "v1",
    fields: &[
        kept(
            "apiVersion",
            Type::Text,
            "The group and version of the owner.",
        ),
        kept("kind", Type::Text, "The kind of the owner."),
        kept("name", Type::Text, "The name of the owner."),
        kept("uid", Type::Text, "The uid of the owner."),
        field(
            "controller",
            Type::Bool,
            "Whether the owner manages this object.",
        ),
        field(
            "blockOwnerDeletion",
            Type::Bool,
            "Whether the owner waits for this object when it is deleted.",
        ),
    ],
};

/// The metadata of any object.
pub(crate) static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    package: "v1",
    fields: &[
        field(
            "name",
            Type::Text,
            "The name, unique among its kind in the namespace.",
        ),
        field(
            "generateName",
            Type::Text,
            "The beginning of a name that the server completes.",
        ),
        field("namespace", Type::Text, "The namespace."),
        field("selfLink", Type::Dropped, "No longer in use."),
        field(
            "uid",
            Type::Text,
            "What tells this object from another one of the same name. Set by the server.",
        ),
        field(
            "resourceVersion",
            Type::Text,
            "The revision, compared when an update is written.",
        ),
        field(
            "generation",
            Type::Int64,
            "Counts the changes of what is wished for, where the server maintains it.",
        ),
        field(
            "creationTimestamp",
            SECONDS,
            "When it was created. Set by the server.",
        ),
        field(
            "deletionTimestamp",
            SECONDS,
            "When its deletion was asked for. Set by the server.",
        ),
        field(
            "deletionGracePeriodSeconds",
            Type::Int64,
            "How long it may take to end. Set by the server.",
        ),
        field("labels", Type::Texts, "What selectors select by."),
        field(
            "annotations",
            Type::Texts,
            "What tools keep with the object.",
        ),
        field(
            "ownerReferences",
            Type::Structs(&OWNER_REFERENCE, "uid"),
            "The objects with which this one goes.",
        ),
        field(
            "finalizers",
            Type::TextList,
            "Who must agree before it is gone.",
        ),
        field(
            "managedFields",
            Type::Dropped,
            "Who set which field; this server does not keep it.",
        ),
    ],
};

/// `coordination.k8s.io/v1` Lease.
pub(crate) static LEASE: Struct = Struct {
    name: "Lease",
    package: "v1",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        kept(
            "spec",
            Type::Struct(&LEASE_SPEC),
            "The record of leadership.",
        ),
    ],
};

static LEASE_SPEC: Struct = Struct {
    name: "LeaseSpec",
    package: "v1",
    fields: &[
        field(
            "holderIdentity",
            Type::OptionalText,
            "Who leads; empty for nobody.",
        ),
        field(
            "leaseDurationSeconds",
            Type::Int32,
            "How long a record counts after it was last seen to change.",
        ),
        field("acquireTime", MICRO, "When the present term was granted."),
        field("renewTime", MICRO, "When the holder last wrote."),
        field(
            "leaseTransitions",
            Type::Int32,
            "The term: how often leadership was granted.",
        ),
        field(
            "strategy",
            Type::OptionalText,
            "How the leader is chosen. Kept where the feature gate is on.",
        ),
        field(
            "preferredHolder",
            Type::OptionalText,
            "Whom the holder is asked to make room for. Kept where the feature gate is on.",
        ),
    ],
};

/// LeaseCandidate, v1beta1 and v1alpha2.
pub(crate) static CANDIDATE: Struct = Struct {
    name: "LeaseCandidate",
    package: "v1beta1",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        kept("spec", Type::Struct(&CANDIDATE_SPEC), "What it offers."),
    ],
};

static CANDIDATE_SPEC: Struct = Struct {
    name: "LeaseCandidateSpec",
    package: "v1beta1",
    fields: &[
        LEASE_NAME,
        PING_TIME,
        RENEW_TIME,
        BINARY_VERSION,
        EMULATION_VERSION,
        field(
            "strategy",
            Type::Text,
            "How it wishes the leader to be chosen.",
        ),
    ],
};

/// LeaseCandidate v1alpha1.
pub(crate) static CANDIDATE_V1ALPHA1: Struct = Struct {
    name: "LeaseCandidate",
    package: "v1alpha1",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        kept(
            "spec",
            Type::Struct(&CANDIDATE_SPEC_V1ALPHA1),
            "What it offers.",
        ),
    ],
};

static CANDIDATE_SPEC_V1ALPHA1: Struct = Struct {
    name: "LeaseCandidateSpec",
    package: "v1alpha1",
    fields: &[
        LEASE_NAME,
        PING_TIME,
        RENEW_TIME,
        BINARY_VERSION,
        EMULATION_VERSION,
        field(
            "preferredStrategies",
            Type::TextList,
            "How it wishes the leader to be chosen, best first.",
        ),
    ],
};

const LEASE_NAME: Field = field(
    "leaseName",
    Type::Text,
    "The Lease that it wants to hold. Immutable.",
);
const PING_TIME: Field = field(
    "pingTime",
    MICRO,
    "When it was last asked whether it is there.",
);
const RENEW_TIME: Field = field("renewTime", MICRO, "When it last said that it is there.");
const BINARY_VERSION: Field = field(
    "binaryVersion",
    Type::Text,
    "The semantic version of its binary.",
);
const EMULATION_VERSION: Field = field(
    "emulationVersion",
    Type::Text,
    "The semantic version that it behaves as.",
);

/// `v1` Namespace.
pub(crate) static NAMESPACE: Struct = Struct {
    name: "Namespace",
    package: "v1",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        kept("spec", Type::Struct(&NAMESPACE_SPEC), "What is wished for."),
        kept("status", Type::Struct(&NAMESPACE_STATUS), "What is."),
    ],
};

static NAMESPACE_SPEC: Struct = Struct {
    name: "NamespaceSpec",
    package: "v1",
    fields: &[field(
        "finalizers",
        Type::TextList,
        "Who must agree before it is gone.",
    )],
};

static NAMESPACE_STATUS: Struct = Struct {
    name: "NamespaceStatus",
    package: "v1",
    fields: &[field("phase", Type::Text, "Active or Terminating.")],
};

static OBJECT_REFERENCE: Struct = Struct {
    name: "ObjectReference",
    package: "v1",
    fields: &[
        field("kind", Type::Text, "The kind."),
        field("namespace", Type::Text, "The namespace."),
        field("name", Type::Text, "The name."),
        field("uid", Type::Text, "The uid."),
        field("apiVersion", Type::Text, "The group and version."),
        field("resourceVersion", Type::Text, "The revision."),
        field("fieldPath", Type::Text, "A part of it."),
    ],
};

static EVENT_SOURCE: Struct = Struct {
    name: "EventSource",
    package: "v1",
    fields: &[
        field("component", Type::Text, "The component that reports."),
        field("host", Type::Text, "Where it runs."),
    ],
};

static EVENT_SERIES: Struct = Struct {
    name: "EventSeries",
    package: "v1",
    fields: &[
        field("count", Type::Int32, "How often it happened."),
        field("lastObservedTime", MICRO, "When it last happened."),
    ],
};

/// `v1` Event.
pub(crate) static EVENT: Struct = Struct {
    name: "Event",
    package: "v1",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        kept(
            "involvedObject",
            Type::Struct(&OBJECT_REFERENCE),
            "The object it is about.",
        ),
        field("reason", Type::Text, "Why, in one word."),
        field("message", Type::Text, "What happened."),
        kept("source", Type::Struct(&EVENT_SOURCE), "Who reports."),
        kept("firstTimestamp", SECONDS, "When it first happened."),
        kept("lastTimestamp", SECONDS, "When it last happened."),
        field("count", Type::Int32, "How often it happened."),
        field("type", Type::Text, "Normal or Warning."),
        kept("eventTime", MICRO, "When it first happened."),
        field("series", Type::Struct(&EVENT_SERIES), "Repetitions."),
        field("action", Type::Text, "What was done."),
        field(
            "related",
            Type::Struct(&OBJECT_REFERENCE),
            "A second object.",
        ),
        kept("reportingComponent", Type::Text, "Who reports."),
        kept("reportingInstance", Type::Text, "Which instance of it."),
    ],
};

/// `events.k8s.io/v1` Event.
pub(crate) static NEW_EVENT: Struct = Struct {
    name: "Event",
    package: "v1",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        kept("eventTime", MICRO, "When it first happened."),
        field("series", Type::Struct(&EVENT_SERIES), "Repetitions."),
        field("reportingController", Type::Text, "Who reports."),
        field("reportingInstance", Type::Text, "Which instance of it."),
        field("action", Type::Text, "What was done."),
        field("reason", Type::Text, "Why, in one word."),
        kept(
            "regarding",
            Type::Struct(&OBJECT_REFERENCE),
            "The object it is about.",
        ),
        field(
            "related",
            Type::Struct(&OBJECT_REFERENCE),
            "A second object.",
        ),
        field("note", Type::Text, "What happened."),
        field("type", Type::Text, "Normal or Warning."),
        kept(
            "deprecatedSource",
            Type::Struct(&EVENT_SOURCE),
            "Who reports, in the old form.",
        ),
        kept(
            "deprecatedFirstTimestamp",
            SECONDS,
            "When it first happened, in the old form.",
        ),
        kept(
            "deprecatedLastTimestamp",
            SECONDS,
            "When it last happened, in the old form.",
        ),
        field(
            "deprecatedCount",
            Type::Int32,
            "How often it happened, in the old form.",
        ),
    ],
};
