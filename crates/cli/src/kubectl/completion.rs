//! Shell completion, as kubectl asks its plugins for it: by an executable of the name `kubectl_complete-elector`.
//!
//! It is called with the words so far, of which the last is the one to complete, and answers with a line for each choice
//! and a last line `:4`, cobra's word for "no file names".

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, Args, Command};
use elector_runtime::{ClientArgs, connect};

use crate::explain::cluster;
use crate::explain::input::LeaseChoice;
use crate::output;

/// Prints the executable that kubectl completes `kubectl elector` with.
///
/// Save it as `kubectl_complete-elector` anywhere in $PATH and make it executable, beside `kubectl completion` of your shell.
#[derive(Args, Debug)]
pub(super) struct CompletionArgs {}

/// The words so far, the last of which is to be completed.
#[derive(Args, Debug)]
pub(super) struct CompleteArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The choices for the place of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WordChoices {
    /// One of these, each with what it is.
    Words(Vec<(String, String)>),
    /// The name of a lease.
    Leases,
    /// The name of a candidate.
    Candidates,
}

/// The words before the one to complete, as far as they matter.
#[derive(Debug)]
struct Before<'c> {
    command: &'c Command,
    /// The flag whose value comes next.
    flag: Option<&'c Arg>,
    positionals: Vec<String>,
    namespace: Option<String>,
    client: ClientArgs,
}

/// The sub-command by which the executable asks.
pub(super) const NAME: &str = "__complete";

const SCRIPT: &str = "#!/bin/sh\nexec kubectl-elector __complete -- \"$@\"\n";

/// Names are asked for while somebody waits at a prompt.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints the executable.
pub(super) fn print_script() -> anyhow::Result<ExitCode> {
    output::print(SCRIPT).context("print the executable")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the choices.
pub(super) async fn complete(command: Command, args: CompleteArgs) -> anyhow::Result<ExitCode> {
    let (last, before) = match args.words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let before = Before::of(&command, before);
    let found = match before.choices(last) {
        WordChoices::Words(words) => words,
        // A cluster that cannot be asked has no choices: the prompt is no place for errors.
        choices => before.names(choices).await.unwrap_or_default(),
    };
    let mut text = String::new();
    for (word, about) in found {
        if word.starts_with(last) {
            let line = if about.is_empty() {
                word
            } else {
                format!("{word}\t{about}")
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    output::print(&(text + ":4\n")).context("print the choices")?;
    Ok(ExitCode::SUCCESS)
}

// === impl Before ===

impl<'c> Before<'c> {
    fn of(command: &'c Command, words: &[String]) -> Self {
        let mut before = Self {
            command,
            flag: None,
            positionals: Vec::new(),
            namespace: None,
            client: ClientArgs::default(),
        };
        before.client.request_timeout = PATIENCE;
        for word in words {
            if let Some(flag) = before.flag.take() {
                before.set(flag.get_long().unwrap_or_default(), word);
            } else if let Some((long, value)) = word
                .strip_prefix("--")
                .and_then(|word| word.split_once('='))
            {
                before.set(long, value);
            } else if word.starts_with('-') {
                let flag = before
                    .command
                    .get_arguments()
                    .find(|arg| is_flag(arg, word));
                before.flag = flag.filter(|arg| arg.get_action().takes_values());
            } else if let Some(command) = before.command.find_subcommand(word) {
                before.command = command;
            } else {
                before.positionals.push(word.clone());
            }
        }
        before
    }

    /// Keeps what names are to be asked for by.
    fn set(&mut self, flag: &str, value: &str) {
        match flag {
            "namespace" => self.namespace = Some(value.to_owned()),
            "kubeconfig" => self.client.kubeconfig = Some(value.into()),
            "context" => self.client.context = Some(value.to_owned()),
            _ => {}
        }
    }

    fn choices(&self, last: &str) -> WordChoices {
        let about = |text: Option<&clap::builder::StyledStr>| {
            let text = text.map(ToString::to_string).unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        if let Some(flag) = self.flag {
            if flag.get_id() == "lease" {
                return WordChoices::Leases;
            }
            let values = flag.get_possible_values().into_iter();
            return WordChoices::Words(
                values
                    .map(|value| (value.get_name().to_owned(), about(value.get_help())))
                    .collect(),
            );
        }
        if last.starts_with('-') {
            let flags = self
                .command
                .get_arguments()
                .filter(|arg| !arg.is_hide_set());
            let flags = flags
                .filter_map(|arg| Some((format!("--{}", arg.get_long()?), about(arg.get_help()))));
            return WordChoices::Words(flags.collect());
        }
        if self.command.has_subcommands() {
            let commands = self
                .command
                .get_subcommands()
                .filter(|command| !command.is_hide_set());
            let commands =
                commands.map(|command| (command.get_name().to_owned(), about(command.get_about())));
            return WordChoices::Words(commands.collect());
        }
        let next = self.command.get_positionals().nth(self.positionals.len());
        match next.map(|arg| arg.get_id().as_str()) {
            Some("lease") => WordChoices::Leases,
            Some("candidate") => WordChoices::Candidates,
            _ => WordChoices::Words(Vec::new()),
        }
    }

    /// Names from the cluster: of leases, or of the candidates of the lease that stands before.
    async fn names(&self, choices: WordChoices) -> anyhow::Result<Vec<(String, String)>> {
        let cluster = connect(&self.client).await?;
        let namespace = self.namespace.as_deref().unwrap_or(cluster.namespace());
        let mut objects = cluster::read(&cluster, Some(namespace), LeaseChoice::Elected).await?;
        if choices == WordChoices::Leases {
            let names = objects.elections.keys().map(|key| key.name.to_string());
            return Ok(printable_names(names));
        }
        objects.keep(None, self.positionals.first().map(String::as_str));
        let candidates = objects
            .elections
            .values()
            .flat_map(|election| &election.candidates);
        Ok(printable_names(
            candidates.map(|candidate| candidate.name.as_str().to_owned()),
        ))
    }
}

/// Names that a shell takes as they are.
fn printable_names(names: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let names = names.filter(|name| name.chars().all(plain));
    let mut names: Vec<_> = names.map(|name| (name, String::new())).collect();
    names.sort();
    names
}

fn is_flag(arg: &Arg, word: &str) -> bool {
    let is_long = arg
        .get_long()
        .is_some_and(|long| word.strip_prefix("--") == Some(long));
    is_long
        || arg
            .get_short()
            .is_some_and(|short| word.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
}
