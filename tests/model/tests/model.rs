//! The model check: one test for each run, as many at a time as there are processors, and a table of all at the end.
//!
//! Takes names to run and `--list` as any test program does, and `--at-large` for bigger worlds: electors that all lag,
//! and every mix of clocks where a run has several. Those take minutes and gigabytes.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use elector_model::{Report, Run, runs, table};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let runs = chosen(&arguments);
    if given("--list") {
        for run in &runs {
            println!("{}: test", run.id());
        }
        return ExitCode::SUCCESS;
    }
    let large = |run: Run| {
        if given("--at-large") {
            run.at_large()
        } else {
            run
        }
    };
    let runs: Vec<Run> = runs.into_iter().map(large).collect();
    println!("\nrunning {} tests", runs.len());
    let reports = check(&runs);
    for report in &reports {
        if let Some(failure) = &report.failure {
            println!("\n---- {} ----\n{failure}", report.run.id());
            println!("{}", report.trace.join("\n"));
        }
    }
    let failed = reports.iter().filter(|report| report.failure.is_some());
    let failed = failed.count();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("\n{}", table(&reports));
    println!(
        "test result: {word}. {} passed; {failed} failed",
        reports.len() - failed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

/// The runs that the arguments name by a part of their ids, or all.
fn chosen(arguments: &[String]) -> Vec<Run> {
    let exact = arguments.iter().any(|argument| argument == "--exact");
    let names: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let named = |run: &Run| {
        let matches = |name: &&String| match exact {
            true => run.id() == name.as_str(),
            false => run.id().contains(name.as_str()),
        };
        names.is_empty() || names.iter().any(matches)
    };
    runs().into_iter().filter(named).collect()
}

/// Searches every world. The reports stand in the order of the runs.
fn check(runs: &[Run]) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(index) else { return };
            let report = run.clone().check();
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
            reports.push((index, report));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by_key(|(index, _)| *index);
    reports.into_iter().map(|(_, report)| report).collect()
}
