//! The crates as a registry would give them out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::commands::{self, cargo, show_and_run};
use crate::paths;

/// Where programs are built from them, all of these, so that what is the same in two is built once.
pub(super) const BUILT: &str = "target/adopters/build";

/// The packages of all crates that are published, unpacked.
pub(super) struct CratePackages {
    workspace: WorkspaceMetadata,
}

/// The part that counts of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(super) struct WorkspaceMetadata {
    packages: Vec<WorkspacePackage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WorkspacePackage {
    pub(super) name: String,
    pub(super) version: String,
    /// The registries that it may go to: `None` for any.
    publish: Option<Vec<String>>,
    dependencies: Vec<PackageDependency>,
}

#[derive(Debug, Deserialize)]
struct PackageDependency {
    name: String,
    /// `None` for a dependency of the library.
    kind: Option<String>,
}

/// Where cargo puts the archives, below `package`, and where they are unpacked.
const ARCHIVES: &str = "target/adopters";
const UNPACKED: &str = "target/adopters/packages";

// === impl CratePackages ===

impl CratePackages {
    /// Packs and unpacks them. What is in a package and does not build is found by those that build it.
    pub(super) fn make() -> Result<Self> {
        let metadata = WorkspaceMetadata::of(paths::workspace())?;
        let mut package = cargo();
        package.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
        package.args(["--target-dir", ARCHIVES]);
        for published in metadata.published() {
            package.args(["--package", &published.name]);
        }
        show_and_run(&mut package)?;
        let unpacked = paths::workspace().join(UNPACKED);
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked).context("failed to remove the packages of before")?;
        }
        for published in metadata.published() {
            let folder = unpacked.join(&published.name);
            fs::create_dir_all(&folder).context("failed to make a folder for a package")?;
            let archive = format!("{}-{}.crate", published.name, published.version);
            let mut unpack = Command::new("tar");
            // The times in a package are the same for ever; by those of now, cargo sees that there is something to build.
            unpack
                .args(["--extract", "--touch", "--gzip"])
                .args(["--strip-components=1", "--file"])
                .arg(
                    paths::workspace()
                        .join(ARCHIVES)
                        .join("package")
                        .join(archive),
                )
                .arg("--directory")
                .arg(folder);
            commands::read(&mut unpack)?;
        }
        Ok(Self {
            workspace: metadata,
        })
    }

    /// Arguments of cargo that put those that the program in this folder uses in the place of those in the registry. Cargo
    /// complains of others.
    pub(super) fn patches_for(&self, folder: &Path) -> Result<Vec<String>> {
        let program = WorkspaceMetadata::of(folder)?;
        let named = program.packages.iter().flat_map(|one| &one.dependencies);
        let used = self.workspace.used_by(named.map(|one| one.name.as_str()));
        let patch = |name: &String| {
            let folder: PathBuf = paths::workspace().join(UNPACKED).join(name);
            let path = folder.display();
            [
                "--config".to_owned(),
                format!("patch.crates-io.{name}.path='{path}'"),
            ]
        };
        Ok(used.iter().flat_map(patch).collect())
    }
}

// === impl WorkspaceMetadata ===

impl WorkspaceMetadata {
    /// The metadata of the workspace in that folder, from cargo.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let mut metadata = cargo();
        metadata
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(folder);
        serde_json::from_str(&commands::read(&mut metadata)?.stdout)
            .with_context(|| format!("failed to read what cargo says of {}", folder.display()))
    }

    pub(super) fn published(&self) -> impl Iterator<Item = &WorkspacePackage> {
        let is_published = |package: &&WorkspacePackage| package.publish.is_none();
        self.packages.iter().filter(is_published)
    }

    /// The crates of the workspace that are built for a user of these crates, which may be others.
    fn used_by<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        let mut next = Vec::from_iter(names);
        while let Some(name) = next.pop() {
            if let Some(package) = self.packages.iter().find(|one| one.name == name)
                && used.insert(name.to_owned())
            {
                let built = package.dependencies.iter().filter(|one| one.kind.is_none());
                next.extend(built.map(|one| one.name.as_str()));
            }
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_builds_is_what_the_library_depends_on() {
        let metadata: WorkspaceMetadata = serde_json::from_value(serde_json::json!({"packages": [
            {"name": "library", "version": "1.0.0", "publish": null, "dependencies": [
                {"name": "shared", "kind": null}, {"name": "kit", "kind": "dev"}, {"name": "serde", "kind": null},
            ]},
            {"name": "shared", "version": "1.0.0", "publish": null, "dependencies": []},
            {"name": "kit", "version": "1.0.0", "publish": [], "dependencies": [{"name": "shared", "kind": null}]},
        ]}))
        .unwrap();
        let used = metadata.used_by(["library", "serde"].into_iter());
        assert_eq!(Vec::from_iter(used), ["library", "shared"]);
        let published: Vec<_> = metadata.published().map(|one| one.name.as_str()).collect();
        assert_eq!(published, ["library", "shared"]);
    }
}
