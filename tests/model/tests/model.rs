//! The model check: one test for each run, one at a time on each processor, and a table of all at the end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, io, thread};

use clap::Parser;
use elector_model::{Run, SearchReport, page, runs, table};

/// Search every state of small worlds that run the production step functions, and print what came of each.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask model")]
struct ModelArgs {
    /// Runs to search, by a part of their ids; a run of the full check by its whole id
    names: Vec<String>,

    /// Leave out the runs with this part of an id
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,

    /// Search the bigger worlds too, which takes hours on two processors, and gigabytes
    #[arg(long)]
    full: bool,

    /// Print the ids, and search nothing
    #[arg(long)]
    list: bool,

    /// Write the table to docs/proofs/model.md; where not all runs are searched, the rows of these alone
    #[arg(long)]
    record: bool,

    /// Print the shortest way to what was found also where it was expected
    #[arg(long)]
    trace: bool,

    /// Take names for whole ids
    #[arg(long)]
    exact: bool,

    /// How many runs are searched at a time; all processors by default
    #[arg(long, value_name = "N")]
    test_threads: Option<usize>,

    /// Taken for the sake of `cargo test`: nothing is captured here
    #[arg(long, visible_alias = "show-output", hide = true)]
    nocapture: bool,

    /// Taken for the sake of `cargo test`
    #[arg(short, long, hide = true)]
    quiet: bool,
}

fn main() -> ExitCode {
    let args = ModelArgs::parse();
    let runs = chosen(&args);
    if args.list {
        for run in &runs {
            println!("{}: test", run.id());
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", runs.len());
    let reports = check(&runs, args.test_threads);
    for report in &reports {
        if let Some(failure) = &report.failure {
            println!("\n---- {} ----\n{failure}", report.run.id());
        } else if args.trace && !report.trace.is_empty() {
            println!("\n---- {} ----", report.run.id());
        } else {
            continue;
        }
        println!("{}", report.trace.join("\n"));
    }
    let failed = reports.iter().filter(|report| report.failure.is_some());
    let failed = failed.count();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("\n{}", table(&reports));
    println!(
        "test result: {word}. {} passed; {failed} failed",
        reports.len() - failed
    );
    if args.record
        && let Err(error) = record(&reports, &args)
    {
        eprintln!("error: failed to write the table: {error}");
        return ExitCode::FAILURE;
    }
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(101),
    }
}

/// The runs that the arguments ask for.
fn chosen(args: &ModelArgs) -> Vec<Run> {
    let asked_for = |run: &Run| {
        let usual = args.full || !run.is_full_only();
        let has_part = |part: &String| run.id().contains(part.as_str());
        let named = |name: &String| run.id() == name || (usual && !args.exact && has_part(name));
        !args.skip.iter().any(has_part)
            && ((usual && args.names.is_empty()) || args.names.iter().any(named))
    };
    let grown = |run: Run| if args.full { run.in_full() } else { run };
    runs().into_iter().filter(asked_for).map(grown).collect()
}

/// Searches every world, the bigger ones first. The reports stand in the order of the runs.
fn check(runs: &[Run], at_a_time: Option<usize>) -> Vec<SearchReport> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|index| !runs[*index].is_bigger_in_full());
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            let run = &runs[*index];
            let report = run.check();
            let word = if report.failure.is_none() {
                "ok"
            } else {
                "FAILED"
            };
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            println!(
                "test {} ... {word} ({:.1} s)",
                run.id(),
                report.took.as_secs_f64()
            );
            reports.push((*index, report));
        }
    };
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..at_a_time.unwrap_or_else(processors) {
            scope.spawn(work);
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by_key(|(index, _)| *index);
    reports.into_iter().map(|(_, report)| report).collect()
}

/// Writes the page of the proofs.
fn record(reports: &[SearchReport], args: &ModelArgs) -> io::Result<()> {
    let is_whole = args.names.is_empty() && args.skip.is_empty();
    let command = match args.full || !is_whole {
        true => "cargo xtask model --full --record",
        false => "cargo xtask model --record",
    };
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| "tests/model".into());
    let path = PathBuf::from(package).join("../../docs/proofs/model.md");
    if reports.iter().any(|report| report.failure.is_some()) {
        return Err(io::Error::other(
            "a row of a world that failed would promise too much",
        ));
    }
    let before = match is_whole {
        true => String::new(),
        false => fs::read_to_string(&path)?,
    };
    fs::write(path, page(&before, reports, &runs(), command))
}
