//! Scenarios on a real kube-apiserver with etcd: real processes, candidates ours and client-go's, each scenario with
//! the feature gate on (and the built-in controller replaced) and with it off.
//!
//! Run by `cargo xtask test`, or alone with `ELECTOR_REAL=1 cargo test --package elector-tests --test real`, followed
//! by a word of the scenarios' names if not all are wanted.

mod elections;

use std::env;
use std::process::ExitCode;

use elector_tests::rig::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::default();
    elections::add(&mut suite);
    if env::var_os("ELECTOR_REAL").is_none_or(|value| value != "1") {
        println!(
            "left out: the scenarios on a real kube-apiserver, which `cargo xtask test` runs (ELECTOR_REAL=1)"
        );
        return ExitCode::SUCCESS;
    }
    match suite.run(env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
