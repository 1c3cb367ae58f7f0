//! Each overlay from its first day to its last, run with the command and the identity that it ships: applied as one file
//! and deleted, and upgraded from an earlier version and taken back to it; one through the drain of a node.

mod candidates;
mod controllers;
mod drained;
mod installation;
mod pod_template;
mod steps;
mod upgraded;
mod whole_life;

use std::time::Duration;

use elector_tests::rig::{ClusterChoice, ClusterMode, RequiredFlag, ScenarioBody, Suite};

use crate::{CLIENT_GO, OURS};

pub(crate) use steps::STEPS;

use drained::node_is_drained;
use installation::NamespaceEnding::{ByKubernetes, OfAllElse};
use upgraded::upgraded_and_back;
use whole_life::whole_life;

pub(crate) fn add(suite: &mut Suite) {
    let lasts = Duration::from_secs(90);
    let mut life = |flag, name, mode: ClusterMode, run: ScenarioBody| {
        suite.add_with_flag(
            flag,
            name,
            ClusterChoice::Own,
            CLIENT_GO,
            &[mode],
            lasts,
            run,
        );
    };
    life(
        RequiredFlag::Nothing,
        "overlay_namespaced_applied_and_deleted",
        ClusterMode::Custom,
        |outer| Box::pin(whole_life(outer, "namespaced", OfAllElse)),
    );
    life(
        RequiredFlag::Long,
        "overlay_crd_applied_and_deleted",
        ClusterMode::Custom,
        |outer| Box::pin(whole_life(outer, "crd", ByKubernetes)),
    );
    life(
        RequiredFlag::Long,
        "overlay_native_applied_and_deleted",
        ClusterMode::GateOff,
        |outer| Box::pin(whole_life(outer, "native", ByKubernetes)),
    );
    life(
        RequiredFlag::Long,
        "overlay_replace_builtin_applied_and_deleted",
        ClusterMode::GateOn,
        |outer| Box::pin(whole_life(outer, "replace-builtin", ByKubernetes)),
    );
    life(
        RequiredFlag::Long,
        "overlay_control_plane_applied_and_deleted",
        ClusterMode::GateOff,
        |outer| Box::pin(whole_life(outer, "control-plane", ByKubernetes)),
    );
    let mut upgrade = |name, mode: ClusterMode, run: ScenarioBody| {
        let flag = RequiredFlag::UpgradeFrom;
        suite.add_with_flag(flag, name, ClusterChoice::Own, OURS, &[mode], lasts, run);
    };
    upgrade(
        "overlay_namespaced_upgraded_and_back",
        ClusterMode::Custom,
        |outer| Box::pin(upgraded_and_back(outer, "namespaced")),
    );
    upgrade(
        "overlay_crd_upgraded_and_back",
        ClusterMode::Custom,
        |outer| Box::pin(upgraded_and_back(outer, "crd")),
    );
    upgrade(
        "overlay_native_upgraded_and_back",
        ClusterMode::GateOff,
        |outer| Box::pin(upgraded_and_back(outer, "native")),
    );
    upgrade(
        "overlay_replace_builtin_upgraded_and_back",
        ClusterMode::GateOn,
        |outer| Box::pin(upgraded_and_back(outer, "replace-builtin")),
    );
    upgrade(
        "overlay_control_plane_upgraded_and_back",
        ClusterMode::GateOff,
        |outer| Box::pin(upgraded_and_back(outer, "control-plane")),
    );
    suite.add_with_flag(
        RequiredFlag::Long,
        "a_node_is_drained",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        lasts,
        |outer| Box::pin(node_is_drained(outer)),
    );
}
