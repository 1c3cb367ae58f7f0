//! `kubectl elector`: what an operator asks and says, as a plugin of kubectl.

mod annotate;
mod annotation_patch;
mod bundle;
mod check;
mod completion;
mod drain;
mod history;
mod pages;
mod pods;
mod status;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::block_on::block_on;
use crate::explain::{self, ExplainArgs};

/// Who leads, why, and what an operator can do about it
///
/// A plugin of kubectl: an executable of the name `kubectl-elector` anywhere in $PATH.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-elector",
    bin_name = "kubectl elector",
    version,
    max_term_width = 120
)]
struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    Bundle(Box<bundle::BundleArgs>),
    Check(Box<check::CheckArgs>),
    #[command(name = completion::NAME, hide = true)]
    Complete(completion::CompleteArgs),
    Completion(completion::CompletionArgs),
    Drain(Box<drain::DrainArgs>),
    Explain(Box<ExplainArgs>),
    Freeze(Box<annotate::FreezeArgs>),
    History(Box<history::HistoryArgs>),
    Prefer(Box<annotate::PreferArgs>),
    StandDown(Box<annotate::StandDownArgs>),
    Status(Box<status::StatusArgs>),
    Timeline(Box<history::TimelineArgs>),
    Unfreeze(Box<annotate::UnfreezeArgs>),
    Words(Box<words::WordsArgs>),
}

/// Runs the plugin.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    match PluginArgs::parse().command {
        PluginCommand::Bundle(args) => block_on(bundle::run(*args)),
        PluginCommand::Check(args) => block_on(check::run(*args)),
        PluginCommand::Complete(args) => {
            let command = PluginArgs::command();
            block_on(completion::complete(command, args))
        }
        PluginCommand::Completion(_) => completion::print_script(),
        PluginCommand::Drain(args) => block_on(drain::run(*args)),
        PluginCommand::Explain(args) => explain::run(*args),
        PluginCommand::Freeze(args) => block_on(annotate::freeze(*args)),
        PluginCommand::History(args) => block_on(history::history(*args)),
        PluginCommand::Timeline(args) => block_on(history::timeline(*args)),
        PluginCommand::Prefer(args) => block_on(annotate::prefer(*args)),
        PluginCommand::StandDown(args) => block_on(annotate::stand_down(*args)),
        PluginCommand::Unfreeze(args) => block_on(annotate::unfreeze(*args)),
        PluginCommand::Status(args) => block_on(status::run(*args)),
        PluginCommand::Words(args) => block_on(words::run(*args)),
    }
}
