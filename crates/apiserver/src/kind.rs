//! The kinds that are served, and what sets each apart.

use crate::config::Config;
use crate::fields::{CANDIDATE, CANDIDATE_V1ALPHA1, EVENT, LEASE, NAMESPACE, NEW_EVENT};
use crate::schema::Struct;

/// Where objects are kept. Several versions of a kind share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bucket {
    Leases,
    Candidates,
    CustomCandidates,
    Namespaces,
    Events,
    /// The objects of a kind that this server was not made for, by its `plural.group`.
    Other(&'static str),
}

/// One kind in one version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) namespaced: bool,
    /// True if PUT makes an absent object.
    pub(crate) put_creates: bool,
    /// True if PUT needs no resourceVersion.
    pub(crate) blind_updates: bool,
    /// True if it plays a custom resource.
    pub(crate) custom: bool,
    /// True if `/status` is a resource of its own, and the only way to write the status.
    pub(crate) status: bool,
    /// True if a path named the plural, and no object has named the kind yet.
    pub(crate) guessed: bool,
    /// Since which and until which minor version of Kubernetes it is deprecated.
    pub(crate) deprecated: Option<(u32, u32)>,
    /// The hash of its storage version, as the API server publishes it.
    pub(crate) storage_hash: &'static str,
    pub(crate) bucket: Bucket,
    pub(crate) schema: &'static Struct,
}

/// The values that most of them share.
pub(crate) const BASE: Kind = Kind {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    namespaced: true,
    put_creates: false,
    blind_updates: false,
    custom: false,
    status: false,
    guessed: false,
    deprecated: None,
    storage_hash: "",
    bucket: Bucket::Leases,
    schema: &LEASE,
};

const NATIVE_CANDIDATE: Kind = Kind {
    group: COORDINATION,
    kind: "LeaseCandidate",
    plural: "leasecandidates",
    singular: "leasecandidate",
    put_creates: true,
    storage_hash: "lvME0iHWE20=",
    bucket: Bucket::Candidates,
    schema: &CANDIDATE,
    ..BASE
};

const CORE_EVENT: Kind = Kind {
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    put_creates: true,
    blind_updates: true,
    storage_hash: "r2yiGXH7wu8=",
    bucket: Bucket::Events,
    schema: &EVENT,
    ..BASE
};

const COORDINATION: &str = "coordination.k8s.io";

/// Every kind that can be served, the preferred version of a group first.
static ALL: [Kind; 8] = [
    Kind {
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short_names: &["ns"],
        namespaced: false,
        blind_updates: true,
        storage_hash: "Q3oi5N2YM8M=",
        bucket: Bucket::Namespaces,
        schema: &NAMESPACE,
        ..BASE
    },
    CORE_EVENT,
    Kind {
        group: COORDINATION,
        kind: "Lease",
        plural: "leases",
        singular: "lease",
        put_creates: true,
        storage_hash: "gqkMMb/YqFM=",
        ..BASE
    },
    Kind {
        version: "v1beta1",
        deprecated: Some((36, 39)),
        ..NATIVE_CANDIDATE
    },
    Kind {
        version: "v1alpha2",
        deprecated: Some((35, 38)),
        ..NATIVE_CANDIDATE
    },
    Kind {
        version: "v1alpha1",
        storage_hash: "VM2ILh8OBCI=",
        schema: &CANDIDATE_V1ALPHA1,
        ..NATIVE_CANDIDATE
    },
    Kind {
        group: "elector.dev",
        version: "v1alpha1",
        short_names: &["lcand"],
        put_creates: false,
        custom: true,
        storage_hash: "",
        bucket: Bucket::CustomCandidates,
        ..NATIVE_CANDIDATE
    },
    Kind {
        group: "events.k8s.io",
        schema: &NEW_EVENT,
        ..CORE_EVENT
    },
];

// === impl Bucket ===

impl Bucket {
    /// `plural.group` of the stored form.
    pub(crate) fn resource(self) -> String {
        if let Self::Other(resource) = self {
            return resource.to_owned();
        }
        let kind = ALL.iter().find(|kind| kind.bucket == self);
        kind.map(Kind::resource).unwrap_or_default()
    }

