//! The command line of the scenarios.

use std::path::PathBuf;

/// The scenarios that the command line asks for: the part of libtest's that people use.
#[derive(Debug, Default, clap::Parser)]
pub(super) struct ScenarioSelection {
    words: Vec<String>,
    #[arg(long)]
    skip: Vec<String>,
    #[arg(long)]
    exact: bool,
    /// Run them: without this flag of libtest, there is no cluster to be used.
    #[arg(long = "ignored", alias = "include-ignored", overrides_with = "real")]
    pub(super) real: bool,
    /// Run each in every mode that it has.
    #[arg(long)]
    pub(super) all_modes: bool,
    /// Run those too that take minutes.
    #[arg(long)]
    pub(super) long: bool,
    /// Run those too that need an earlier version: a source tree of it, with its binary `elector` in the root.
    #[arg(long)]
    pub(super) upgrade_from: Option<PathBuf>,
    /// Write their figures into this document.
    #[arg(long)]
    pub(super) record: Option<PathBuf>,
    /// Write the table of the suite into this document.
    #[arg(long)]
    pub(super) record_table: Option<PathBuf>,
    /// Only name them.
    #[arg(long)]
    pub(super) list: bool,
    /// The number that run at once.
    #[arg(long = "test-threads")]
    pub(super) jobs: Option<usize>,
    /// A flag of libtest that has no meaning here, as the next ones.
    #[arg(
        long = "nocapture",
        short = 'q',
        aliases = ["no-capture", "show-output", "quiet"],
        overrides_with = "_nocapture"
    )]
    _nocapture: bool,
    #[arg(long = "format", alias = "color", short = 'Z')]
    _format: Vec<String>,
}

// === impl ScenarioSelection ===

impl ScenarioSelection {
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
    use clap::Parser as _;

    use super::*;

    fn selection(words: &str) -> Result<ScenarioSelection, clap::Error> {
        ScenarioSelection::try_parse_from(std::iter::once("real").chain(words.split(' ')))
    }

    #[test]
    fn words_choose_and_skips_exclude() {
        let chosen = selection("crash --skip gate_on --nocapture --test-threads=3").unwrap();
        for (name, wanted) in [
            ("crash::gate_off", true),
            ("crash::gate_on", false),
            ("start", false),
        ] {
            assert_eq!(chosen.wants(name), wanted, "{name}");
        }
        assert_eq!((chosen.jobs, chosen.real), (Some(3), false));
        let exact = selection("--exact crash --include-ignored").unwrap();
        assert!(exact.wants("crash") && !exact.wants("crash::gate_off") && exact.real);
        assert!(ScenarioSelection::default().wants("anything"));
        assert!(
            selection("--format=pretty --color never -q --list --ignored")
                .unwrap()
                .list
        );
    }
}
