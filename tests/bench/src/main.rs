//! `cargo xtask bench`: programs that measure on a real or an embedded API server.

use std::process::ExitCode;

use clap::Parser;
use elector_bench::scale::{self, ScaleArgs};
use elector_bench::upstream::{self, UpstreamArgs};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
enum Benchmark {
    Scale(ScaleArgs),
    Upstream(UpstreamArgs),
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            match Benchmark::parse() {
                Benchmark::Scale(args) => scale::run(&args).await,
                Benchmark::Upstream(args) => upstream::run(&args).await,
            }
        })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
