//! The transcript in the README: each command is run against the server as it stands there, and says what stands there.
//! `cargo xtask readme` sets `ELECTOR_RECORD=1`, which writes anew what they say and what they draw.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::child_guard::ChildGuard;
use elector_cluster::paths;
use elector_tests::rig::{ClusterChoice, ClusterMode, Implementation, Suite, Testbed, command};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

use crate::OURS;

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "readme_says_what_kubectl_says",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(80),
        |testbed| Box::pin(transcript(testbed)),
    );
}

/// The line before the transcript.
const MARK: &str = "<!-- Run and compared by tests/tests/real/readme.rs; `cargo xtask readme` writes it anew, with its picture -->\n```console\n";

/// The line after it.
const END: &str = "```\n";

/// The lease of the transcript, in the namespace `default`, and its candidates.
const LEASE: &str = "demo";
const CANDIDATES: [&str; 3] = ["blue", "green", "violet"];

/// The picture that the transcript draws, in the folder of its shell, and where it is kept.
const DRAWN: &str = "timeline.svg";
const PICTURE: &str = "docs/timeline.svg";

/// The time limit of a command: those that wait do so for a minute at most.
const PATIENCE: Duration = Duration::from_secs(90);

/// One command and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadmeStep {
    command: String,
    said: String,
}

/// A shell that reads commands one by one, and ends its jobs with itself.
struct JobShell {
    guard: ChildGuard,
    commands: ChildStdin,
    done: Receiver<String>,
    folder: PathBuf,
}

async fn transcript(outer: Arc<Testbed>) -> Result<()> {
    let site = Arc::clone(outer.site());
    let testbed = Testbed::open_for(site, "default", LEASE, Implementation::Elector).await?;
    for name in CANDIDATES {
        testbed.add_participant(name, Implementation::Elector, LEASE);
    }
    let readme = paths::workspace().join("README.md");
    let text = fs::read_to_string(&readme)?;
    let (before, rest) = text.split_once(MARK).context("README has no transcript")?;
    let (transcript, after) = rest.split_once(END).context("a transcript without end")?;
    let steps = parse(transcript);
    ensure!(!steps.is_empty(), "the transcript is empty");

    let mut shell = JobShell::start(&testbed)?;
    let mut said = Vec::new();
    for step in &steps {
        testbed.note(&step.command);
        let now = ReadmeStep {
            said: shell.run(&step.command).await?,
            ..step.clone()
        };
        said.push(now);
    }
    let drawn = fs::read_to_string(shell.folder.join(DRAWN)).context("nothing is drawn")?;
    drop(shell);
    let picture = paths::workspace().join(PICTURE);
    if env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1") {
        fs::write(
            &readme,
            format!("{before}{MARK}{}{END}{after}", print(&said)),
        )?;
        fs::write(&picture, drawn)?;
    } else {
        for (step, now) in steps.iter().zip(&said) {
            ensure!(
                normal(&step.said) == normal(&now.said),
                "README says of `{}`:\n{}\nbut it says:\n{}\n{}",
                step.command,
                step.said,
                now.said,
                testbed.journal().text()
            );
        }
        let kept = fs::read_to_string(&picture)?;
        ensure!(
            leaders(&kept) == leaders(&drawn),
            "{PICTURE} has other leaders than:\n{drawn}"
        );
    }
    testbed.verdict().await
}

fn parse(transcript: &str) -> Vec<ReadmeStep> {
    let mut steps: Vec<ReadmeStep> = Vec::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let (command, said) = (command.to_owned(), String::new());
            steps.push(ReadmeStep { command, said });
        } else if let Some(step) = steps.last_mut() {
            step.said.push_str(line);
            step.said.push('\n');
        }
    }
    steps
}

fn print(steps: &[ReadmeStep]) -> String {
    let lines = steps
        .iter()
        .map(|step| format!("$ {}\n{}", step.command, step.said));
    lines.collect()
}

