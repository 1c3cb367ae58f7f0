//! Programs that run to their end, as an operator runs them: kubectl, its plugin, and `elector explain`.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_cluster::paths;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::rig::eventually::eventually;
use crate::rig::process::TestProcess;
use crate::rig::site::TestSite;
use crate::rig::testbed::Testbed;

/// The standard output of a command that succeeds.
pub async fn output_of(command: Command) -> Result<String> {
    let what = format!("{command:?}");
    let output = run(command).await?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{what}: {stderr}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn run(mut command: Command) -> Result<Output> {
    Ok(spawn_blocking(move || command.output()).await??)
}

// === impl TestSite ===

impl TestSite {
    /// The standard output of kubectl, which succeeds.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(&self.programs().kubectl);
        command.args(arguments);
        output_of(command).await
    }

    /// Runs a line of a page in a shell that finds `elector`, kubectl and its plugin for this cluster; fails where a part
    /// of a pipe does. Returns what it prints.
    pub async fn shell(&self, line: &str) -> Result<String> {
        let mut command = self.finding_programs(Path::new("bash"))?;
        command.args(["-o", "pipefail", "-c", line]);
        command.current_dir(paths::workspace());
        output_of(command).await
    }

    /// `kubectl apply` with `-f` or `-k`.
    pub async fn apply(&self, flag: &str, path: &Path) -> Result<()> {
        let path = path.to_str().context("a path that is no text")?;
        self.kubectl(&["apply", flag, path]).await.map(drop)
    }

    /// `kubectl elector` with these arguments: kubectl finds the plugin in $PATH.
    fn kubectl_elector(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.finding_programs(&self.programs().kubectl)?;
        command.arg("elector").args(arguments);
        Ok(command)
    }

    /// The folder of those programs.
    pub fn programs_folder(&self) -> PathBuf {
        self.folder().join("programs")
    }

    /// A command for which the programs under test come first in $PATH.
    pub fn finding_programs(&self, program: &Path) -> Result<Command> {
        let folder = self.programs_folder();
        fs::create_dir_all(&folder)?;
        for (program, name) in [
            (&self.programs().elector, "elector"),
            (&self.programs().kubectl, "kubectl"),
            (&self.programs().kubectl_elector, "kubectl-elector"),
        ] {
            match symlink(program, folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error)?,
                _ => {}
            }
        }
        let path = env::var("PATH").unwrap_or_default();
        let mut command = self.command(program);
        command.env("PATH", format!("{}:{path}", folder.display()));
        Ok(command)
    }
}

// === impl Testbed ===

impl Testbed {
    /// Runs `kubectl elector` in the namespace of the scenario, to its end.
    pub async fn operate(&self, arguments: &[&str]) -> Result<Output> {
        let arguments = [arguments, &["--namespace", self.namespace()]].concat();
        run(self.site().kubectl_elector(&arguments)?).await
    }

    /// Runs it until it succeeds and its lines, each with single blanks, satisfy `look`.
    pub async fn operates(
        &self,
        arguments: &[&str],
        patience: Duration,
        look: impl Fn(&[String]) -> bool,
    ) -> Result<Vec<String>> {
        let ask = || async {
            let output = self.operate(arguments).await?;
            let lines = lines(&String::from_utf8_lossy(&output.stdout));
            let stderr = String::from_utf8_lossy(&output.stderr);
            ensure!(
                output.status.success() && look(&lines),
                "kubectl elector {arguments:?} says {lines:#?} {stderr}"
            );
            Ok(lines)
        };
        eventually(patience, ask).await
    }

    /// Starts it in the background.
    pub fn start_operating(&self, name: &str, arguments: &[&str]) -> Result<TestProcess> {
        let arguments = [arguments, &["--namespace", self.namespace()]].concat();
        let command = self.site().kubectl_elector(&arguments)?;
        TestProcess::spawn(name, command, self.folder(), |_| {})
    }

    /// Looks at the Events that `kubectl describe lease` prints until one of these lines, each with single blanks, has
    /// all these parts.
    pub async fn describes(&self, parts: &[&str], patience: Duration) -> Result<()> {
        let ask = || async {
            let (lease, namespace) = (self.lease_name(), self.namespace());
            let describe = ["describe", "lease", lease, "--namespace", namespace];
            let lines = lines(&self.site().kubectl(&describe).await?);
            let mut events = lines.iter().skip_while(|line| !line.starts_with("Events:"));
            ensure!(
                events.any(|line| parts.iter().all(|part| line.contains(part))),
                "kubectl describe shows nothing with {parts:?}: {lines:#?}"
            );
            Ok(())
        };
        eventually(patience, ask).await
    }

    /// The words of `elector explain -o json` about the lease of the scenario.
    pub async fn explain(&self) -> Result<Value> {
        let site = self.site();
        let mut command = site.command(&site.programs().elector);
        command.args(["explain", "--output=json", "--namespace", self.namespace()]);
        let all: Vec<Value> = serde_json::from_str(&output_of(command).await?)?;
        let ours = |each: &Value| each["lease"] == self.lease_name();
        let found = all.into_iter().find(ours);
        found.context("elector explain says nothing about the lease")
    }

    /// Asks until the explanation satisfies `look`.
    pub async fn explained(
        &self,
        what: &str,
        patience: Duration,
        look: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let ask = || async {
            let explained = self.explain().await?;
            if !look(&explained) {
                bail!("{what} is not what is explained: {explained:#}");
            }
            Ok(explained)
        };
        eventually(patience, ask).await
    }
}

/// The lines of an output, each with single blanks.
fn lines(output: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    output.lines().map(words).collect()
}
