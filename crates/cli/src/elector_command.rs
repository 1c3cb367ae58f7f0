//! The sub-commands of the binary `elector`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{candidate, dev, explain, fence_policy, run as run_command, verify};

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
    Run(Box<run_command::RunArgs>),
    Verify(Box<verify::VerifyArgs>),
    #[command(name = candidate::pid1::NAME, hide = true)]
    Init(candidate::pid1::Pid1Args),
    #[command(name = candidate::exec_child::NAME, hide = true)]
    ExecChild(candidate::exec_child::ExecChildArgs),
    #[command(name = candidate::supervisor::NAME, hide = true)]
    Supervise(candidate::supervisor::SupervisorArgs),
}

/// Runs the one that is asked for.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Candidate(args) => candidate::run(*args),
        Command::Dev(args) => dev::run(*args),
        Command::Explain(args) => explain::run(*args),
        Command::FencePolicy(args) => fence_policy::run(&args),
        Command::Run(args) => run_command::run(*args),
        Command::Verify(args) => verify::run(&args),
        Command::Init(args) => candidate::pid1::run(&args),
        Command::Supervise(args) => candidate::supervisor::run(&args),
        Command::ExecChild(args) => Ok(candidate::exec_child::run(&args)),
    }
}
