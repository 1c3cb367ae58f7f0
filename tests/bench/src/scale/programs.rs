//! The programs under measurement.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use elector_tests::rig::TestedPrograms;

/// The programs under measurement.
#[derive(Clone, Debug)]
pub struct BenchPrograms {
    /// The binary `elector`.
    pub elector: PathBuf,
    /// The binary of this package, which is the bare client besides.
    pub client: PathBuf,
}

// === impl BenchPrograms ===

impl BenchPrograms {
    /// The elector of that cargo profile, and this program.
    ///
    /// # Errors
    /// When the elector cannot be built.
    pub fn build(profile: &str) -> Result<Self> {
        Ok(Self {
            elector: TestedPrograms::elector(profile)?,
            client: env::current_exe().context("failed to find this program")?,
        })
    }
}
