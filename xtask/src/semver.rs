//! `cargo xtask semver`: whether the crates that others link keep what their last release has promised.

use std::process::Command;

use anyhow::Result;

use crate::cargo_tool::{CargoTool, TYPES_OF_KUBERNETES};
use crate::commands::{self, cargo, show_and_run};
use crate::paths;

const TOOL: CargoTool = CargoTool {
    name: "cargo-semver-checks",
    version: "0.51.0",
};

/// Compares every published library with that revision, or else with the last tag of a release.
///
/// # Errors
/// When one breaks a promise that its version still makes, or cannot be compared.
pub(crate) fn check(since: Option<String>) -> Result<()> {
    let Some(baseline) = since.or_else(last_release) else {
        println!("left out: the promises of the last release, because there is none");
        return Ok(());
    };
    TOOL.ensure()?;
    let mut check = cargo();
    check
        .args(["semver-checks", "--workspace", "--baseline-rev", &baseline])
        .envs([TYPES_OF_KUBERNETES]);
    show_and_run(&mut check)
}

/// The tag of the last release before this commit. A clone without its tags has none.
fn last_release() -> Option<String> {
    let mut describe = Command::new("git");
    describe
        .args(["describe", "--tags", "--abbrev=0", "--match=v[0-9]*"])
        .current_dir(paths::workspace());
    let said = commands::read(&mut describe).ok()?;
    Some(said.stdout.trim().to_owned())
}
