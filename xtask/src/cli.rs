//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::adopters;
use crate::artefact;
use crate::bench;
use crate::binaries::{Binary, Toolbox};
use crate::build_times::{self, TimedCommand};
use crate::cluster::{self, Options, TestCluster};
use crate::codegen;
use crate::criteria;
use crate::demo::{self, DemoKind};
use crate::lines;
use crate::manifests;
use crate::mutants::{self, MutationRun};
use crate::overlay_table;
use crate::proofs::{self, Proof};
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
    Test {
        /// Fail if one is not to be had
        #[arg(long)]
        require_real: bool,

        /// Run scenarios that start a cluster of their own on every kind of cluster, not on one of them
        #[arg(long)]
        all_modes: bool,

        /// Run the scenarios that take minutes too
        #[arg(long)]
        long: bool,

        /// Run the scenarios too in which another build of elector, this program, is beside the one that is tested
        #[arg(long, value_name = "PATH", value_parser = parse_program)]
        beside: Option<PathBuf>,

        /// Run the scenarios too in which each overlay of this revision, such as HEAD~1, is upgraded to that of this version
        /// and taken back; it is built in target/upgrade-from
        #[arg(long, value_name = "REVISION")]
        upgrade_from: Option<String>,

        /// Kill a test program that runs longer than this, and its children; it counts as failed
        #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_timeout)]
        timeout: Duration,

        /// Only cold start, hand-over, crash, policies and fences, on a kube-apiserver of this release: 1.31, 1.32, 1.34, 1.36 or 1.37
        #[arg(long, value_name = "1.N", conflicts_with_all = ["require_real", "all_modes", "long", "beside", "upgrade_from", "timeout"])]
        kubernetes: Option<Release>,
    },

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
    Model(ProofArgs),

    /// Simulate electors and candidates through seeded faults, in virtual time; `--help` tells its flags
    #[command(disable_help_flag = true)]
    Sim(ProofArgs),

    /// Strike leaders with every fault on a real kube-apiserver, and see which of them work at the same time; `--help` tells
    /// its flags
    #[command(disable_help_flag = true)]
    Faults(ProofArgs),

    /// Count the lines of Rust of each package; exit status 1 if one has more than its budget
    Lines {
        /// Lower the budget to what stands
        #[arg(long)]
        lower: bool,
    },

    /// Change the code that ships in small ways, one at a time, and see which changes no test notices
    Mutants(MutationRun),

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
    Release(ReleaseArgs),

    /// Run the transcript of the README on a real kube-apiserver, and write anew what it says and what it draws
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

    /// Try the manifests on a real kube-apiserver
    Manifests(OptionArgs),

    /// Becomes a command in a session of its own
    #[command(name = cluster::EXEC_DETACHED, hide = true)]
    ExecDetached {
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
enum ClusterTask {
    /// Start one that runs until `down`
    Up(OptionArgs),
    /// Start one for the time that a command runs
    Run(ClusterRunArgs),
    /// Stop it and remove its data
    Down(DirArgs),
    /// Say what runs; exit status 1 if it does not
    Status(DirArgs),
    /// Print the path of a program, building it if need be
    Binary(BinaryArgs),
}

#[derive(Debug, Subcommand)]
enum BenchTask {
    /// Time, memory, processor time and requests with thousands of leases; `--help` tells its flags
    #[command(disable_help_flag = true)]
    Scale(ProofArgs),

    /// What it costs a program to ask whether it leads, and how soon its controllers reconcile once it does
    Leadership {
        /// Write the figures into docs/leadership.md
        #[arg(long)]
        record: bool,
    },

    /// How long two hundred leases are without a leader, by a release build on a real kube-apiserver
    HandOvers {
        /// Write the figures into docs/leadership.md
        #[arg(long)]
        record: bool,
    },

    /// How many crates and bytes elector-candidate adds to a program
    Size {
        /// Write the table into adopters/README.md
        #[arg(long)]
        record: bool,
    },

    /// How long a newcomer waits, from a fresh clone with an empty cargo cache
    Builds {
        /// The last command that is timed; those before it run too
        #[arg(long, value_enum, default_value = "warm-tests")]
        last: TimedCommand,

        /// Write the rows into CONTRIBUTING.md
        #[arg(long)]
        record: bool,
    },

    /// What a namespace that is filled without end costs, and what its neighbour notices, on a real kube-apiserver
    Noisy {
        /// Write the figures into docs/bounds.md
        #[arg(long)]
        record: bool,
    },
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// End when the demo is over; without this all processes run until Ctrl-C, to be tried out
    #[arg(long)]
    once: bool,

    /// No colours
    #[arg(long)]
    plain: bool,

    /// On a real etcd and kube-apiserver, with processes that are killed; ends by itself
    #[arg(long)]
    real: bool,

    /// Release of Kubernetes [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
    #[arg(long, value_name = "1.N", requires = "real")]
    kubernetes: Option<Release>,
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
    options: OptionArgs,

    /// The command, with KUBECONFIG set to the administrator's
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What the program itself understands.
#[derive(Debug, Args)]
struct ProofArgs {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
struct OptionArgs {
    #[command(flatten)]
    dir: DirArgs,

    /// Feature gate CoordinatedLeaderElection: `on`, and Kubernetes' own controller elects
    #[arg(
        long,
        value_enum,
        default_value = "off",
        value_name = "on|off",
        hide_possible_values = true
    )]
    gate: OnOff,

    /// Serve LeaseCandidates: coordination.k8s.io/v1beta1, in older releases v1alpha2 or v1alpha1
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "true|false",
          hide_possible_values = true)]
    serve_v1beta1: bool,

    /// Release of Kubernetes [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
    #[arg(long, value_name = "1.N")]
    kubernetes: Option<Release>,

    /// Port of the API server on 127.0.0.1 [default: a free one]
    #[arg(long)]
    port: Option<u16>,

    /// Let etcd wait for the disk, as in production
    #[arg(long)]
    fsync: bool,

    /// A further flag for kube-apiserver, such as --apiserver-flag=--v=4; repeatable
    #[arg(
        long = "apiserver-flag",
        value_name = "FLAG",
        allow_hyphen_values = true
    )]
    apiserver_flags: Vec<String>,
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