/// The same without what differs from run to run: for how long a lease had been free, below one second, ages, times and
/// the identity of the elector, which has the name of the machine.
fn normal(said: &str) -> String {
    let is_age = |word: &str| {
        let number = word.trim_end_matches(',').strip_suffix('s').unwrap_or("");
        let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        !number.is_empty() && number.bytes().all(is_digit)
    };
    let is_time = |word: &str| word.len() == 27 && word.ends_with('Z');
    let placeholder = |word| match word {
        _ if is_age(word) => "[AGE]",
        _ if is_time(word) => "[TIME]",
        _ if word.starts_with("elector_") => "[ELECTOR]",
        _ => word,
    };
    let lines = said.lines().map(|line| match line.split_once("free=") {
        Some((before, time)) => {
            let seconds = time.trim_end_matches('s').split('.').next();
            format!("{before}free={}s\n", seconds.unwrap_or_default())
        }
        None => {
            let words = line.split_whitespace().map(placeholder);
            format!("{}\n", words.collect::<Vec<_>>().join(" "))
        }
    });
    lines.collect()
}

/// The names in a picture, and how many terms it has.
fn leaders(picture: &str) -> (Vec<&str>, usize) {
    let names = picture.lines().filter_map(|line| {
        let (_, text) = line.strip_prefix("<text x=\"10\"")?.split_once('>')?;
        text.strip_suffix("</text>")
    });
    (names.collect(), picture.matches("class=\"led\"").count())
}

// === impl JobShell ===

impl JobShell {
    /// Starts it in a folder of its own, with `elector`, `kubectl` and its plugin where programs are looked for first.
    fn start(testbed: &Testbed) -> Result<Self> {
        let site = testbed.site();
        let folder = testbed.folder().join("shell");
        let programs = folder.join("bin");
        fs::create_dir_all(&programs)?;
        for (program, name) in [
            (&site.programs().elector, "elector"),
            (&site.programs().kubectl, "kubectl"),
            (&site.programs().kubectl_elector, "kubectl-elector"),
        ] {
            symlink(program, programs.join(name))?;
        }
        symlink(
            paths::workspace().join("manifests"),
            folder.join("manifests"),
        )?;
        let path = env::var("PATH").unwrap_or_default();
        let mut bash: Command = command(Path::new("bash"), &site.kubeconfig());
        bash.args(["--norc", "--noprofile"])
            .current_dir(&folder)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HOME", &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It tells there of jobs that were killed.
            .stderr(Stdio::null());
        let mut guard = ChildGuard::spawn(&mut bash).context("failed to start bash")?;
        let pipes = (
            guard.child_mut().stdin.take(),
            guard.child_mut().stdout.take(),
        );
        let (Some(commands), Some(stdout)) = pipes else {
            anyhow::bail!("bash has no pipes");
        };
        let (sender, done) = channel(1);
        // The thread ends with the shell.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            guard,
            commands,
            done,
            folder,
        })
    }

    /// Runs a command, to its end unless it is one for the background; what it says, on both outputs.
    async fn run(&mut self, command: &str) -> Result<String> {
        // Jobs and their numbers are the shell's own. It tells of a job that was killed at any time, so that all else
        // has another shell, with outputs of its own. A remark may stand at the end of the line.
        let line = if is_job(command) || command.starts_with("kill ") {
            format!("{command}\n: >said\n")
        } else {
            format!("( {command}\n) >said 2>&1\n")
        };
        self.commands.write_all(line.as_bytes())?;
        self.commands.write_all(b"echo done\n")?;
        timeout(PATIENCE, self.done.recv())
            .await
            .with_context(|| format!("`{command}` does not end"))?
            .context("the shell ended")?;
        Ok(fs::read_to_string(self.folder.join("said"))?)
    }
}

impl Drop for JobShell {
    fn drop(&mut self) {
        // Its jobs are of its group.
        let _ = self.guard.kill_group();
    }
}

/// True if a command goes on in the background.
fn is_job(command: &str) -> bool {
    let command = command
        .split_once(" #")
        .map_or(command, |(command, _)| command);
    command.trim_end().ends_with('&')
}
