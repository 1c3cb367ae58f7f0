//! The matrix of faults on a real kube-apiserver: `cargo xtask faults`, or the slice of it that `cargo xtask test` runs
//! with `--ignored`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use elector_cluster::binaries::{self, Toolbox};
use elector_faults::{
    Binaries, MatrixArgs, RecordedRuns, comparison_table, record, run_matrix, subject_table,
    summary_table, table,
};
use elector_tests::rig;
use parking_lot::Mutex;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(101),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// False when something was seen that must not be.
fn run() -> Result<bool> {
    let mut args = MatrixArgs::parse();
    // `cargo xtask faults` asks for what it wants; `cargo test` gets the slice, where there is a cluster to be had.
    if !args.by_hand {
        args.slice = true;
    }
    let mut cases = args.cases();
    if !args.by_hand && !args.ignored && !args.list {
        println!(
            "left out: faults on a real kube-apiserver, which `cargo xtask test` (--ignored) and `cargo xtask faults` \
             run"
        );
        println!("\n{}", summary((0, 0), cases.len(), Duration::ZERO));
        return Ok(true);
    }
    if args.list {
        for case in &cases {
            println!("{}: test", case.name());
        }
        return Ok(true);
    }
    let interop = env::var_os("ELECTOR_INTEROP").is_none_or(|value| value != "0");
    let programs = Binaries {
        elector: rig::TestedPrograms::elector("dev")?,
        guarded: PathBuf::from(env!("CARGO_BIN_EXE_guarded")),
        client_go: interop
            .then(|| {
                Toolbox::new(None).and_then(|tools| binaries::client_go_candidate(tools.release()))
            })
            .transpose()?,
        rivals: (interop && cases.iter().any(|case| case.subject.is_rival()))
            .then(binaries::rivals)
            .transpose()?,
    };
    let mut left_out = cases.len();
    if interop {
        left_out = 0;
    } else {
        cases.retain(|case| !case.subject.is_foreign());
        left_out -= cases.len();
        println!("left out: the clients of other people, because ELECTOR_INTEROP is 0");
    }
    let recorded = Arc::new(Mutex::new(RecordedRuns::open(args.record)?));
    if args.record {
        cases.retain(|case| !recorded.lock().has(case));
    }
    println!("\nrunning {} tests", cases.len());
    let folder = elector_cluster::paths::workspace().join("target/faults");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let results = runtime.block_on(run_matrix(
        &cases,
        programs,
        &folder,
        args.jobs,
        args.seed,
        (&recorded, args.record),
    ))?;
    println!("\n{}", summary_table(&results.outcomes));
    println!("{}", table(&results.outcomes));
    println!("{}", subject_table(&results.outcomes));
    println!("{}", comparison_table(&results.outcomes));
    println!("raw data: {}", folder.join("results.jsonl").display());
    let (passed, failed) = results.counts();
    if args.record {
        record(&recorded.lock())?;
    }
    println!("\n{}", summary((passed, failed), left_out, results.took));
    Ok(failed == 0)
}

/// The result, as libtest says it.
fn summary((passed, failed): (usize, usize), left_out: usize, took: Duration) -> String {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    format!(
        "test result: {word}. {passed} passed; {failed} failed; {left_out} ignored; finished in {:.0} s",
        took.as_secs_f64()
    )
}
