//! Tools of cargo that tasks need, built from their sources once and kept where cargo keeps what it installs.

use std::process::Command;

use anyhow::Result;

use crate::commands::{cargo, show_and_run};

/// The variable, and its value, for the choice of k8s-openapi's types: a program makes it, and a library by itself needs it
/// from outside. It agrees with the feature `latest`.
pub(crate) const TYPES_OF_KUBERNETES: (&str, &str) = ("K8S_OPENAPI_ENABLED_VERSION", "1.37");

/// A sub-command of cargo, in the version that the tasks know.
pub(crate) struct CargoTool {
    /// The package and the program: `cargo-` and the sub-command.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

// === impl CargoTool ===

impl CargoTool {
    /// Installs it unless this version is there.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn ensure(&self) -> Result<()> {
        self.ensure_with("")
    }

    /// The same for a tool whose program needs these features.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn ensure_with(&self, features: &str) -> Result<()> {
        let subcommand = self.name.trim_start_matches("cargo-");
        let said = Command::new(self.name)
            .args([subcommand, "--version"])
            .output();
        let is_there = said.is_ok_and(|said| {
            String::from_utf8_lossy(&said.stdout)
                .trim()
                .ends_with(self.version)
        });
        if is_there {
            return Ok(());
        }
        let package = format!("{}@{}", self.name, self.version);
        show_and_run(cargo().args([
            "install",
            "--locked",
            "--quiet",
            &package,
            "--features",
            features,
        ]))
    }
}
