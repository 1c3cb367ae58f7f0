//! The transcripts in the README and in docs/leadership.md: each command is run against the server as it stands there, and
//! says what stands there. `cargo xtask readme` sets `ELECTOR_RECORD=1`, which writes anew what they say and what they draw.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::child_guard::ChildGuard;
use elector_cluster::paths;
use elector_tests::rig::{Suite, Testbed};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

use crate::transcript::{Transcript, is_recorded};
use crate::{GATE_OFF, OURS};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("readme_says_what_kubectl_says", 80, of_readme);
    own.add("readme_of_a_crash_and_a_restart", 60, of_crash);
}

/// The remarks before the transcripts.
const MARK: &str = "Run and compared by tests/tests/real/readme.rs; `cargo xtask readme` writes it anew, with its picture";
const CRASH_MARK: &str =
    "Run and compared by tests/tests/real/readme.rs; `cargo xtask readme` writes it anew";

/// The line of a transcript at which the API server is restarted, since no command of a shell does it.
const RESTART: &str = "# the API server is restarted";

/// The lease of the transcripts, in the namespace `default`, and its candidates.
const LEASE: &str = "demo";
const CANDIDATES: [&str; 3] = ["blue", "green", "violet"];

/// The picture that the transcript draws, in the folder of its shell, and where it is kept.
const DRAWN: &str = "timeline.svg";
const PICTURE: &str = "docs/timeline.svg";

/// The time limit of a command: those that wait do so for a minute at most.
const PATIENCE: Duration = Duration::from_secs(90);

/// A shell that reads commands one by one, and ends its jobs with itself.
struct JobShell {
    guard: ChildGuard,
    commands: ChildStdin,
    done: Receiver<String>,
    folder: PathBuf,
}

async fn of_readme(outer: Arc<Testbed>) -> Result<()> {
    let drawn = play(&outer, "README.md", MARK).await?.join(DRAWN);
    let drawn = fs::read_to_string(drawn).context("nothing is drawn")?;
    let picture = paths::workspace().join(PICTURE);
    if is_recorded() {
        fs::write(&picture, drawn)?;
    } else {
        let kept = fs::read_to_string(&picture)?;
        let holds = leaders(&kept) == leaders(&drawn);
        ensure!(holds, "{PICTURE} has other leaders than:\n{drawn}");
    }
    Ok(())
}

/// A leader is killed and started again, and so is the API server (R20, R21).
async fn of_crash(outer: Arc<Testbed>) -> Result<()> {
    play(&outer, "docs/leadership.md", CRASH_MARK).await?;
    Ok(())
}

/// Plays the transcript behind that mark, and writes it anew or compares it; the folder of its shell.
async fn play(outer: &Testbed, document: &str, mark: &str) -> Result<PathBuf> {
    let site = Arc::clone(outer.site());
    let testbed = Testbed::open_for(site, "default", LEASE, OURS).await?;
    for name in CANDIDATES {
        testbed.add_participant(name, OURS, LEASE);
    }
    let document = paths::workspace().join(document);
    let transcript = Transcript::read(&document, mark)?;
    let mut shell = JobShell::start(&testbed)?;
    let mut said = Vec::new();
    for step in &transcript.steps {
        testbed.note(&step.command);
        if step.command == RESTART {
            testbed.site().stop().await?;
            testbed.site().start_again().await?;
            said.push(String::new());
        } else {
            said.push(shell.run(&step.command).await?);
        }
    }
    let folder = shell.folder.clone();
    drop(shell);
    (transcript.settle(&document, &said)).with_context(|| testbed.journal().text())?;
    testbed.verdict().await?;
    Ok(folder)
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
        fs::create_dir_all(&folder)?;
        symlink(
            paths::workspace().join("manifests"),
            folder.join("manifests"),
        )?;
        let mut bash = site.finding_programs(Path::new("bash"))?;
        bash.args(["--norc", "--noprofile"])
            .current_dir(&folder)
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
