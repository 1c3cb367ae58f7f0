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

/// A table of structs. Each has its name and its package, the fields that it shares with others, and its own, with their
/// numbers; one that is `kept` is written although it is empty.
macro_rules! structs {
    ($($(#[$about:meta])* $seen:vis $id:ident = $name:literal $package:literal [$($shared:ident),*] {
        $($field:ident $field_name:literal = $tag:literal, $kind:expr, $meaning:literal;)*
    })*) => {
        $(
            $(#[$about])*
            $seen static $id: Struct = Struct {
                name: $name,
                package: $package,
                fields: &[$($shared,)* $($field($field_name, $tag, $kind, $meaning)),*],
                open: false,
            };
        )*
    };
}
use structs;

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

/// An object of a kind that this server was not made for.
pub(crate) static ANY_OBJECT: Struct = Struct {
    name: "Object",
    package: "v1",
    fields: &[API_VERSION, KIND, METADATA],
    open: true,
};

structs! {
    /// An owner in the metadata.
    pub(crate) OWNER_REFERENCE = "OwnerReference" "v1" [] {
        kept "apiVersion" = 5, Type::Text, "The group and version of the owner.";
        kept "kind" = 1, Type::Text, "The kind of the owner.";
        kept "name" = 3, Type::Text, "The name of the owner.";
        kept "uid" = 4, Type::Text, "The uid of the owner.";
        field "controller" = 6, Type::Bool, "Whether the owner manages this object.";
        field "blockOwnerDeletion" = 7, Type::Bool, "Whether the owner waits for this object when it is deleted.";
    }

    /// The metadata of any object.
    pub(crate) OBJECT_META = "ObjectMeta" "v1" [] {
        field "name" = 1, Type::Text, "The name, unique among its kind in the namespace.";
        field "generateName" = 2, Type::Text, "The beginning of a name that the server completes.";
        field "namespace" = 3, Type::Text, "The namespace.";
        field "selfLink" = 4, Type::Dropped, "No longer in use.";
        field "uid" = 5, Type::Text, "What tells this object from another one of the same name. Set by the server.";
        field "resourceVersion" = 6, Type::Text, "The revision, compared when an update is written.";
        field "generation" = 7, Type::Int64, "Counts the changes of what is wished for, where the server maintains it.";
        field "creationTimestamp" = 8, SECONDS, "When it was created. Set by the server.";
        field "deletionTimestamp" = 9, SECONDS, "When its deletion was asked for. Set by the server.";
        field "deletionGracePeriodSeconds" = 10, Type::OptionalInt64, "How long it may take to end. Set by the server.";
        field "labels" = 11, Type::Texts, "What selectors select by.";
        field "annotations" = 12, Type::Texts, "What tools keep with the object.";
        field "ownerReferences" = 13, Type::Structs(&OWNER_REFERENCE, "uid"), "The objects with which this one goes.";
        field "finalizers" = 14, Type::TextList, "Who must agree before it is gone.";
        field "managedFields" = 17, Type::Dropped, "Who set which field; this server does not keep it.";
    }

    /// `coordination.k8s.io/v1` Lease.
    pub(crate) LEASE = "Lease" "v1" [API_VERSION, KIND, METADATA] {
        kept "spec" = 2, Type::Struct(&LEASE_SPEC), "The record of leadership.";
    }

    LEASE_SPEC = "LeaseSpec" "v1" [] {
        field "holderIdentity" = 1, Type::OptionalText, "Who leads; empty for nobody.";
        field "leaseDurationSeconds" = 2, Type::OptionalInt32, "How long a record counts after it was last seen to change.";
        field "acquireTime" = 3, MICRO, "When the present term was granted.";
        field "renewTime" = 4, MICRO, "When the holder last wrote.";
        field "leaseTransitions" = 5, Type::OptionalInt32, "The term: how often leadership was granted.";
        field "strategy" = 6, Type::OptionalText, "How the leader is chosen. Kept where the feature gate is on.";
        field "preferredHolder" = 7, Type::OptionalText, "Whom the holder is asked to make room for. Kept where the feature gate is on.";
    }

    /// LeaseCandidate, v1beta1 and v1alpha2.
    pub(crate) CANDIDATE = "LeaseCandidate" "v1beta1" [API_VERSION, KIND, METADATA] {
        kept "spec" = 2, Type::Struct(&CANDIDATE_SPEC), "What it offers.";
    }

    CANDIDATE_SPEC = "LeaseCandidateSpec" "v1beta1" [] {
        field "leaseName" = 1, Type::Text, "The Lease that it wants to hold. Immutable.";
        field "pingTime" = 2, MICRO, "When it was last asked whether it is there.";
        field "renewTime" = 3, MICRO, "When it last said that it is there.";
        field "binaryVersion" = 4, Type::Text, "The semantic version of its binary.";
        field "emulationVersion" = 5, Type::Text, "The semantic version that it behaves as.";
        field "strategy" = 6, Type::Text, "How it wishes the leader to be chosen.";
    }

    /// LeaseCandidate v1alpha1.
    pub(crate) CANDIDATE_V1ALPHA1 = "LeaseCandidate" "v1alpha1" [API_VERSION, KIND, METADATA] {
        kept "spec" = 2, Type::Struct(&CANDIDATE_SPEC_V1ALPHA1), "What it offers.";
    }

    CANDIDATE_SPEC_V1ALPHA1 = "LeaseCandidateSpec" "v1alpha1" [] {
        field "leaseName" = 1, Type::Text, "The Lease that it wants to hold. Immutable.";
        field "pingTime" = 2, MICRO, "When it was last asked whether it is there.";
        field "renewTime" = 3, MICRO, "When it last said that it is there.";
        field "binaryVersion" = 4, Type::Text, "The semantic version of its binary.";
        field "emulationVersion" = 5, Type::Text, "The semantic version that it behaves as.";
        field "preferredStrategies" = 6, Type::TextList, "How it wishes the leader to be chosen, best first.";
    }

    /// `v1` Namespace.
    pub(crate) NAMESPACE = "Namespace" "v1" [API_VERSION, KIND, METADATA] {
        kept "spec" = 2, Type::Struct(&NAMESPACE_SPEC), "What is wished for.";
        kept "status" = 3, Type::Struct(&NAMESPACE_STATUS), "What is.";
    }

    NAMESPACE_SPEC = "NamespaceSpec" "v1" [] {
        field "finalizers" = 1, Type::TextList, "Who must agree before it is gone.";
    }

    NAMESPACE_STATUS = "NamespaceStatus" "v1" [] {
        field "phase" = 1, Type::Text, "Active or Terminating.";
    }

    /// The options of a delete, where they come as protocol buffers.
    pub(crate) DELETE_OPTIONS = "DeleteOptions" "v1" [API_VERSION, KIND] {
        field "gracePeriodSeconds" = 1, Type::OptionalInt64, "How long it may take to end.";
        field "preconditions" = 2, Type::Struct(&PRECONDITIONS), "What must hold.";
        field "propagationPolicy" = 4, Type::Text, "What becomes of what it owns.";
        field "dryRun" = 5, Type::TextList, "All, for a dry run.";
    }

    PRECONDITIONS = "Preconditions" "v1" [] {
        field "uid" = 1, Type::Text, "The uid that it must have.";
        field "resourceVersion" = 2, Type::Text, "The revision that it must have.";
    }
}
