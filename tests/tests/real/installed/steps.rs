//! The steps that each overlay goes through, and their times.

use elector_tests::rig::Testbed;

pub(crate) const INSTALL: &str = "install";
pub(crate) const ELECT: &str = "elect";
pub(crate) const HAND_OVER: &str = "hand over";
pub(crate) const CRASH: &str = "crash";
pub(crate) const UPGRADE: &str = "upgrade";
pub(crate) const BACK: &str = "back";
pub(crate) const UNINSTALL: &str = "uninstall";

/// All of them, in the order of a life.
pub(crate) const STEPS: &[&str] = &[INSTALL, ELECT, HAND_OVER, CRASH, UPGRADE, BACK, UNINSTALL];

/// Puts each step that a testbed of an overlay has measured into the table of overlays.
pub(super) fn report(outer: &Testbed, testbed: &Testbed, overlay: &str) {
    for (name, figure) in testbed.figures() {
        if let Some(step) = STEPS.iter().find(|step| **step == name) {
            outer.cell(overlay, step, figure);
        }
    }
}
