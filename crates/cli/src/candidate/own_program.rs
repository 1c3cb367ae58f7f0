//! The program that runs, for those parts of it that are processes of their own.

use std::path::PathBuf;

/// The very file that runs, even where another has been installed in its place.
#[cfg(target_os = "linux")]
pub(super) fn own_program() -> PathBuf {
    "/proc/self/exe".into()
}

/// The file that was run.
#[cfg(not(target_os = "linux"))]
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "elector".into())
}
