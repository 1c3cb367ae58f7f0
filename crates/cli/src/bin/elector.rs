//! The binary `elector`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A sixth of an elector's processor time goes into the allocator of glibc, and that of musl, for the static binary, is slower.
/// Huge pages are left out, since most of each would stay empty.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    elector_cli::elector()
}
