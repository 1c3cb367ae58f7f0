//! The notices of those who wrote what the programs are made of: their licences ask that these go wherever the programs do.

use anyhow::{Result, ensure};

use crate::cargo_tool::CargoTool;
use crate::commands::{self, cargo};
use crate::paths;

/// The tool that gathers them from the packages of the crates.
const TOOL: CargoTool = CargoTool {
    name: "cargo-about",
    version: "0.9.3",
};
/// The configuration and the template, from the root of the workspace.
const CONFIG: &str = "xtask/notices/about.toml";
const TEMPLATE: &str = "xtask/notices/about.hbs";

/// The notices for programs of that target, without a look at the network: the same for the same Cargo.lock.
///
/// # Errors
/// When the tool cannot be had, or a crate has a licence that is not accepted or cannot be read.
pub(super) fn text(target: &str) -> Result<String> {
    TOOL.ensure_with("cli")?;
    let workspace = paths::workspace();
    // Without the network cargo lists no crates unless it has those of all targets.
    commands::read(cargo().current_dir(workspace).args(["fetch", "--locked"]))?;
    let mut about = cargo();
    about
        .current_dir(workspace)
        .args(["about", "generate", "--frozen", "--fail"])
        .args(["--manifest-path", "crates/cli/Cargo.toml"])
        .args(["--config", CONFIG, "--target", target, TEMPLATE]);
    let text = commands::read(&mut about)?.stdout;
    // Each of them is in every program.
    for name in ["ring", "rustls", "tokio", "kube-client"] {
        ensure!(
            text.contains(&format!("\n* {name} ")),
            "the notices leave {name} out"
        );
    }
    Ok(text)
}
