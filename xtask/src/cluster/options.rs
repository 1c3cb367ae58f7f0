//! The options of a test cluster.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::release::Release;

/// The kind of cluster to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The feature gate CoordinatedLeaderElection: on, Kubernetes' own controller elects. Default: off.
    pub gate: bool,
    /// True if LeaseCandidates are served in `coordination.k8s.io`: as v1beta1, before 1.33 as v1alpha2, in 1.31 as
    /// v1alpha1. The gate needs it. Default: true.
    pub serve_candidates: bool,
    /// The release; `None`, the default, takes what `KUBEBUILDER_ASSETS` holds, otherwise [`Release::DEFAULT`].
    pub kubernetes: Option<Release>,
    /// The port of the API server on 127.0.0.1. Default: a free one.
    pub port: Option<u16>,
    /// Where data, keys, kubeconfigs and logs lie. Default: a temporary folder that is removed at the end.
    pub dir: Option<PathBuf>,
    /// True if etcd waits for the disk, as it does in production and must for benchmarks. Default: false.
    pub fsync: bool,
    /// Further flags for kube-apiserver, as they are. Default: none.
    pub apiserver_flags: Vec<String>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            gate: false,
            serve_candidates: true,
            kubernetes: None,
            port: None,
            dir: None,
            fsync: false,
            apiserver_flags: Vec::new(),
        }
    }
}
