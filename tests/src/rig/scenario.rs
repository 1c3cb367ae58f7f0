//! A scenario, and what it needs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_verify::Implementation;
use futures::future::BoxFuture;

use crate::rig::site::ClusterMode;
use crate::rig::testbed::Testbed;

/// The body of a scenario. The record of the testbed is judged after it has ended.
pub(super) type ScenarioBody =
    Arc<dyn Fn(Arc<Testbed>) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// A scenario on one kind of cluster with one kind of candidates.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) mode: ClusterMode,
    pub(super) implementation: Implementation,
    pub(super) cluster_choice: ClusterChoice,
    pub(super) flag: RequiredFlag,
    /// False where it runs with `--all-modes` only.
    pub(super) every_change: bool,
    /// It runs beside no other.
    pub(super) alone: bool,
    pub(super) lasts: Duration,
    pub(super) run: ScenarioBody,
}

/// The cluster on which a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterChoice {
    /// A cluster that others use too, with an elector that has been up for long enough.
    Shared,
    /// A cluster of its own, without an elector.
    Own,
}

/// The flag without which a scenario is left out, also where it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredFlag {
    /// It takes a minute or two, and runs for every change.
    Nothing,
    /// `--long`: it takes minutes.
    Long,
    /// `--upgrade-from FOLDER`: it needs an earlier version of Elector, with its manifests.
    UpgradeFrom,
}

// === impl Scenario ===

impl Scenario {
    pub(super) fn full_name(&self) -> String {
        let mode = self.mode.to_string().replace(' ', "_");
        match self.implementation {
            Implementation::Elector => format!("{}::{mode}", self.name),
            Implementation::ClientGo => format!("{}::{mode}::client_go", self.name),
        }
    }

    /// Its namespace, and the folder of its logs.
    pub(super) fn namespace(&self) -> String {
        self.full_name().replace("::", "-").replace('_', "-")
    }
}
