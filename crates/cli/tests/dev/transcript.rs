//! A transcript: commands, and what they say, with what differs from run to run replaced by `[WORDS]`.
//!
//! ```text
//! # A remark.
//! $ a command for the shell
//! what it says, on both outputs
//! ? its exit code, where that is not 0
//!
//! $ a command that goes on &
//! $ fg
//! what that command has said by now, after which it is ended
//! ```

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::PATIENCE;

/// One command and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TranscriptStep {
    /// The remarks above it.
    remarks: Vec<String>,
    command: String,
    said: String,
}

/// Where commands run.
pub(crate) struct Shell {
    /// The working directory.
    pub(crate) folder: PathBuf,
    /// The first folder that programs are looked for in.
    pub(crate) programs: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// For caches and outputs.
    pub(crate) scratch: PathBuf,
    /// True while the output of a command in the background is not known yet.
    pub(crate) recording: bool,
}

/// A command in the background, killed when it is dropped.
struct Background {
    child: Child,
    output: PathBuf,
}

/// The time that a recording listens to a command in the background.
const RECORDING: Duration = Duration::from_secs(5);

/// Reads a transcript.
pub(crate) fn parse(text: &str) -> Vec<TranscriptStep> {
    let mut steps: Vec<TranscriptStep> = Vec::new();
    let mut remarks = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let may_remark = before.is_empty() || before.starts_with("# ") || before.starts_with("$ ");
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(TranscriptStep {
                remarks: std::mem::take(&mut remarks),
                command: command.to_owned(),
                said: String::new(),
            });
        } else if line.starts_with("# ") && may_remark {
            remarks.push(line.to_owned());
        } else if let Some(step) = steps.last_mut() {
            step.said.push_str(line);
            step.said.push('\n');
        }
        before = line;
    }
    for step in &mut steps {
        let length = step.said.trim_end().len();
        step.said.truncate(length);
    }
    steps
}

/// Writes a transcript.
pub(crate) fn print(steps: &[TranscriptStep]) -> String {
    let mut text = String::new();
    for step in steps {
        for remark in &step.remarks {
            writeln!(text, "{remark}").unwrap();
        }
        writeln!(text, "$ {}", step.command).unwrap();
        if !step.said.is_empty() {
            writeln!(text, "{}", step.said).unwrap();
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

// === impl Shell ===

impl Shell {
    /// Runs the commands of a transcript, and returns it with what they say now.
    pub(crate) fn run(&self, steps: &[TranscriptStep]) -> Vec<TranscriptStep> {
        let mut background: Option<Background> = None;
        let mut done = Vec::new();
        for step in steps {
            let said = if let Some(command) = step.command.strip_suffix(" &") {
                let started = self.start(command, "background");
                started.wait_for_lines(1);
                background = Some(started);
                String::new()
            } else if step.command == "fg" {
                let started = background.take().unwrap();
                if self.recording {
                    thread::sleep(RECORDING);
                } else {
                    started.wait_for_lines(step.said.lines().count());
                }
                started.said()
            } else {
                self.start(&step.command, "foreground").end()
            };
            done.push(TranscriptStep {
                said: normal(&said),
                ..step.clone()
            });
        }
        done
    }

    fn start(&self, command: &str, output: &str) -> Background {
        let output = self.scratch.join(output);
        let file = File::create(&output).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("HOME", &self.scratch)
            .env("KUBECONFIG", &self.kubeconfig)
            .env_remove("EDITOR")
            .env_remove("VISUAL")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Background { child, output }
    }
}

// === impl Background ===

impl Background {
    fn wait_for_lines(&self, lines: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.said().lines().count() < lines {
            assert!(
                Instant::now() < deadline,
                "fewer than {lines} lines: {}",
                self.said()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The output of a command until its end, with its exit code.
    fn end(mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut said = self.said();
                if !status.success() {
                    writeln!(said, "? {}", status.code().unwrap_or(-1)).unwrap();
                }
                return said;
            }
            assert!(
                Instant::now() < deadline,
                "it does not end: {}",
                self.said()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program under the name that transcripts call it by, in a folder of its own.
pub(crate) fn linked(program: &Path, name: &str, folder: &Path) -> PathBuf {
    let programs = folder.join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(program, programs.join(name)).unwrap();
    programs
}

/// The output, without what differs from run to run and from one release of kubectl to another.
fn normal(said: &str) -> String {
    let lines: Vec<_> = said.trim_end().lines().map(normal_line).collect();
    lines.join("\n")
}

fn normal_line(line: &str) -> String {
    // Later releases of kubectl say where it was.
    let line = line
        .strip_suffix(" namespace")
        .and_then(|line| line.rsplit_once("\" deleted from "))
        .map_or_else(|| line.to_owned(), |(what, _)| format!("{what}\" deleted"));
    let is_table = !line.contains(':');
    let mut normal = String::new();
    let mut before = String::new();
    let mut rest = line.trim_end();
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        normal.push_str(&rest[..blank]);
        rest = &rest[blank..];
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let bare = word.trim_matches('"');
        let is_revision = before.ends_with("resourceVersion:")
            || before.ends_with("Resource Version:")
            || before.ends_with("elector.dev/token:");
        let stand_in = if is_uid(bare) {
            Some("[UID]")
        } else if is_time(bare) {
            Some("[TIME]")
        } else if is_revision && is_number(bare) {
            Some("[REVISION]")
        } else if is_table && rest.is_empty() && is_age(bare) {
            Some("[AGE]")
        } else {
            None
        };
        match stand_in {
            Some(stand_in) => normal.push_str(&word.replace(bare, stand_in)),
            None => normal.push_str(word),
        }
        before = if before.is_empty() {
            word.to_owned()
        } else {
            format!("{before} {word}")
        };
    }
    normal
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12])
        && word
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// RFC 3339 in UTC.
fn is_time(word: &str) -> bool {
    word.len() >= 20
        && word.ends_with('Z')
        && word.as_bytes()[10] == b'T'
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte))
}

/// As tables show it: 5s, 2m3s, 4d.
fn is_age(word: &str) -> bool {
    let units = word
        .split(|c: char| c.is_ascii_digit())
        .filter(|unit| !unit.is_empty());
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_alphabetic())
        && units
            .into_iter()
            .all(|unit| ["s", "m", "h", "d"].contains(&unit))
}
