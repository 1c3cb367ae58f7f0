//! The fields of every served kind, with their numbers in protocol buffers; 0 for what is not in them.

mod event;

use crate::gotime::TimeLayout;
use crate::schema::{Field, Struct, Type};

pub(crate) use event::{EVENT, NEW_EVENT};

const MICRO: Type = Type::Time(TimeLayout::Micro);
const SECONDS: Type = Type::Time(TimeLayout::Seconds);

const fn field(name: &'static str, tag: u32, kind: Type, about: &'static str) -> Field {
    Field {
        name,
        tag,
        kind,
        keep: false,
        about,
    }
}

const fn kept(name: &'static str, tag: u32, kind: Type, about: &'static str) -> Field {
    Field {
        name,
        tag,
        kind,
        keep: true,
        about,
    }
}

/// A field of every object: the API that it is of.
const API_VERSION: Field = field(
    "apiVersion",
    0,
    Type::Text,
    "The group and version of this object.",
);
const KIND: Field = field("kind", 0, Type::Text, "The kind of this object.");
const METADATA: Field = kept(
    "metadata",
    1,
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
            5,
            Type::Text,
            "The group and version of the owner.",
        ),
        kept("kind", 1, Type::Text, "The kind of the owner."),
        kept("name", 3, Type::Text, "The name of the owner."),
        kept("uid", 4, Type::Text, "The uid of the owner."),
        field(
            "controller",
            6,
            Type::Bool,
            "Whether the owner manages this object.",
        ),
        field(
            "blockOwnerDeletion",
            7,
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
            1,
            Type::Text,
            "The name, unique among its kind in the namespace.",
        ),
        field(
            "generateName",
            2,
            Type::Text,
            "The beginning of a name that the server completes.",
        ),
        field("namespace", 3, Type::Text, "The namespace."),
        field("selfLink", 4, Type::Dropped, "No longer in use."),
        field(
            "uid",
            5,
            Type::Text,
            "What tells this object from another one of the same name. Set by the server.",
        ),
        field(
            "resourceVersion",
            6,
            Type::Text,
            "The revision, compared when an update is written.",
        ),
        field(
            "generation",
            7,
            Type::Int64,
            "Counts the changes of what is wished for, where the server maintains it.",
        ),
        field(
            "creationTimestamp",
            8,
            SECONDS,
            "When it was created. Set by the server.",
        ),
        field(
            "deletionTimestamp",
            9,
            SECONDS,
            "When its deletion was asked for. Set by the server.",
        ),
        field(
            "deletionGracePeriodSeconds",
            10,
            Type::OptionalInt64,
            "How long it may take to end. Set by the server.",
        ),
        field("labels", 11, Type::Texts, "What selectors select by."),
        field(
            "annotations",
            12,
            Type::Texts,
            "What tools keep with the object.",
        ),
        field(
            "ownerReferences",
            13,
            Type::Structs(&OWNER_REFERENCE, "uid"),
            "The objects with which this one goes.",
        ),
        field(
            "finalizers",
            14,
            Type::TextList,
            "Who must agree before it is gone.",
        ),
        field(
            "managedFields",
            17,
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
            2,
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
            1,
            Type::OptionalText,
            "Who leads; empty for nobody.",
        ),
        field(
            "leaseDurationSeconds",
            2,
            Type::OptionalInt32,
            "How long a record counts after it was last seen to change.",
        ),
        field(
            "acquireTime",
            3,
            MICRO,
            "When the present term was granted.",
        ),
        field("renewTime", 4, MICRO, "When the holder last wrote."),
        field(
            "leaseTransitions",
            5,
            Type::OptionalInt32,
            "The term: how often leadership was granted.",
        ),
        field(
            "strategy",
            6,
            Type::OptionalText,
            "How the leader is chosen. Kept where the feature gate is on.",
        ),
        field(
            "preferredHolder",
            7,
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
        kept("spec", 2, Type::Struct(&CANDIDATE_SPEC), "What it offers."),
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
            6,
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
            2,
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
            6,
            Type::TextList,
            "How it wishes the leader to be chosen, best first.",
        ),
    ],
};

const LEASE_NAME: Field = field(
    "leaseName",
    1,
    Type::Text,
    "The Lease that it wants to hold. Immutable.",
);
const PING_TIME: Field = field(
    "pingTime",
    2,
    MICRO,
    "When it was last asked whether it is there.",
);
const RENEW_TIME: Field = field("renewTime", 3, MICRO, "When it last said that it is there.");
const BINARY_VERSION: Field = field(
    "binaryVersion",
    4,
    Type::Text,
    "The semantic version of its binary.",
);
const EMULATION_VERSION: Field = field(
    "emulationVersion",
    5,
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
        kept(
            "spec",
            2,
            Type::Struct(&NAMESPACE_SPEC),
            "What is wished for.",
        ),
        kept("status", 3, Type::Struct(&NAMESPACE_STATUS), "What is."),
    ],
};

static NAMESPACE_SPEC: Struct = Struct {
    name: "NamespaceSpec",
    package: "v1",
    fields: &[field(
        "finalizers",
        1,
        Type::TextList,
        "Who must agree before it is gone.",
    )],
};

static NAMESPACE_STATUS: Struct = Struct {
    name: "NamespaceStatus",
    package: "v1",
    fields: &[field("phase", 1, Type::Text, "Active or Terminating.")],
};

/// The options of a delete, where they come as protocol buffers.
pub(crate) static DELETE_OPTIONS: Struct = Struct {
    name: "DeleteOptions",
    package: "v1",
    fields: &[
        API_VERSION,
        KIND,
        field(
            "gracePeriodSeconds",
            1,
            Type::OptionalInt64,
            "How long it may take to end.",
        ),
        field(
            "preconditions",
            2,
            Type::Struct(&PRECONDITIONS),
            "What must hold.",
        ),
        field(
            "propagationPolicy",
            4,
            Type::Text,
            "What becomes of what it owns.",
        ),
        field("dryRun", 5, Type::TextList, "All, for a dry run."),
    ],
};

static PRECONDITIONS: Struct = Struct {
    name: "Preconditions",
    package: "v1",
    fields: &[
        field("uid", 1, Type::Text, "The uid that it must have."),
        field(
            "resourceVersion",
            2,
            Type::Text,
            "The revision that it must have.",
        ),
    ],
};
