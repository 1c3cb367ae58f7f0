//! The list of what a program is made of (SBOM), in CycloneDX.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::cargo_tool::CargoTool;
use crate::commands::{self, cargo};
use crate::paths;

/// What makes it.
const TOOL: CargoTool = CargoTool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
};

/// The list for the program of that name in that package.
///
/// # Errors
/// When the tool cannot be had, or makes none.
pub(super) fn list(package: &str, program: &str, target: &str) -> Result<String> {
    TOOL.ensure()?;
    let arguments = [
        "--format=json",
        "--describe=binaries",
        "--quiet",
        "--target",
        target,
    ];
    commands::read(cargo().arg("cyclonedx").args(arguments))?;
    // One for each program of the workspace, beside the manifest of its package.
    let mut found = None;
    for member in members()? {
        let folder = Path::new(&member.manifest)
            .parent()
            .context("a manifest without a folder")?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if !path.to_string_lossy().ends_with("_bin.cdx.json") {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            fs::remove_file(&path)?;
            if member.name == package && path.ends_with(format!("{program}_bin.cdx.json")) {
                found = Some(text);
            }
        }
    }
    let text = found.with_context(|| format!("{} made no list for {program}", TOOL.name))?;
    Ok(without(&text, paths::workspace()))
}

/// A package of the workspace.
struct WorkspaceMember {
    name: String,
    manifest: String,
}

fn members() -> Result<Vec<WorkspaceMember>> {
    let metadata = ["metadata", "--no-deps", "--locked", "--format-version=1"];
    let metadata: Value = serde_json::from_str(&commands::read(cargo().args(metadata))?.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo names no packages")?;
    let text = |value: &Value| {
        value
            .as_str()
            .map(str::to_owned)
            .context("a package without a name")
    };
    packages
        .iter()
        .map(|package| {
            Ok(WorkspaceMember {
                name: text(&package["name"])?,
                manifest: text(&package["manifest_path"])?,
            })
        })
        .collect()
}

/// The list without the place at which the workspace happened to lie.
fn without(list: &str, workspace: &Path) -> String {
    list.replace(&format!("file://{}/", workspace.display()), "file:///")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_workspace_is_in_no_list() {
        let list = r#"{"bom-ref": "path+file:///home/me/elector/crates/cli#elector-cli@0.1.0"}"#;
        let expected = r#"{"bom-ref": "path+file:///crates/cli#elector-cli@0.1.0"}"#;
        assert_eq!(without(list, Path::new("/home/me/elector")), expected);
    }

    #[test]
    fn the_members_of_the_workspace_are_found() {
        let members = members().unwrap();
        let own = members
            .iter()
            .find(|member| member.name == env!("CARGO_PKG_NAME"));
        assert!(own.unwrap().manifest.ends_with("xtask/Cargo.toml"));
    }
}
