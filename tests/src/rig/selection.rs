//! The command line of the scenarios.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// The scenarios that the command line asks for: the part of libtest's that people use.
#[derive(Debug, Default)]
pub(super) struct ScenarioSelection {
    words: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    /// Run them: without libtest's `--ignored` or `--include-ignored`, there is no cluster to be used.
    pub(super) real: bool,
    /// Run each in every mode that it has.
    pub(super) all_modes: bool,
    /// Run those too that take minutes.
    pub(super) long: bool,
    /// Run those too that need another build of elector: this one.
    pub(super) beside: Option<PathBuf>,
    /// Run those too that upgrade from an earlier version: a source tree of it, with its binary `elector` in the root.
    pub(super) upgrade_from: Option<PathBuf>,
    /// Write their figures into this document.
    pub(super) record: Option<PathBuf>,
    /// Write the table of the suite into this document.
    pub(super) record_table: Option<PathBuf>,
    /// Only name them.
    pub(super) list: bool,
    /// The number that run at once.
    pub(super) jobs: Option<usize>,
}

// === impl ScenarioSelection ===

impl ScenarioSelection {
    /// Reads the command line.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub(super) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut selection = Self::default();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            let mut value = || {
                value
                    .clone()
                    .or_else(|| arguments.next())
                    .context("a flag without its value")
            };
            match flag.as_str() {
                "--list" => selection.list = true,
                "--exact" => selection.exact = true,
                "--include-ignored" | "--ignored" => selection.real = true,
                "--all-modes" => selection.all_modes = true,
                "--long" => selection.long = true,
                "--beside" => selection.beside = Some(PathBuf::from(value()?)),
                "--upgrade-from" => selection.upgrade_from = Some(PathBuf::from(value()?)),
                "--record" => selection.record = Some(PathBuf::from(value()?)),
                "--record-table" => selection.record_table = Some(PathBuf::from(value()?)),
                "--skip" => selection.skip.push(value()?),
                "--test-threads" => {
                    selection.jobs = Some(value()?.parse().context("--test-threads is no number")?);
                }
                // Flags of libtest that have no meaning here.
                "--format" | "--color" | "-Z" => drop(value()?),
                "--nocapture" | "--no-capture" | "--quiet" | "-q" | "--show-output" => {}
                unknown if unknown.starts_with('-') => bail!("unknown flag {unknown}"),
                _ => selection.words.push(flag),
            }
        }
        Ok(selection)
    }

    /// True if some are asked for by name.
    pub(super) fn names_some(&self) -> bool {
        !self.words.is_empty()
    }

    /// True if the test of this name is to be run.
    pub(super) fn wants(&self, name: &str) -> bool {
        let matches = |word: &String| {
            if self.exact {
                name == word
            } else {
                name.contains(word.as_str())
            }
        };
        (self.words.is_empty() || self.words.iter().any(matches)) && !self.skip.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn selection(words: &[&str]) -> Result<ScenarioSelection> {
        ScenarioSelection::parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn words_choose_and_skips_exclude() {
        let chosen = selection(&[
            "crash",
            "--skip",
            "gate_on",
            "--nocapture",
            "--test-threads=3",
        ])
        .unwrap();
        assert!(
            chosen.wants("crash::gate_off")
                && !chosen.wants("crash::gate_on")
                && !chosen.wants("start")
        );
        assert_eq!(chosen.jobs, Some(3));
        let exact = selection(&["--exact", "crash"]).unwrap();
        assert!(exact.wants("crash") && !exact.wants("crash::gate_off"));
        assert!(selection(&[]).unwrap().wants("anything"));
        assert!(selection(&["--list"]).unwrap().list);
    }

    #[test]
    fn a_cluster_is_used_only_when_it_is_asked_for() {
        assert!(!selection(&["crash"]).unwrap().real);
        for flag in ["--ignored", "--include-ignored"] {
            assert!(selection(&["crash", flag]).unwrap().real);
        }
    }

    #[test]
    fn what_takes_more_is_asked_for_by_a_flag_and_not_by_its_name() {
        let named = selection(&["many_faults", "--ignored"]).unwrap();
        assert!(!named.long && named.beside.is_none() && named.upgrade_from.is_none());
        let asked = selection(&[
            "--long",
            "--beside=/bin/other",
            "--upgrade-from",
            "/earlier",
        ])
        .unwrap();
        assert!(asked.long && asked.beside.as_deref() == Some(Path::new("/bin/other")));
        assert_eq!(asked.upgrade_from.as_deref(), Some(Path::new("/earlier")));
        assert!(selection(&["--beside"]).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(
            selection(&["--wat"]).unwrap_err().to_string(),
            "unknown flag --wat"
        );
        assert!(selection(&["--skip"]).is_err() && selection(&["--test-threads=x"]).is_err());
    }
}
