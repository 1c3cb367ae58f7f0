//! The binary `elector`.

use std::process::ExitCode;

fn main() -> ExitCode {
    elector_cli::elector()
}
