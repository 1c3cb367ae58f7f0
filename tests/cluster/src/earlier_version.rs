//! A version of Elector before this one, built from the history of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build_profile::BuildProfile;
use crate::commands::{self, cargo, show_and_run};
use crate::paths;

/// Where earlier versions are built, from the root of the workspace: each in a folder with the name of its commit.
const FOLDER: &str = "target/upgrade-from";
/// The program of a version.
const PROGRAM: &str = "elector";
/// The file with the commit that a source tree is of, in its root.
pub const COMMIT: &str = ".commit";

/// Builds that revision, such as `HEAD~1` or a tag, with that profile, and returns its source tree with the program in the
/// root. What the repository has of the revision is taken, and nothing of what is changed and not committed.
///
/// # Errors
/// When there is no such revision, or it cannot be built. git and tar are needed.
pub fn make(revision: &str, profile: BuildProfile) -> Result<PathBuf> {
    let folder = paths::workspace().join(FOLDER);
    let commit = commit_of(paths::workspace(), revision)?;
    let source = extract(paths::workspace(), &commit, &folder.join(&commit))?;
    // In a folder of its own: in that of this version the programs of the two would take turns.
    let target = folder.join("target");
    show_and_run(
        cargo()
            .current_dir(&source)
            .args(["build", "--locked", "--package", "elector-cli"])
            .args(["--bin", PROGRAM])
            .args(profile.arguments())
            .arg("--target-dir")
            .arg(&target),
    )?;
    let built = target.join(profile.folder()).join(PROGRAM);
    let program = source.join(PROGRAM);
    fs::copy(&built, &program).with_context(|| format!("failed to copy {}", built.display()))?;
    Ok(source)
}

/// Writes the source tree of a revision into the folder, unless it is there; returns where.
///
/// # Errors
/// When there is no such revision, or the folder cannot be written.
pub fn extract(repository: &Path, revision: &str, folder: &Path) -> Result<PathBuf> {
    let commit = commit_of(repository, revision)?;
    let source = folder.join("source");
    let known = fs::read_to_string(source.join(COMMIT));
    if known.is_ok_and(|known| known == commit) {
        return Ok(source);
    }
    if source.exists() {
        fs::remove_dir_all(&source)
            .with_context(|| format!("failed to remove {}", source.display()))?;
    }
    fs::create_dir_all(&source).with_context(|| format!("failed to make {}", source.display()))?;
    let archive = folder.join("source.tar");
    show_and_run(
        git(repository)
            .args(["archive", "--output"])
            .arg(&archive)
            .arg(&commit),
    )?;
    // With the times of the commit, cargo would take what it built of a later one for built.
    let mut unpack = Command::new("tar");
    unpack.args(["-x", "-m", "-f"]).arg(&archive);
    show_and_run(unpack.arg("-C").arg(&source))?;
    fs::remove_file(&archive).context("failed to remove the archive")?;
    fs::write(source.join(COMMIT), commit).context("failed to name the commit")?;
    Ok(source)
}

/// The commit of a revision, in all of its digits.
fn commit_of(repository: &Path, revision: &str) -> Result<String> {
    // A name that begins like a flag would be one.
    ensure!(!revision.starts_with('-'), "{revision} is no revision");
    let named = format!("{revision}^{{commit}}");
    let commit = commands::read(git(repository).args(["rev-parse", "--verify", "--quiet", &named]))
        .with_context(|| format!("there is no revision {revision}"))?;
    Ok(commit.stdout.trim().to_owned())
}

fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository);
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a commit for each of these contents of `file`.
    fn repository(contents: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args("-c user.name=test -c user.email=test@localhost -C".split(' '));
            commands::read(git.arg(folder.path()).args(arguments)).unwrap();
        };
        git(&["init", "--quiet"]);
        for content in contents {
            fs::write(folder.path().join("file"), content).unwrap();
            git(&["add", "file"]);
            git(&["commit", "--quiet", "--message", "change"]);
        }
        folder
    }

    #[test]
    fn the_tree_of_a_revision_is_there_until_another_takes_its_place() {
        let repository = repository(&["first", "second"]);
        fs::write(repository.path().join("file"), "not committed").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let extract = |revision| extract(repository.path(), revision, folder.path()).unwrap();
        let source = extract("HEAD~1");
        let read = || fs::read_to_string(source.join("file")).unwrap();
        assert_eq!(read(), "first");
        let program = source.join(PROGRAM);
        fs::write(&program, "").unwrap();
        extract("HEAD~1");
        assert!(program.exists());
        extract("HEAD");
        assert_eq!(read(), "second");
        assert!(!program.exists());
    }

    #[test]
    fn what_is_no_revision_is_refused() {
        let repository = repository(&["first"]);
        for (revision, says) in [
            ("no-such-branch", "there is no revision no-such-branch"),
            ("HEAD~1", "there is no revision HEAD~1"),
            ("--all", "--all is no revision"),
        ] {
            let error = extract(repository.path(), revision, repository.path()).unwrap_err();
            assert_eq!(error.to_string(), says);
        }
    }
}
