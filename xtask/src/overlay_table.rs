//! `cargo xtask overlays`: each overlay through all that is done with it, from the programs as they are shipped.

use anyhow::Result;

use crate::artefact;
use crate::build_profile::BuildProfile;
use crate::commands::{cargo, show_and_run};
use crate::earlier_version;
use crate::paths;

/// The prefix of the names of its scenarios.
const SCENARIOS: &str = "overlay_";
/// Where the table is recorded, from the root of the workspace.
const DOCUMENT: &str = "docs/install.md";

/// Runs each overlay, one after the other, upgraded from that revision too; with `record` the times go into the document.
///
/// # Errors
/// When a program cannot be built, or a step fails.
pub(crate) fn run(upgrade_from: &str, record: bool) -> Result<()> {
    let earlier = earlier_version::make(upgrade_from, BuildProfile::Dist)?;
    let mut command = cargo();
    command
        .args(["test", "--package", "elector-tests", "--all-features"])
        .args(["--test", "real", "--", "--include-ignored", "--long"])
        .arg("--upgrade-from")
        .arg(earlier)
        .args(["--test-threads=1", SCENARIOS])
        .env("ELECTOR_BIN", artefact::elector()?);
    if record {
        command
            .arg("--record-table")
            .arg(paths::workspace().join(DOCUMENT));
    }
    show_and_run(&mut command)
}
