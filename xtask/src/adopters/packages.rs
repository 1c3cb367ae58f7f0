//! The crates as a registry would give them out.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::commands::{self, cargo, show_and_run};
use crate::paths;

/// The packages of all crates that are published, unpacked, and those of them that an adopter uses.
pub(super) struct CratePackages {
    used: BTreeSet<String>,
}

/// The part that counts of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct WorkspaceMetadata {
    packages: Vec<WorkspacePackage>,
}

#[derive(Debug, Deserialize)]
struct WorkspacePackage {
    name: String,
    version: String,
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

/// What an adopter names.
const CANDIDATE: &str = "elector-candidate";
/// Where cargo puts the archives, below `package`, and where they are unpacked.
const ARCHIVES: &str = "target/adopters";
const UNPACKED: &str = "target/adopters/packages";

// === impl CratePackages ===

impl CratePackages {
    /// Packs and unpacks them. What is in a package and does not build is found by those that build it.
    pub(super) fn make() -> Result<Self> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--format-version=1", "--locked"]);
        let metadata: WorkspaceMetadata =
            serde_json::from_str(&commands::read(&mut metadata)?.stdout)
                .context("failed to read what cargo says of the workspace")?;
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
            used: metadata.used_by(CANDIDATE),
        })
    }

    /// Arguments of cargo that put them in the place of those in the registry.
    pub(super) fn patches(&self) -> Vec<String> {
        let patch = |name: &String| {
            let folder: PathBuf = paths::workspace().join(UNPACKED).join(name);
            let path = folder.display();
            [
                "--config".to_owned(),
                format!("patch.crates-io.{name}.path='{path}'"),
            ]
        };
        self.used.iter().flat_map(patch).collect()
    }
}

// === impl WorkspaceMetadata ===

impl WorkspaceMetadata {
    fn published(&self) -> impl Iterator<Item = &WorkspacePackage> {
        let is_published = |package: &&WorkspacePackage| package.publish.is_none();
        self.packages.iter().filter(is_published)
    }

    /// The crates of the workspace that are built for a user of that one, itself among them.
    fn used_by(&self, name: &str) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        let mut next = vec![name];
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
            {"name": CANDIDATE, "version": "1.0.0", "publish": null, "dependencies": [
                {"name": "shared", "kind": null}, {"name": "kit", "kind": "dev"}, {"name": "serde", "kind": null},
            ]},
            {"name": "shared", "version": "1.0.0", "publish": null, "dependencies": []},
            {"name": "kit", "version": "1.0.0", "publish": [], "dependencies": [{"name": "shared", "kind": null}]},
        ]}))
        .unwrap();
        let used = metadata.used_by(CANDIDATE);
        assert_eq!(Vec::from_iter(used), [CANDIDATE, "shared"]);
        let published: Vec<_> = metadata.published().map(|one| one.name.as_str()).collect();
        assert_eq!(published, [CANDIDATE, "shared"]);
    }
}
