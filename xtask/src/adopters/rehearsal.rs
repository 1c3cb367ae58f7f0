//! `cargo xtask packages`: all of a publication of the crates but the upload.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::packages::WorkspaceMetadata;
use crate::cargo_tool::TYPES_OF_KUBERNETES;
use crate::commands::{cargo, show_and_run};
use crate::paths;

/// Where cargo makes and builds the packages, from the root of the workspace.
const BUILT: &str = "target/packages";

/// Has cargo make the package of each crate, build it from the packages of the others, and ask the registry.
///
/// # Errors
/// When one could not be published.
pub(crate) fn rehearse() -> Result<()> {
    let metadata = WorkspaceMetadata::of(paths::workspace())?;
    let mut publish = cargo();
    publish
        .args(["publish", "--dry-run", "--allow-dirty"])
        .args(["--target-dir", BUILT])
        .envs([TYPES_OF_KUBERNETES]);
    for published in metadata.published() {
        publish.args(["--package", &published.name]);
        forget_unpacked(&published.name)?;
    }
    show_and_run(&mut publish)
}

/// Removes what cargo has unpacked and built of earlier packages of this name. It takes a version to be the same for ever, also
/// where it comes from the registry of packages that it has just made, whose folder begins with a dash.
fn forget_unpacked(name: &str) -> Result<()> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home.context("no CARGO_HOME")?.join("registry/src");
    let registries = folders(&sources)?.into_iter().filter(|registry| {
        let name = registry.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('-')
    });
    let built = paths::workspace().join(BUILT).join("debug/.fingerprint");
    for folder in registries.chain([built]) {
        for package in folders(&folder)? {
            let of = package.file_name().unwrap_or_default().to_string_lossy();
            // A version, or the hash of a build, follows the name.
            let rest = of
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('-'));
            if rest.is_some_and(|rest| rest.contains('.') || rest.len() == 16) {
                fs::remove_dir_all(&package)?;
            }
        }
    }
    Ok(())
}

/// The folders in a folder, none where it does not exist.
fn folders(of: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(of) else {
        return Ok(Vec::new());
    };
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.is_dir());
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::commands;

    /// The page of a crate in the registry is its metadata and its README.
    #[test]
    fn each_crate_that_is_published_has_a_page_of_its_own() {
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--format-version=1"]);
        let metadata = commands::read(&mut metadata).unwrap().stdout;
        let metadata: Value = serde_json::from_str(&metadata).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        for package in packages.iter().filter(|it| it["publish"].is_null()) {
            let text = |field: &str| package[field].as_str().unwrap_or_default();
            let name = text("name");
            assert!(text("description").len() > 40, "{name}");
            assert_eq!(text("documentation"), format!("https://docs.rs/{name}"));
            assert_eq!(text("readme"), "README.md", "{name}");
            for field in ["license", "rust_version"] {
                assert!(!text(field).is_empty(), "{name} has no {field}");
            }
            for field in ["keywords", "categories"] {
                let count = package[field].as_array().unwrap().len();
                assert!((1..=5).contains(&count), "{name} has {count} {field}");
            }
            let readme = Path::new(text("manifest_path")).with_file_name("README.md");
            let readme = fs::read_to_string(readme).unwrap();
            assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
            let begin = format!("dependencies]\n{name} = ");
            let (_, own) = readme.split_once(&begin).expect("a block of dependencies");
            let (own, _) = own.split_once('\n').unwrap();
            let version = text("version");
            let (minor, _) = version.rsplit_once('.').unwrap();
            let versions = [format!("\"{minor}\""), format!("\"={version}\"")];
            assert!(versions.iter().any(|it| own.contains(it)), "{name}: {own}");
            // A relative link leads nowhere in a registry.
            for link in readme.split("](").skip(1) {
                assert!(link.starts_with("https://"), "{name}: {link:.40}");
            }
        }
    }
}
