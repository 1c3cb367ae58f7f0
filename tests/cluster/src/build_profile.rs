//! The builds of our programs: to be tested, or as they are shipped.

use std::env::consts::ARCH;
use std::path::PathBuf;

/// The build of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildProfile {
    /// Quickly, for this machine.
    Dev,
    /// As it is shipped: static, for the architecture of this machine.
    Dist,
}

// === impl BuildProfile ===

impl BuildProfile {
    /// The arguments for cargo.
    pub fn arguments(self) -> Vec<String> {
        match self {
            Self::Dev => Vec::new(),
            Self::Dist => {
                let words = ["--profile", DIST, "--target"].map(str::to_owned);
                words.into_iter().chain([target()]).collect()
            }
        }
    }

    /// Where cargo leaves what it builds, in its target folder.
    pub fn folder(self) -> PathBuf {
        match self {
            Self::Dev => PathBuf::from("debug"),
            Self::Dist => PathBuf::from(target()).join(DIST),
        }
    }
}

/// The profile of the workspace for what is shipped.
const DIST: &str = "dist";

/// The target that it is built for.
pub fn target() -> String {
    format!("{ARCH}-unknown-linux-musl")
}
