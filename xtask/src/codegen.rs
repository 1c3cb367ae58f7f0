//! Files that are written by code, and the check that they are up to date.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::commands::{cargo, show_and_run};
use crate::manifests::{chart, overlays, static_pod};
use crate::paths;

/// Every generated file: its path from the root of the workspace, and its whole content.
fn generated(workspace: &Path) -> Result<Vec<(String, String)>> {
    let manifest = |path: &str, text: String| (format!("manifests/{path}"), text);
    let mut files = vec![
        (
            "crates/api/src/crd.json".to_owned(),
            crd_as_json(workspace)?,
        ),
        manifest("chart/Chart.yaml", chart::chart()),
        manifest("chart/files/monitoring.yaml", chart::monitoring(workspace)?),
        manifest(
            "overlays/control-plane/static-pod.yaml",
            static_pod::yaml(workspace)?,
        ),
    ];
    for (path, text) in chart::templates(workspace)? {
        files.push(manifest(&format!("chart/{path}"), text));
    }
    for overlay in overlays::INSTALLABLE {
        let text = overlays::install(workspace, overlay)?;
        files.push(manifest(&format!("overlays/{overlay}/install.yaml"), text));
    }
    Ok(files)
}

/// Writes the generated files that are out of date.
pub(crate) fn write() -> Result<()> {
    let workspace = paths::workspace();
    for (path, text) in stale(workspace, generated(workspace)?) {
        let file = workspace.join(&path);
        fs::write(&file, text).with_context(|| format!("failed to write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// True if all generated files are as they would be written; names those that are not.
pub(crate) fn check() -> Result<bool> {
    let workspace = paths::workspace();
    let stale = stale(workspace, generated(workspace)?);
    for (path, _) in &stale {
        println!("{path} is out of date: run `cargo xtask codegen`");
    }
    Ok(stale.is_empty())
}

/// The files that differ from what they should be, or cannot be read.
fn stale(workspace: &Path, files: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_current = |(path, text): &(String, String)| {
        fs::read_to_string(workspace.join(path)).is_ok_and(|found| found == *text)
    };
    files.into_iter().filter(|file| !is_current(file)).collect()
}

/// The custom resource definition of the manifests, to be read by programs.
fn crd_as_json(workspace: &Path) -> Result<String> {
    let yaml = workspace.join("manifests/components/crd/leasecandidates.yaml");
    let crd: Value = serde_saphyr::from_str(&fs::read_to_string(yaml)?)?;
    Ok(format!("{crd:#}\n"))
}

/// Runs the transcripts of the README and of docs/leadership.md on a real kube-apiserver, and has them written anew, with the
/// picture.
///
/// # Errors
/// When a command of them does not end.
pub(crate) fn record_transcript() -> Result<()> {
    show_and_run(
        cargo()
            .args(["test", "--package", "elector-tests", "--test", "real", "--"])
            .args(["--include-ignored", "readme_"])
            .env("ELECTOR_RECORD", "1"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_differing_files_are_stale() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("right"), "text").unwrap();
        fs::write(folder.path().join("wrong"), "other").unwrap();
        let files = ["right", "wrong", "missing"].map(|path| (path.to_owned(), "text".to_owned()));
        let stale = stale(folder.path(), files.to_vec());
        assert_eq!(stale, files[1..]);
    }
}
