//! The kind of API server to play.

use std::collections::BTreeMap;

use crate::clock::WallClock;

/// The kind of API server. The default is a Kubernetes 1.36 with LeaseCandidates v1beta1 served and the gate off.
///
/// ```
/// use elector_apiserver::{ApiServer, Config, NativeCandidates};
///
/// let config = Config { native: NativeCandidates::Absent, custom_candidates: true, ..Config::default() };
/// let server = ApiServer::new(config);
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The feature gate CoordinatedLeaderElection: whether `spec.strategy` and `spec.preferredHolder` of a Lease are
    /// kept. This server elects no leaders, with or without the gate. Default: false.
    pub gate: bool,
    /// The feature gate ShardedListAndWatch: whether lists and watches heed `shardSelector`. Default: false.
    pub sharding: bool,
    /// Which LeaseCandidates of `coordination.k8s.io` are served. Default: v1beta1.
    pub native: NativeCandidates,
    /// True if `leasecandidates.elector.dev/v1alpha1` is served, as if its CRD were installed. Default: false.
    pub custom_candidates: bool,
    /// Which kinds are served beside Leases, LeaseCandidates, Namespaces and Events. Default: none.
    pub other_kinds: OtherKinds,
    /// The minor version of Kubernetes 1 that it claims to be, and whose warnings it gives. Default: 36.
    pub minor: u32,
    /// True if a namespace comes into being with its first object, as the admission plugin NamespaceAutoProvision
    /// has it. Default: false; `default`, `kube-system`, `kube-public` and `kube-node-lease` exist.
    pub auto_namespaces: bool,
    /// Bearer tokens, and the user of each. With none, any token and no token will do. Default: none.
    pub tokens: BTreeMap<String, String>,
    /// True if a request without a token is served when there are tokens. Default: true.
    pub anonymous: bool,
    /// The number of events of each resource that can be watched from behind; older ones answer 410. Default: 10 000.
    pub history: usize,
    /// The number of events that may wait for one watcher before it is cut off. Default: 1 000.
    pub watch_queue: usize,
    /// The seed of uids and generated names; one seed, one sequence. Default: 0.
    pub seed: u64,
    /// The source of creation and deletion times, and of the ages in tables. Default: the machine's clock.
    pub clock: WallClock,
}

/// Which kinds are served that this server was not made for. It keeps their fields as they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherKinds {
    /// None: their paths answer 404.
    #[default]
    Refused,
    /// The common built-in kinds, from ConfigMaps to CustomResourceDefinitions, and the kinds of the
    /// CustomResourceDefinitions that are created.
    Defined,
    /// These, and every other kind of a custom group from the first request for it on, as if its definition were there:
    /// the scope is that of the request, the kind that of the first object.
    Any,
}

/// Which LeaseCandidates of `coordination.k8s.io` are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeCandidates {
    /// None, as in every cluster without a `--runtime-config` for them.
    Absent,
    /// v1alpha1, with a list of preferred strategies: Kubernetes 1.31.
    V1Alpha1,
    /// v1alpha2: Kubernetes 1.32.
    V1Alpha2,
    /// v1beta1: Kubernetes 1.33 and later.
    #[default]
    V1Beta1,
    /// v1beta1 and v1alpha2, two versions of the same objects.
    V1Beta1AndV1Alpha2,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            gate: false,
            sharding: false,
            native: NativeCandidates::default(),
            custom_candidates: false,
            other_kinds: OtherKinds::default(),
            minor: 36,
            auto_namespaces: false,
            tokens: BTreeMap::new(),
            anonymous: true,
            history: 10_000,
            watch_queue: 1_000,
            seed: 0,
            clock: WallClock::system(),
        }
    }
}

// === impl NativeCandidates ===

impl NativeCandidates {
    /// True if this version is served.
    pub(crate) fn serves(self, version: &str) -> bool {
        match self {
            Self::Absent => false,
            Self::V1Alpha1 => version == "v1alpha1",
            Self::V1Alpha2 => version == "v1alpha2",
            Self::V1Beta1 => version == "v1beta1",
            Self::V1Beta1AndV1Alpha2 => matches!(version, "v1beta1" | "v1alpha2"),
        }
    }
}
