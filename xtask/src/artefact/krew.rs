//! `cargo xtask krew`: the manifest by which krew installs the plugin of kubectl.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{FOLDER, PLUGIN};
use crate::{commands, paths, yaml};

/// What the plugin is called after `kubectl`, and therefore what its manifest is called.
const NAME: &str = "elector";
const API_VERSION: &str = "krew.googlecontainertools.github.com/v1alpha2";
const SHORT_DESCRIPTION: &str = "See who leads each Lease and why, and steer it";
const DESCRIPTION: &str = "\
Shows coordinated leader elections (Lease and LeaseCandidate, KEP-4355):
status tells who leads, since when, who is next and why; explain tells what an
elector would do; check tells what an election lacks and what to do about it;
history and timeline tell who led when; prefer, freeze and stand-down steer.
The cluster may have candidates of its own components alone: status, explain
and history read what is there and need nothing to be installed.";

/// What is not known here, since the repository has no address of its own.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// The address under which the archives can be downloaded, without their names.
    pub(crate) url: String,
    /// The page of the project, if there is one.
    pub(crate) homepage: Option<String>,
}

/// An archive for one platform.
struct PlatformArchive {
    /// As Go calls the architecture: `amd64`.
    arch: String,
    file: String,
    sha256: String,
}

/// Writes the manifest for all archives that `cargo xtask release` has made, also those for other machines that were put
/// beside them.
///
/// # Errors
/// When there are none, or the address is none.
pub(crate) fn write(published: &Published) -> Result<()> {
    let folder = paths::workspace().join(FOLDER);
    let archives = archives(&folder)?;
    let path = folder.join(format!("{NAME}.yaml"));
    fs::write(&path, manifest(published, &archives)?)
        .with_context(|| format!("failed to write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// The archives of the plugin in that folder, by their architectures.
fn archives(folder: &Path) -> Result<Vec<PlatformArchive>> {
    let missing =
        || format!("no archive of the plugin in {FOLDER}: `cargo xtask release` makes it");
    let (start, end) = (format!("{}-linux-", PLUGIN.name), ".tar.gz");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(missing)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let arch = file
            .strip_prefix(&start)
            .and_then(|rest| rest.strip_suffix(end));
        if let Some(arch) = arch.map(str::to_owned) {
            let sum = commands::read(Command::new("sha256sum").current_dir(folder).arg(&file))?;
            let sha256 = sum.stdout.split(' ').next().unwrap_or_default().to_owned();
            found.push(PlatformArchive { arch, file, sha256 });
        }
    }
    ensure!(!found.is_empty(), missing());
    found.sort_by(|left, right| left.arch.cmp(&right.arch));
    Ok(found)
}

fn manifest(published: &Published, archives: &[PlatformArchive]) -> Result<String> {
    let Published { url, homepage } = published;
    for address in homepage.iter().chain([url]) {
        ensure!(
            address.starts_with("https://"),
            "{address:?} is no address that starts with https://"
        );
    }
    let url = url.trim_end_matches('/');
    let platforms: Vec<Value> = archives
        .iter()
        .map(|archive| {
            json!({
                "selector": {"matchLabels": {"os": "linux", "arch": archive.arch}},
                "uri": format!("{url}/{}", archive.file),
                "sha256": archive.sha256,
                "files": [
                    {"from": PLUGIN.name, "to": "."},
                    {"from": super::LICENSE, "to": "."},
                ],
                "bin": PLUGIN.name,
            })
        })
        .collect();
    let mut spec = json!({
        "version": concat!("v", env!("CARGO_PKG_VERSION")),
        "shortDescription": SHORT_DESCRIPTION,
        "description": DESCRIPTION,
        "platforms": platforms,
    });
    if let Some(homepage) = homepage {
        spec["homepage"] = Value::from(homepage.as_str());
    }
    yaml::document(&json!({
        "apiVersion": API_VERSION,
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": spec,
    }))
}

#[cfg(test)]
mod tests;
