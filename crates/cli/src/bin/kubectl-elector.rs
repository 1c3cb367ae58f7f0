//! The binary `kubectl-elector`, a plugin of kubectl.

use std::process::ExitCode;

fn main() -> ExitCode {
    elector_cli::kubectl_elector()
}
