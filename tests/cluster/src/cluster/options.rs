//! The options of a test cluster.

use std::path::PathBuf;

use clap::ArgAction;
use serde::{Deserialize, Serialize};

use crate::release::Release;

/// The kind of cluster to start, and the flags that ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// The folder of data, keys, kubeconfigs and logs [default: one that is removed at the end; of `up`, `cluster` in
    /// Elector's cache folder]
    #[arg(long, value_name = "PATH")]
    pub dir: Option<PathBuf>,

    /// Feature gate CoordinatedLeaderElection: `on`, and Kubernetes' own controller elects
    #[arg(long, default_value = "off", value_name = "on|off", action = ArgAction::Set, value_parser = parse_gate)]
    pub gate: bool,

    /// Serve LeaseCandidates: coordination.k8s.io/v1beta1, in older releases v1alpha2 or v1alpha1. The gate needs it
    #[arg(long = "serve-v1beta1", default_value_t = true, action = ArgAction::Set, value_name = "true|false",
          hide_possible_values = true)]
    pub serve_candidates: bool,

    /// Release of Kubernetes [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
    #[arg(long, value_name = "1.N")]
    pub kubernetes: Option<Release>,

    /// Port of the API server on 127.0.0.1 [default: a free one]
    #[arg(long)]
    pub port: Option<u16>,

    /// Let etcd wait for the disk, as in production and in benchmarks
    #[arg(long)]
    pub fsync: bool,

    /// A further flag for kube-apiserver, such as --apiserver-flag=--v=4; repeatable
    #[arg(
        long = "apiserver-flag",
        value_name = "FLAG",
        allow_hyphen_values = true
    )]
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

fn parse_gate(text: &str) -> Result<bool, &'static str> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be on or off"),
    }
}
