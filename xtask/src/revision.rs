//! The tree of another revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::commands::{self, show_and_run};
use crate::paths;

/// A clone at that revision below a folder, and the commit. It is cleared of whatever a broken run has left.
///
/// # Errors
/// When there is no such revision, or it cannot be checked out.
pub(crate) fn checkout(folder: &Path, revision: &str) -> Result<(PathBuf, String)> {
    let tree = folder.join("tree");
    let head = git(paths::workspace(), &["rev-parse", revision])?;
    if !tree.is_dir() {
        fs::create_dir_all(folder)?;
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet"]).arg(paths::workspace());
        show_and_run(clone.arg(&tree))?;
    }
    git(&tree, &["fetch", "--quiet", "origin"])?;
    git(
        &tree,
        &["checkout", "--quiet", "--force", "--detach", &head],
    )?;
    // Seeds of failures that broke a mutant, among others. What is compiled stays, since it is ignored.
    git(&tree, &["clean", "--quiet", "--force", "-d"])?;
    Ok((tree, head.chars().take(12).collect()))
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder);
    Ok(commands::read(&mut git)?.stdout.trim().to_owned())
}
