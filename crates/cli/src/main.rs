//! The binary `elector`: wiring and words only.

mod candidate;
mod dev;
mod explain;
mod host;
mod input;
mod output;
mod run;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Coordinated leader election for Kubernetes
#[derive(Debug, Parser)]
#[command(name = "elector", version, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Candidate(Box<candidate::CandidateArgs>),
    Dev(Box<dev::DevArgs>),
    Explain(Box<explain::ExplainArgs>),
    Run(Box<run::RunArgs>),
    Verify(Box<verify::VerifyArgs>),
    #[command(name = candidate::init::NAME, hide = true)]
    Init(candidate::init::InitArgs),
    #[command(name = candidate::shim::NAME, hide = true)]
    Shim(candidate::shim::ShimArgs),
    #[command(name = candidate::supervisor::NAME, hide = true)]
    Supervise(candidate::supervisor::SupervisorArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Candidate(args) => candidate::run(*args),
        Command::Dev(args) => dev::run(*args),
        Command::Explain(args) => explain::run(*args),
        Command::Run(args) => run::run(*args),
        Command::Verify(args) => verify::run(&args),
        Command::Init(args) => candidate::init::run(&args),
        Command::Supervise(args) => candidate::supervisor::run(&args),
        Command::Shim(args) => Ok(candidate::shim::run(&args)),
    };
    done.unwrap_or_else(|error| {
        output::print_error(format_args!("failed to {error:#}"));
        ExitCode::FAILURE
    })
}
