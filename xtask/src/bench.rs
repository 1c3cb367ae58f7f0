//! `cargo xtask bench`: the programs that measure, built as what they measure is.

use std::ffi::OsString;

use anyhow::Result;

use crate::commands::{cargo, show_and_run};

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