    /// The resource's part of a key in the store, as one error shows it.
    pub(crate) fn path(self) -> String {
        let path = match self {
            Self::Leases => "leases",
            Self::Candidates => "leasecandidates",
            Self::CustomCandidates => "elector.dev/leasecandidates",
            Self::Namespaces => "namespaces",
            Self::Events => "events",
            Self::Other(resource) => match resource.split_once('.') {
                Some((plural, group)) if is_custom_group(group) => {
                    return format!("{group}/{plural}");
                }
                Some((plural, _)) => plural,
                None => resource,
            },
        };
        path.to_owned()
    }
}

// === impl Kind ===

impl Kind {
    /// Every kind that such a server serves.
    pub(crate) fn served(config: &Config) -> Vec<&'static Self> {
        ALL.iter().filter(|kind| kind.is_served(config)).collect()
    }

    /// `group/version`, or the version alone in the core group.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `plural.group`, as errors name the resource.
    pub(crate) fn resource(&self) -> String {
        Self::in_group(self.plural, self.group)
    }

    /// `Kind.group`, as errors name the kind.
    pub(crate) fn group_kind(&self) -> String {
        Self::in_group(self.kind, self.home())
    }

    /// The group that validation names: that of the stored form.
    pub(crate) fn home(&self) -> &'static str {
        match self.bucket {
            Bucket::Events => "",
            _ => self.group,
        }
    }

    /// The warning with each answer of a deprecated version.
    pub(crate) fn deprecation(&self, minor: u32) -> Option<String> {
        let (since, until) = self.deprecated.filter(|(since, _)| minor >= *since)?;
        let (version, kind) = (self.api_version(), self.kind);
        Some(format!(
            "{version} {kind} is deprecated in v1.{since}+, unavailable in v1.{until}+"
        ))
    }

    /// The kind of namespaces themselves.
    pub(crate) fn namespace() -> &'static Self {
        &ALL[0]
    }

    /// Any kind of that name, served or not; the API server knows them all.
    pub(crate) fn known(group: &str, version: &str, kind: &str) -> Option<&'static Self> {
        ALL.iter().find(|one| {
            one.group == group && one.version == version && one.kind == kind && !one.custom
        })
    }

    /// The kinds that this server was made for, served or not, by their plural or by `plural.group`.
    pub(crate) fn own(resource: &str) -> impl Iterator<Item = &'static Self> {
        ALL.iter().filter(move |kind| kind.is_named(resource))
    }

    /// True if this server was made for a kind of that group.
    pub(crate) fn is_own_group(group: &str) -> bool {
        ALL.iter().any(|kind| kind.group == group)
    }

    /// True if that is its plural, or its `plural.group`.
    pub(crate) fn is_named(&self, resource: &str) -> bool {
        self.plural == resource || self.resource() == resource
    }

    /// True if that is the same kind in the same version, defined in another way perhaps.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let names = |kind: &Self| (kind.group, kind.version, kind.plural);
        names(self) == names(other)
    }

    /// True if the server counts the changes of what is wished for.
    pub(crate) fn has_generation(&self) -> bool {
        self.custom || self.status && !self.group.is_empty()
    }

    fn in_group(name: &str, group: &str) -> String {
        match group {
            "" => name.to_owned(),
            group => format!("{name}.{group}"),
        }
    }

    fn is_served(&self, config: &Config) -> bool {
        match self.bucket {
            Bucket::Candidates => config.native.serves(self.version),
            Bucket::CustomCandidates => config.custom_candidates,
            Bucket::Leases | Bucket::Namespaces | Bucket::Events | Bucket::Other(_) => true,
        }
    }
}

/// True if the kinds of a group come from definitions: the built-in ones have a short name, or one of Kubernetes itself.
pub(crate) fn is_custom_group(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NativeCandidates;

    #[test]
    fn the_versions_of_the_configuration_are_served() {
        let versions = |native, custom_candidates| {
            let config = Config {
                native,
                custom_candidates,
                ..Config::default()
            };
            let candidates = Kind::served(&config)
                .into_iter()
                .filter(|kind| kind.kind == "LeaseCandidate");
            candidates.map(Kind::api_version).collect::<Vec<_>>()
        };
        let expected = Vec::<String>::new();
        assert_eq!(versions(NativeCandidates::Absent, false), expected);
        let expected = ["coordination.k8s.io/v1alpha1"];
        assert_eq!(versions(NativeCandidates::V1Alpha1, false), expected);
        assert_eq!(
            versions(NativeCandidates::V1Beta1AndV1Alpha2, true),
            [
                "coordination.k8s.io/v1beta1",
                "coordination.k8s.io/v1alpha2",
                "elector.dev/v1alpha1"
            ]
        );
    }
}
