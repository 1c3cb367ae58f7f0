//! How programs of ours are built: to be tested, or as they are shipped.

use std::env::consts::ARCH;
use std::path::PathBuf;

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildProfile {
    /// Quickly, for this machine.
    Dev,
    /// As it is shipped: static, for the architecture of this machine.
    Dist,
}

// === impl BuildProfile ===

impl BuildProfile {
    /// What cargo is told.
    pub(crate) fn arguments(self) -> Vec<String> {
        match self {
            Self::Dev => Vec::new(),
            Self::Dist => {
                let words = ["--profile", DIST, "--target"].map(str::to_owned);
                words.into_iter().chain([target()]).collect()
            }
        }
    }

    /// Where cargo leaves what it builds, in its target folder.
    pub(crate) fn folder(self) -> PathBuf {
        match self {
            Self::Dev => PathBuf::from("debug"),
            Self::Dist => PathBuf::from(target()).join(DIST),
        }
    }
}

/// The profile of the workspace for what is shipped.
const DIST: &str = "dist";

/// What it is built for.
pub(crate) fn target() -> String {
    format!("{ARCH}-unknown-linux-musl")
}
