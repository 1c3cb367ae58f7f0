//! The list of what a program is made of (SBOM), in CycloneDX.

use std::fs;

use anyhow::{Context as _, Result};

use crate::cargo_tool::CargoTool;
use crate::commands::{self, cargo};
use crate::paths;

/// The tool that makes it.
const TOOL: CargoTool = CargoTool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
};

/// The list for the program of that name, without the place at which the workspace happens to lie.
///
/// # Errors
/// When the tool cannot be had, or makes none.
pub(super) fn list(program: &str, target: &str) -> Result<String> {
    TOOL.ensure()?;
    let arguments = ["--format=json", "--describe=binaries", "--quiet"];
    let mut command = cargo();
    command.arg("cyclonedx").args(arguments);
    commands::read(command.args(["--target", target]))?;
    // One for each program of the workspace, beside the manifest of its package.
    let (workspace, name) = (paths::workspace(), format!("{program}_bin.cdx.json"));
    let mut found = None;
    for group in ["", "crates", "tests"] {
        for package in fs::read_dir(workspace.join(group))? {
            let Ok(files) = fs::read_dir(package?.path()) else {
                continue;
            };
            for file in files {
                let path = file?.path();
                if path.to_string_lossy().ends_with("_bin.cdx.json") {
                    found = found.or(path.ends_with(&name).then(|| fs::read_to_string(&path)));
                    fs::remove_file(&path)?;
                }
            }
        }
    }
    let text = found.with_context(|| format!("{} made no list for {program}", TOOL.name))??;
    Ok(text.replace(&format!("file://{}/", workspace.display()), "file:///"))
}
