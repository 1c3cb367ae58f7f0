//! Each overlay from its first day to its last, run with the command and the identity that it ships: applied as one file
//! and deleted, and upgraded from an earlier version and taken back to it; one through the drain of a node.

mod candidates;
pub(crate) mod drained;
mod installation;
mod pod_template;
mod steps;
mod upgraded;
mod whole_life;

use elector_tests::rig::{ClusterMode, RequiredFlag, Suite};

use crate::{CLIENT_GO, CUSTOM, GATE_OFF, OURS};

pub(crate) use installation::RIGHTS_OF_THE_SITE;
pub(crate) use steps::STEPS;

use drained::node_is_drained;
use installation::NamespaceEnding::{ByKubernetes, OfAllElse};
use upgraded::upgraded_and_back;
use whole_life::whole_life;

/// The seconds of each.
const LASTS: u64 = 90;

pub(crate) fn add(suite: &mut Suite) {
    let gate_on: &[ClusterMode] = &[ClusterMode::GateOn];
    for (overlay, modes, applied, upgraded) in [
        (
            "namespaced",
            CUSTOM,
            "overlay_namespaced_applied_and_deleted",
            "overlay_namespaced_upgraded_and_back",
        ),
        (
            "crd",
            CUSTOM,
            "overlay_crd_applied_and_deleted",
            "overlay_crd_upgraded_and_back",
        ),
        (
            "native",
            GATE_OFF,
            "overlay_native_applied_and_deleted",
            "overlay_native_upgraded_and_back",
        ),
        (
            "replace-builtin",
            gate_on,
            "overlay_replace_builtin_applied_and_deleted",
            "overlay_replace_builtin_upgraded_and_back",
        ),
        (
            "control-plane",
            GATE_OFF,
            "overlay_control_plane_applied_and_deleted",
            "overlay_control_plane_upgraded_and_back",
        ),
    ] {
        // One of them runs for every change, without the controller of Kubernetes that ends its namespace.
        let (flag, ending) = match overlay {
            "namespaced" => (RequiredFlag::Nothing, OfAllElse),
            _ => (RequiredFlag::Long, ByKubernetes),
        };
        let life = move |outer| whole_life(outer, overlay, ending);
        let mut own = suite.own(CLIENT_GO, modes);
        own.add_with(flag, applied, LASTS, life);
        let upgrade = move |outer| upgraded_and_back(outer, overlay);
        let mut own = suite.own(OURS, modes);
        own.add_with(RequiredFlag::UpgradeFrom, upgraded, LASTS, upgrade);
    }
    let mut own = suite.own(OURS, GATE_OFF);
    own.add_long("a_node_is_drained", LASTS, node_is_drained);
}
