//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

use crate::adopters;
use crate::artefact::install_files::{self, ImageDigest};
use crate::artefact::{self, rebuild};
use crate::bench::{self, BenchTask};
use crate::binaries::{Binary, Toolbox};
use crate::cluster::{self, Options, RealCluster};
use crate::codegen;
use crate::criteria;
use crate::demo::{self, DemoArgs};
use crate::everything::{self, EverythingArgs};
use crate::lines;
use crate::manifests;
use crate::mutants::{self, MutationRun};
use crate::overlay_table;
use crate::proofs::{self, PassedArgs, Proof};
use crate::release::Release;
use crate::semver;
use crate::surface;
use crate::test::{self, Wanted};

/// Elector's development tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct XtaskArgs {
    #[command(subcommand)]
    task: DevelopmentTask,
}

#[derive(Debug, Subcommand)]
enum DevelopmentTask {
    /// A real etcd and kube-apiserver on loopback
    #[command(subcommand)]
    Cluster(ClusterTask),

    /// An API server, the elector and a few candidates: which one leads, which takes over, and why
    Demo(DemoArgs),

    /// Run the tests, also on a real kube-apiserver if one is to be had
    Test(Wanted),

    /// Write the files that are generated
    Codegen {
        /// Only check that they are up to date; exit status 1 if not
        #[arg(long)]
        check: bool,
    },

    /// Check that the measures and the tests exist that SECURITY.md and docs/proofs/criteria.md name
    Criteria,

    /// Search every state of small worlds that run the production step functions; `--help` tells its flags
    #[command(disable_help_flag = true)]
    Model(PassedArgs),

    /// Simulate electors and candidates through seeded faults, in virtual time; `--help` tells its flags
    #[command(disable_help_flag = true)]
    Sim(PassedArgs),

    /// Strike leaders with every fault on a real kube-apiserver, and see which of them work at the same time; `--help` tells
    /// its flags
    #[command(disable_help_flag = true)]
    Faults(PassedArgs),

    /// Count the lines of Rust of each package; exit status 1 if one has more than its budget
    Lines {
        /// Lower the budget to what stands
        #[arg(long)]
        lower: bool,
    },

    /// Change the code that ships in small ways, one at a time, and see which changes no test notices
    Mutants(MutationRun),

    /// Run all that takes hours, one after the other, and record it: the long tests, the proofs, the measurements. A run that is
    /// broken off goes on where it was
    Everything(EverythingArgs),

    /// Measure what the elector costs; each prints its flags with `--help`
    #[command(subcommand)]
    Bench(BenchTask),

    /// Print the flags, log lines, metrics, Events, exit codes and public names that differ from those of a revision
    Surface {
        /// The revision to compare with
        #[arg(value_name = "REV")]
        since: String,
    },

    /// Compare the libraries with the last release: what they promise others may not break
    Semver {
        /// Compare with this revision instead of the tag of the last release
        #[arg(long, value_name = "REV")]
        since: Option<String>,
    },

    /// Make the programs as they are shipped, static ones for this machine's architecture, and try them
    Release {
        /// Release of Kubernetes to try them on [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
        #[arg(long, value_name = "1.N")]
        kubernetes: Option<Release>,

        /// Make nothing, and try what is made: the part of the task that takes root
        #[arg(long)]
        only_trial: bool,
    },

    /// Write the manifests and the chart with the image that they are to run, beside the programs as they are shipped
    InstallFiles {
        /// The image, by its digest: REPOSITORY@sha256:…
        #[arg(long, value_name = "IMAGE")]
        image: ImageDigest,
    },

    /// Make the programs as they are shipped twice from the newest commit, in two folders, and compare them
    Rebuild,

    /// Run the transcripts of the README and of docs/leadership.md on a real kube-apiserver, and write them anew, with the picture
    Readme,

    /// Install each overlay, elect, crash, upgrade, go back and uninstall, from the programs as they are shipped
    Overlays {
        /// The revision that is upgraded, such as HEAD~1; it is built in target/upgrade-from
        #[arg(long, value_name = "REVISION")]
        upgrade_from: String,

        /// Write the times into docs/install.md
        #[arg(long)]
        record: bool,
    },

    /// Build the programs in `adopters` from the packages of the crates, and have each lead on a real kube-apiserver
    Adopters {
        /// Only these
        #[arg(value_name = "NAME")]
        programs: Vec<String>,
        /// Write anew what the first start of `ten-lines` says in each mode, in docs/leadership.md
        #[arg(long)]
        record: bool,
    },

