//! `cargo xtask bench`: the programs that measure, built as what they measure is.

use std::ffi::OsString;

use anyhow::Result;

use crate::commands::{cargo, show_and_run};
use crate::paths;

/// The scenario of a noisy namespace, on both kinds of LeaseCandidates.
const NOISY: &str = "a_noisy_namespace_disturbs_no_other";
/// Where its figures are recorded, from the root of the workspace.
const BOUNDS: &str = "docs/bounds.md";

/// The scenario of the times without a leader.
const HAND_OVERS: &str = "hand_overs_of_two_hundred_leases";
/// Where they and the figures of a program's own leadership are recorded.
const LEADERSHIP: &str = "docs/leadership.md";

/// Measures what it costs a program to ask whether it leads, and how soon its controllers reconcile once it does.
pub(crate) fn leadership(record: bool) -> Result<()> {
    let mut command = cargo();
    command.args(["bench", "--package", "elector-candidate"]);
    command.args([
        "--features",
        "connect,controller",
        "--bench",
        "leadership",
        "--",
    ]);
    if record {
        command
            .arg("--record")
            .arg(paths::workspace().join(LEADERSHIP));
    }
    show_and_run(&mut command)
}

/// Measures how long leases are without a leader, with programs as they are shipped.
pub(crate) fn hand_overs(record: bool) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--release", "--package", "elector-cli", "--bins"]);
    show_and_run(&mut build)?;
    let mut command = cargo();
    command.args(["test", "--release", "--package", "elector-tests"]);
    command.args(["--all-features", "--test", "real", "--"]);
    command.args(["--include-ignored", "--long", HAND_OVERS]);
    command.env(
        "ELECTOR_BIN",
        paths::workspace().join("target/release/elector"),
    );
    if record {
        command
            .arg("--record")
            .arg(paths::workspace().join(LEADERSHIP));
    }
    show_and_run(&mut command)
}

/// Runs the measurement of a noisy namespace, one kind of cluster after the other.
pub(crate) fn noisy(record: bool) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--package", "elector-tests", "--test", "real", "--"]);
    command.args(["--include-ignored", "--long", "--test-threads=1", NOISY]);
    if record {
        command.arg("--record").arg(paths::workspace().join(BOUNDS));
    }
    show_and_run(&mut command)
}

/// Runs the measurement of many leases, with these arguments.
pub(crate) fn scale(arguments: &[OsString]) -> Result<()> {
    show_and_run(
        cargo()
            .args([
                "run",
                "--quiet",
                "--release",
                "--package",
                "elector-scale",
                "--",
            ])
            .args(arguments),
    )
}