#[derive(Debug, Args)]
struct ReleaseArgs {
    /// Release of Kubernetes to try them on [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
    #[arg(long, value_name = "1.N")]
    kubernetes: Option<Release>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnOff {
    On,
    Off,
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
        DevelopmentTask::Cluster(task) => cluster(task),
        DevelopmentTask::Demo(args) => demo::run(&args.kind()).map(|()| true),
        DevelopmentTask::Test {
            kubernetes: Some(release),
            ..
        } => test::run_on(release).map(|()| true),
        DevelopmentTask::Test {
            require_real,
            all_modes,
            long,
            beside,
            upgrade_from,
            timeout,
            ..
        } => test::run(&Wanted {
            require_real,
            all_modes,
            long,
            beside,
            upgrade_from,
            timeout,
        }),
        DevelopmentTask::Codegen { check: true } => codegen::check(),
        DevelopmentTask::Codegen { check: false } => codegen::write().map(|()| true),
        DevelopmentTask::Criteria => criteria::check().map(|()| true),
        DevelopmentTask::Model(args) => proofs::run(Proof::Model, &args.arguments).map(|()| true),
        DevelopmentTask::Sim(args) => proofs::run(Proof::Sim, &args.arguments).map(|()| true),
        DevelopmentTask::Faults(args) => proofs::run(Proof::Faults, &args.arguments).map(|()| true),
        DevelopmentTask::Lines { lower } => lines::run(lower).map(|()| true),
        DevelopmentTask::Mutants(args) => mutants::run(&args).map(|()| true),
        DevelopmentTask::Bench(BenchTask::Scale(args)) => {
            bench::scale(&args.arguments).map(|()| true)
        }
        DevelopmentTask::Bench(BenchTask::Leadership { record }) => {
            bench::leadership(record).map(|()| true)
        }
        DevelopmentTask::Bench(BenchTask::HandOvers { record }) => {
            bench::hand_overs(record).map(|()| true)
        }
        DevelopmentTask::Bench(BenchTask::Size { record }) => {
            adopters::size::tell(record).map(|()| true)
        }
        DevelopmentTask::Bench(BenchTask::Builds { last, record }) => {
            build_times::run(last, record).map(|()| true)
        }
        DevelopmentTask::Bench(BenchTask::Noisy { record }) => bench::noisy(record).map(|()| true),
        DevelopmentTask::Surface { since } => surface::compare(&since).map(|()| true),
        DevelopmentTask::Semver { since } => semver::check(since).map(|()| true),
        DevelopmentTask::Release(args) => artefact::make(args.kubernetes).map(|()| true),
        DevelopmentTask::Readme => codegen::record_transcript().map(|()| true),
        DevelopmentTask::Overlays {
            upgrade_from,
            record,
        } => overlay_table::run(&upgrade_from, record).map(|()| true),
        DevelopmentTask::Adopters { programs, record } => {
            adopters::run(&programs, record).map(|()| true)
        }
        DevelopmentTask::Manifests(args) => {
            manifests::try_on_a_cluster(&args.options()).map(|()| true)
        }
        DevelopmentTask::ExecDetached { command } => {
            cluster::exec_detached(&command).map(|()| true)
        }
    }
}

