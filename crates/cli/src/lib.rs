//! The binaries `elector` and `kubectl-elector`: wiring and words only.

mod block_on;
mod candidate;
mod dev;
mod endpoints;
mod explain;
mod fence_policy;
mod input;
mod kubectl;
mod namespace;
mod output;
mod run;
mod verify;
mod yaml;

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
    Candidate(Box<candidate::CandidateCommandArgs>),
    Dev(Box<dev::DevArgs>),
    Explain(Box<explain::ExplainArgs>),
    FencePolicy(Box<fence_policy::FencePolicyArgs>),
    Run(Box<run::RunArgs>),
    Verify(Box<verify::VerifyArgs>),
    #[command(name = candidate::pid1::NAME, hide = true)]
    Init(candidate::pid1::Pid1Args),
    #[command(name = candidate::exec_child::NAME, hide = true)]
    ExecChild(candidate::exec_child::ExecChildArgs),
    #[command(name = candidate::supervisor::NAME, hide = true)]
    Supervise(candidate::supervisor::SupervisorArgs),
}

/// Runs the binary `elector`.
pub fn elector() -> ExitCode {
    exit_code(match Cli::parse().command {
        Command::Candidate(args) => candidate::run(*args),
        Command::Dev(args) => dev::run(*args),
        Command::Explain(args) => explain::run(*args),
        Command::FencePolicy(args) => fence_policy::run(&args),
        Command::Run(args) => run::run(*args),
        Command::Verify(args) => verify::run(&args),
        Command::Init(args) => candidate::pid1::run(&args),
        Command::Supervise(args) => candidate::supervisor::run(&args),
        Command::ExecChild(args) => Ok(candidate::exec_child::run(&args)),
    })
}

/// Runs the binary `kubectl-elector`, a plugin of kubectl.
pub fn kubectl_elector() -> ExitCode {
    exit_code(kubectl::run())
}

fn exit_code(done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        output::print_error(format_args!("failed to {error:#}"));
        ExitCode::FAILURE
    })
}
