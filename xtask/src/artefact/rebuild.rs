//! Two builds of one commit, in folders of different names and lengths, which must give the same bytes.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{FOLDER, PROGRAMS, add_target, platform};
use crate::build_profile;
use crate::earlier_version;
use crate::paths;

/// The folders, below that of the builds.
const FOLDERS: [&str; 2] = ["rebuild/one", "rebuild/and-another-one"];

/// Builds what the newest commit has, and nothing that is not committed. True if both builds are the same, and so is what
/// `cargo xtask release` has made, if that is there.
///
/// # Errors
/// When a build fails.
pub(crate) fn compare() -> Result<bool> {
    let workspace = paths::workspace();
    add_target(&build_profile::target())?;
    let mut sources = Vec::new();
    for folder in FOLDERS {
        let folder = workspace.join("target").join(folder);
        let source = earlier_version::extract(workspace, "HEAD", &folder)?;
        for program in &PROGRAMS {
            program.build(&source)?;
        }
        sources.push(source);
    }
    let mut all_same = true;
    for program in &PROGRAMS {
        let artefact = program.artefact(platform(std::env::consts::ARCH)?);
        let mut paths: Vec<_> = sources.iter().map(|source| program.built(source)).collect();
        paths.push(workspace.join(FOLDER).join(artefact));
        paths.retain(|path| path.is_file());
        let same = is_same(&paths)?;
        let verdict = if same { "the same bytes" } else { "DIFFERENT" };
        println!("{}: {verdict} in {} builds", program.0, paths.len());
        paths
            .iter()
            .for_each(|path| println!("  {}", path.display()));
        all_same &= same;
    }
    Ok(all_same)
}

/// True if all files have the same bytes.
fn is_same(paths: &[impl AsRef<Path>]) -> Result<bool> {
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("failed to read {}", path.display()));
    let mut first = None;
    for path in paths {
        let bytes = read(path.as_ref())?;
        if first.get_or_insert_with(|| bytes.clone()) != &bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_makes_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a", "b", "c"].map(|name| folder.path().join(name));
        for (file, text) in files.iter().zip(["text", "text", "test"]) {
            fs::write(file, text).unwrap();
        }
        assert!(is_same(&files[..2]).unwrap());
        assert!(!is_same(&files).unwrap());
        is_same(&[folder.path().join("missing")]).unwrap_err();
    }
}