fn cluster(task: ClusterTask) -> Result<bool> {
    match task {
        ClusterTask::Up(args) => {
            let dir = args.dir.path()?;
            cluster::up(&dir, &args.options()).map(|()| true)
        }
        ClusterTask::Run(args) => run_in_cluster(&args.options.options(), &args.command),
        ClusterTask::Down(args) => cluster::down(&args.path()?).map(|()| true),
        ClusterTask::Status(args) => cluster::status(&args.path()?),
        ClusterTask::Binary(args) => {
            println!(
                "{}",
                Toolbox::new(args.kubernetes)?.path(args.binary)?.display()
            );
            Ok(true)
        }
    }
}

fn run_in_cluster(options: &Options, command: &[OsString]) -> Result<bool> {
    let (program, arguments) = command
        .split_first()
        .context("there is no command to run")?;
    let cluster = TestCluster::start(options)?;
    let status = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig())
        .status()
        .with_context(|| format!("failed to run {}", program.display()))?;
    cluster.stop()?;
    Ok(status.success())
}

/// The path of a program that is there, from everywhere: the test programs run in folders of their own.
fn parse_program(text: &str) -> Result<PathBuf> {
    let path = std::path::absolute(text)?;
    anyhow::ensure!(path.is_file(), "there is no such program");
    Ok(path)
}

/// A span of time such as `30m` or `90s`, more than nothing.
fn parse_timeout(text: &str) -> Result<Duration> {
    let span: jiff::SignedDuration = text.parse()?;
    let timeout = Duration::try_from(span)?;
    anyhow::ensure!(!timeout.is_zero(), "it must be longer than nothing");
    Ok(timeout)
}

// === impl DemoArgs ===

impl DemoArgs {
    fn kind(self) -> DemoKind {
        if self.real {
            return DemoKind::Real(Options {
                kubernetes: self.kubernetes,
                ..Options::default()
            });
        }
        DemoKind::Embedded {
            once: self.once,
            plain: self.plain,
        }
    }
}

// === impl DirArgs ===

impl DirArgs {
    fn path(&self) -> Result<PathBuf> {
        self.dir.clone().map_or_else(cluster::default_dir, Ok)
    }
}

// === impl OptionArgs ===

impl OptionArgs {
    fn options(self) -> Options {
        Options {
            gate: self.gate == OnOff::On,
            serve_candidates: self.serve_v1beta1,
            kubernetes: self.kubernetes,
            port: self.port,
            dir: self.dir.dir,
            fsync: self.fsync,
            apiserver_flags: self.apiserver_flags,
        }
    }
}

#[cfg(test)]
mod tests;
