//! `cargo xtask bench`: the programs that measure, built as what they measure is.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;
use clap::Subcommand;

use crate::adopters::size;
use crate::build_times;
use crate::commands::{self, cargo, show_and_run};
use crate::instructions;
use crate::proofs::PassedArgs;
use crate::{measured, paths};

/// A measurement.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchTask {
    /// Time, memory, processor time and requests with thousands of leases; `--help` tells its flags
    #[command(disable_help_flag = true)]
    Scale(PassedArgs),

    /// Cold start, hand-over and crash, also of client-go and of Kubernetes' own controller; `--help` tells its flags
    #[command(disable_help_flag = true)]
    Upstream(PassedArgs),

    /// The cost for a program of asking if it leads, and the time until its controllers reconcile once it does
    Leadership {
        /// Write the figures into docs/leadership.md
        #[arg(long)]
        record: bool,
    },

    /// The times without a leader of two hundred leases, by a release build on a real kube-apiserver
    HandOvers {
        /// Write the figures into docs/leadership.md
        #[arg(long)]
        record: bool,
    },

    /// Groups of leases whose processes are killed for half an hour, updated and ended, on a real kube-apiserver
    Groups {
        /// Write the figures into docs/groups.md, and the picture beside it
        #[arg(long)]
        record: bool,
    },

    /// The processor instructions of what is done for each event, held against a budget
    Instructions {
        /// Write what stands into the budget
        #[arg(long)]
        lower: bool,
    },

    /// The crates, bytes and build time that elector-candidate adds to a program
    Size {
        /// Write the table into adopters/README.md
        #[arg(long)]
        record: bool,
    },

    /// The waits of a newcomer, from a fresh clone with an empty cargo cache
    Builds {
        /// Write the table into CONTRIBUTING.md
        #[arg(long)]
        record: bool,
    },

    /// Memory and descriptors of an elector and of a leader, while another lease changes hands for hours, on a real
    /// kube-apiserver
    Soak {
        /// For so many minutes
        #[arg(long, default_value_t = 180)]
        minutes: u64,

        /// Write the figures into docs/scale.md
        #[arg(long)]
        record: bool,
    },

    /// The cost of a namespace that is filled without end, to itself and to its neighbour, on a real kube-apiserver
    Noisy {
        /// Write the figures into docs/bounds.md
        #[arg(long)]
        record: bool,
    },
}

/// Runs it.
///
/// # Errors
/// When it cannot be built, or fails.
pub(crate) fn run(task: BenchTask) -> Result<()> {
    let programs = "run --quiet --release --package elector-bench --";
    let leadership =
        "bench --package elector-candidate --features connect,kube5 --bench leadership --";
    let hand_overs = "test --release --package elector-tests --all-features --test real -- --include-ignored --long \
                      hand_overs_of_two_hundred_leases";
    let groups = "test --release --package elector-tests --all-features --test real -- --include-ignored --long \
                  --test-threads=1 group_replaced";
    let noisy = "test --package elector-tests --test real -- --include-ignored --long --test-threads=1 \
                 a_noisy_namespace_disturbs_no_other";
    let soak = "test --package elector-tests --all-features --test real -- --include-ignored --long \
                memory_and_descriptors_do_not_grow";
    match task {
        BenchTask::Scale(args) => measure(&[programs, "scale"], &args.arguments, None),
        BenchTask::Upstream(args) => measure(&[programs, "upstream"], &args.arguments, None),
        BenchTask::Leadership { record } => {
            let table = commands::read(&mut measurement(&[leadership], &[], None)?)?.stdout;
            print!("{table}");
            if record {
                measured::record("docs/leadership.md", "leadership", &table)?;
            }
            Ok(())
        }
        BenchTask::HandOvers { record } => {
            measure(&[hand_overs], &[], record.then_some("docs/leadership.md"))
        }
        BenchTask::Groups { record } => measure(&[groups], &[], record.then_some("docs/groups.md")),
        BenchTask::Noisy { record } => measure(&[noisy], &[], record.then_some("docs/bounds.md")),
        BenchTask::Soak { minutes, record } => {
            let mut soak = measurement(&[soak], &[], record.then_some("docs/scale.md"))?;
            show_and_run(soak.env("ELECTOR_SOAK", minutes.to_string()))
        }
        BenchTask::Instructions { lower } => instructions::run(lower),
        BenchTask::Size { record } => size::tell(record),
        BenchTask::Builds { record } => build_times::run(record),
    }
}

fn measure(words: &[&str], arguments: &[OsString], record: Option<&str>) -> Result<()> {
    show_and_run(&mut measurement(words, arguments, record)?)
}

/// A cargo with these words and arguments, and with the document in which the program records, if it does.
fn measurement(words: &[&str], arguments: &[OsString], record: Option<&str>) -> Result<Command> {
    let mut command = cargo();
    command.args(words.iter().flat_map(|words| words.split_whitespace()));
    command.args(arguments);
    if words.iter().any(|words| words.contains("test --release")) {
        let programs = ["build", "--release", "--package", "elector-cli", "--bins"];
        show_and_run(cargo().args(programs))?;
        // As shipped, but for the libraries that it is linked with.
        let elector = paths::workspace().join("target/release/elector");
        command.env("ELECTOR_BIN", elector);
    }
    if let Some(document) = record {
        // For a picture that a scenario draws.
        command.env("ELECTOR_RECORD", "1");
        command
            .arg("--record")
            .arg(paths::workspace().join(document));
    }
    Ok(command)
}
