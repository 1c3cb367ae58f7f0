//! A transcript in a document: its commands, what they say, and the comparison with what they say now.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// A part of a document between two lines of its own.
#[derive(Debug)]
pub(crate) struct Transcript {
    before: String,
    pub(crate) steps: Vec<TranscriptStep>,
    after: String,
}

/// One command and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TranscriptStep {
    pub(crate) command: String,
    pub(crate) said: String,
}

/// The line after a transcript.
const END: &str = "```\n";

/// True where documents are to be written anew.
pub(crate) fn is_recorded() -> bool {
    env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1")
}

// === impl Transcript ===

impl Transcript {
    /// Reads the transcript that follows this remark in a document.
    pub(crate) fn read(document: &Path, mark: &str) -> Result<Self> {
        let text = fs::read_to_string(document)?;
        let mark = format!("<!-- {mark} -->\n```console\n");
        let (before, rest) = (text.split_once(&mark))
            .with_context(|| format!("{} has no transcript", document.display()))?;
        let (transcript, after) = rest.split_once(END).context("a transcript without end")?;
        let steps = parse(transcript);
        ensure!(!steps.is_empty(), "the transcript is empty");
        Ok(Self {
            before: format!("{before}{mark}"),
            steps,
            after: format!("{END}{after}"),
        })
    }

    /// Writes what its commands say now into the document, or compares it with what stands there.
    pub(crate) fn settle(&self, document: &Path, said: &[String]) -> Result<()> {
        if is_recorded() {
            let steps = self.steps.iter().zip(said);
            let lines = steps.map(|(step, said)| format!("$ {}\n{said}", step.command));
            let lines: String = lines.collect();
            let text = format!("{}{lines}{}", self.before, self.after);
            return fs::write(document, text).context("failed to write the transcript");
        }
        for (step, now) in self.steps.iter().zip(said) {
            ensure!(
                normal(&step.said) == normal(now),
                "{} says of `{}`:\n{}\nbut it says:\n{now}",
                document.display(),
                step.command,
                step.said,
            );
        }
        Ok(())
    }
}

/// A command that ends in a pipe or a backslash goes on in the next line.
fn parse(transcript: &str) -> Vec<TranscriptStep> {
    let mut steps: Vec<TranscriptStep> = Vec::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let (command, said) = (command.to_owned(), String::new());
            steps.push(TranscriptStep { command, said });
        } else if let Some(step) = steps.last_mut() {
            if step.said.is_empty() && step.command.ends_with(['|', '\\']) {
                step.command.push('\n');
                step.command.push_str(line);
            } else {
                step.said.push_str(line);
                step.said.push('\n');
            }
        }
    }
    steps
}

/// The same without what differs from run to run: for how long a lease had been free, below one second, ages, times,
/// counts of a server, and the identity of the elector, which has the name of the machine.
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
        None if line.starts_with("LAST DEPLOYED:") => "[TIME]\n".to_owned(),
        None if line.starts_with("apiserver_") => {
            let series = line.rsplit_once(' ').map_or(line, |(series, _)| series);
            format!("{series} [COUNT]\n")
        }
        None => {
            let words = line.split_whitespace().map(placeholder);
            format!("{}\n", words.collect::<Vec<_>>().join(" "))
        }
    });
    lines.collect()
}
