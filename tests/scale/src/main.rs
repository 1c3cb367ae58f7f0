//! `cargo xtask bench scale`.

use std::process::ExitCode;

use clap::Parser as _;
use elector_scale::{ScaleArgs, run};

fn main() -> ExitCode {
    let args = ScaleArgs::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let result = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(&args)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