    /// Do all of a publication of the crates but the upload
    Packages,

    /// Try the manifests on a real kube-apiserver
    Manifests(Options),
}

#[derive(Debug, Subcommand)]
enum ClusterTask {
    /// Start one that runs until `down`
    Up(Options),
    /// Be the owner of the one that `up` starts
    #[command(hide = true)]
    Hold { options: String },
    /// Start one for the time that a command runs
    Run(ClusterRunArgs),
    /// Stop it and remove its data
    Down(DirArgs),
    /// Say what runs; exit status 1 if it does not
    Status(DirArgs),
    /// Print the path of a program, building it if need be
    Binary(BinaryArgs),
}

#[derive(Debug, Args)]
struct DirArgs {
    /// The folder of data, keys, kubeconfigs and logs [default: `cluster` in Elector's cache folder]
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ClusterRunArgs {
    #[command(flatten)]
    options: Options,

    /// The command, with KUBECONFIG set to the administrator's
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct BinaryArgs {
    /// The program
    #[arg(value_enum)]
    binary: Binary,

    /// Release of Kubernetes [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
    #[arg(long, value_name = "1.N")]
    kubernetes: Option<Release>,
}

/// Runs the verb on the command line; errors go to stderr as one line.
#[must_use]
pub fn run() -> ExitCode {
    match dispatch(XtaskArgs::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// False when the verb ran and its answer is no.
fn dispatch(task: DevelopmentTask) -> Result<bool> {
    match task {
        DevelopmentTask::Cluster(task) => return cluster(task),
        DevelopmentTask::Demo(args) => demo::run(&args)?,
        DevelopmentTask::Test(wanted) => return test::run(&wanted),
        DevelopmentTask::Codegen { check: true } => return codegen::check(),
        DevelopmentTask::Codegen { check: false } => codegen::write()?,
        DevelopmentTask::Criteria => criteria::check()?,
        DevelopmentTask::Model(args) => proofs::run(Proof::Model, &args.arguments)?,
        DevelopmentTask::Sim(args) => proofs::run(Proof::Sim, &args.arguments)?,
        DevelopmentTask::Faults(args) => proofs::run(Proof::Faults, &args.arguments)?,
        DevelopmentTask::Lines { lower } => lines::run(lower)?,
        DevelopmentTask::Mutants(args) => mutants::run(&args)?,
        DevelopmentTask::Everything(args) => return everything::run(&args),
        DevelopmentTask::Bench(task) => bench::run(task)?,
        DevelopmentTask::Surface { since } => surface::compare(&since)?,
        DevelopmentTask::Semver { since } => semver::check(since)?,
        DevelopmentTask::Release {
            kubernetes,
            only_trial: true,
        } => artefact::try_again(kubernetes)?,
        DevelopmentTask::Release { kubernetes, .. } => artefact::make(kubernetes)?,
        DevelopmentTask::InstallFiles { image } => install_files::write(&image)?,
        DevelopmentTask::Rebuild => return rebuild::compare(),
        DevelopmentTask::Readme => codegen::record_transcript()?,
        DevelopmentTask::Overlays {
            upgrade_from,
            record,
        } => overlay_table::run(&upgrade_from, record)?,
        DevelopmentTask::Adopters { programs, record } => adopters::run(&programs, record)?,
        DevelopmentTask::Packages => adopters::rehearse()?,
        DevelopmentTask::Manifests(options) => manifests::try_on_a_cluster(&options)?,
    }
    Ok(true)
}

fn cluster(task: ClusterTask) -> Result<bool> {
    match task {
        ClusterTask::Up(options) => cluster::up(options)?,
        ClusterTask::Hold { options } => cluster::hold(&options)?,
        ClusterTask::Run(args) => return run_in_cluster(&args.options, &args.command),
        ClusterTask::Down(args) => cluster::down(args.dir)?,
        ClusterTask::Status(args) => return cluster::status(args.dir),
        ClusterTask::Binary(args) => {
            let path = Toolbox::new(args.kubernetes)?.path(args.binary)?;
            println!("{}", path.display());
        }
    }
    Ok(true)
}

fn run_in_cluster(options: &Options, command: &[OsString]) -> Result<bool> {
    let (program, arguments) = command
        .split_first()
        .context("there is no command to run")?;
    let cluster = RealCluster::start(options)?;
    let status = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig())
        .status()
        .with_context(|| format!("failed to run {}", program.display()))?;
    cluster.stop()?;
    Ok(status.success())
}

#[cfg(test)]
mod tests;
