//! `cargo xtask bench`: programs that measure on a real or an embedded API server.

use std::process::ExitCode;

use clap::Parser;
use elector_bench::scale::{self, BareClientArgs, ScaleArgs};
use elector_bench::upstream::{self, UpstreamArgs};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
enum Benchmark {
    Scale(ScaleArgs),
    Upstream(UpstreamArgs),
    #[command(hide = true)]
    BareClient(BareClientArgs),
}

fn main() -> ExitCode {
    let result = match Benchmark::parse() {
        Benchmark::Scale(args) => on_two_threads(scale::run(&args)),
        Benchmark::Upstream(args) => on_two_threads(upstream::run(&args)),
        Benchmark::BareClient(args) => scale::run_bare_client(&args).map(|never| match never {}),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn on_two_threads(measurement: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measurement)
}
