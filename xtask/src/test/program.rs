//! The test programs of the workspace, as cargo builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::commands::{cargo, line};
use crate::paths;
use crate::test::lanes::ProgramRun;

/// A test program that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestBinary {
    /// The folder of its package, and its target where that is not the library: `crates/cli dev`.
    pub(super) name: String,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
    executable: PathBuf,
}

/// The part that counts of what cargo says with `--message-format=json`.
#[derive(Debug, Deserialize)]
struct CargoMessage {
    manifest_path: Option<PathBuf>,
    target: Option<CargoTarget>,
    profile: Option<CargoProfile>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct CargoTarget {
    kind: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize)]
struct CargoProfile {
    test: bool,
}

/// Builds every test program, and the programs that they start, in one go with the same features, so that nothing is
/// compiled twice.
pub(super) fn build() -> Result<Vec<TestBinary>> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let line = line(&command);
    eprintln!("$ {line}");
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to run {line}"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    let messages = String::from_utf8(output.stdout).context("cargo wrote something unreadable")?;
    Ok(read(&messages, paths::workspace()))
}

/// The test programs among all that cargo says.
fn read(messages: &str, workspace: &Path) -> Vec<TestBinary> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|message| TestBinary::of(message, workspace))
        .collect()
}

// === impl TestBinary ===

impl TestBinary {
    fn of(message: CargoMessage, workspace: &Path) -> Option<Self> {
        if !message.profile?.test {
            return None;
        }
        let target = message.target?;
        let folder = message.manifest_path?.parent()?.to_owned();
        let package = folder.strip_prefix(workspace).unwrap_or(&folder);
        let name = match target.kind.first()?.as_str() {
            "test" => format!("{} {}", package.display(), target.name),
            "lib" => package.display().to_string(),
            kind => format!("{} {kind} {}", package.display(), target.name),
        };
        Some(Self {
            name,
            folder,
            executable: message.executable?,
        })
    }

    /// The run of it as cargo would run it, with these words before it.
    pub(super) fn run(&self, before: &[&str]) -> ProgramRun {
        let mut words = before
            .iter()
            .map(AsRef::as_ref)
            .chain([self.executable.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        ProgramRun {
            name: self.name.clone(),
            command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_is_read_and_what_is_no_test_is_passed_over() {
        let says = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"elector"},"profile":{"test":false},"executable":"/t/elector"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"elector"},"profile":{"test":true},"executable":"/t/elector-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/cli/Cargo.toml","target":{"kind":["test"],"name":"dev"},"profile":{"test":true},"executable":"/t/dev-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/api/Cargo.toml","target":{"kind":["lib"],"name":"elector_api"},"profile":{"test":true},"executable":"/t/api-1"}
{"reason":"build-finished","success":true}"#;
        let programs = read(says, Path::new("/w"));
        let names: Vec<_> = programs
            .iter()
            .map(|program| program.name.as_str())
            .collect();
        let expected = ["crates/cli bin elector", "crates/cli dev", "crates/api"];
        assert_eq!(names, expected);
        assert_eq!(programs[1].folder, Path::new("/w/crates/cli"));
        assert_eq!(programs[1].executable, Path::new("/t/dev-1"));
    }
}
