//! The simulation: each seed is one run of electors and candidates, in virtual time, through what goes wrong in it.
//!
//! Without arguments, as `cargo test` runs it: the regressions, 120 seeds, six of them again in another process, and
//! worlds beyond the bound, in which two must be found to lead at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use elector_sim::{
    ClockBound, PlannedMode, RunPlan, RunReport, RunStatistics, regressions, shrink, simulate,
};
use serde_json::json;

/// The parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SimArgs {
    from: u64,
    seeds: u64,
    minutes: Option<u64>,
    jobs: usize,
    replay: Option<RunPlan>,
    digest: Option<u64>,
    record: bool,
    /// Everything that `cargo test` is to check.
    all: bool,
}

/// The number of seeds that `cargo test` runs.
const SEEDS: u64 = 120;

/// Worlds beyond the bound that are looked into for one with two leaders.
const BEYOND: u64 = 20;

/// The number of plans with which a failing one may be cut down.
const CUTS: usize = 60;

/// Where the page goes.
const PAGE: &str = "../../docs/proofs/simulation.md";

const HELP: &str = "\
cargo xtask sim [--seeds N] [--from K] [--minutes M] [--jobs J] [--record]
cargo xtask sim --replay SEED|NAME

  --seeds N      how many seeds to run [default: 120]
  --from K       the first of them [default: 0]
  --minutes M    stop after so many minutes
  --jobs J       how many at a time [default: one for each processor]
  --replay SEED  print what is planned and all that happens in one of them, or in the plan that once failed
                 whose name contains this
  --record       write the table to docs/proofs/simulation.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let args = match SimArgs::parse(&arguments) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let passed = if let Some(seed) = args.digest {
        println!("{}", digest(seed));
        true
    } else if let Some(plan) = &args.replay {
        replay(plan)
    } else {
        run_all(&args)
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

/// Runs the seeds, and what else `cargo test` is to check. Returns whether nothing was wrong.
fn run_all(args: &SimArgs) -> bool {
    let start = Instant::now();
    let (statistics, failures) = run_seeds(args);
    println!("\n{}", statistics.table());
    let (mut passed, mut failed) = (
        statistics.seeds() - statistics.failed(),
        statistics.failed(),
    );
    if args.all {
        let mut wrong = vec![check_determinism(), check_bound()];
        wrong.extend(
            regressions()
                .into_iter()
                .map(|(name, plan)| regression(&name, &plan)),
        );
        for wrong in wrong {
            passed += u64::from(wrong.is_none());
            failed += u64::from(wrong.is_some());
            if let Some(text) = wrong {
                println!("{text}");
            }
        }
    }
    // A page that leaves out what failed would promise too much.
    if args.record {
        match record(args, &statistics, &failures) {
            Ok(()) => println!("wrote docs/proofs/simulation.md"),
            Err(error) => {
                println!("failed to write {PAGE}: {error}");
                failed += 1;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; finished in {seconds:.1} s");
    failed == 0
}

/// Runs the seeds, several at a time. Says of each seed that failed what it broke first.
fn run_seeds(args: &SimArgs) -> (RunStatistics, Vec<String>) {
    let limit = args
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let (start, next) = (Instant::now(), AtomicU64::new(0));
    let reports = Mutex::new(BTreeMap::new());
    let work = || {
        while limit.is_none_or(|limit| start.elapsed() < limit) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= args.seeds {
                return;
            }
            let seed = args.from + position;
            let plan = RunPlan::draw(seed, ClockBound::Within);
            let report = simulate(&plan, false);
            if let Some(violation) = report.violations.first() {
                println!("seed {seed} failed: {violation}");
                println!("  replay it with: cargo xtask sim --replay {seed}");
                let small = shrunk(&plan, violation.rule);
                println!("{}", indented(&small.to_string()));
                println!("  to be kept in regressions.json: {}", json!(small));
            }
            locked(&reports).insert(seed, (plan, report));
        }
    };
    thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(work);
        }
    });
    let (mut statistics, mut failures) = (RunStatistics::default(), Vec::new());
    for (seed, (plan, report)) in locked(&reports).iter() {
        statistics.add(plan, report);
        let violation = report.violations.first();
        failures.extend(violation.map(|violation| format!("{seed}: {violation}")));
    }
    (statistics, failures)
}

/// The smallest plan that breaks the same rule.
fn shrunk(plan: &RunPlan, rule: &str) -> RunPlan {
    shrink(plan, CUTS, |plan| {
        let report = simulate(plan, false);
        report.violations.iter().any(|it| it.rule == rule)
    })
}

/// Prints everything about one run.
fn replay(plan: &RunPlan) -> bool {
    let report = simulate(plan, true);
    println!("{plan}");
    for line in &report.trace {
        println!("{line}");
    }
    println!("\n{}", summary(&report));
    report.violations.is_empty()
}

fn summary(report: &RunReport) -> String {
    let (lines, hash) = report.digest;
    let seconds = report.lasted.as_secs_f64();
    format!(
        "{lines} lines of hash {hash:016x} in {seconds:.3} virtual seconds; {} violations",
        report.violations.len()
    )
}

fn digest(seed: u64) -> String {
    let report = simulate(&RunPlan::draw(seed, ClockBound::Within), false);
    let (lines, hash) = report.digest;
    format!("{seed} {lines} {hash:016x}")
}

/// One seed is one trace: here, here again, and in another process.
fn check_determinism() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    (0..6).find_map(|seed| {
        let (one, other) = (digest(seed), digest(seed));
        let output = Command::new(&program)
            .args(["--digest", &seed.to_string()])
            .output();
        let elsewhere = match output {
            Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            Err(error) => format!("no process: {error}"),
        };
        let same = one == other && one == elsewhere;
        (!same).then(|| format!("not the same trace each time: {one}, {other}, {elsewhere}"))
    })
}

/// A plan that once failed does not any more.
fn regression(name: &str, plan: &RunPlan) -> Option<String> {
    let report = simulate(plan, false);
    let violation = report.violations.first()?;
    let replay = format!("replay it with: cargo xtask sim --replay {name:?}");
    Some(format!(
        "regression: {name}: {violation}\n  {replay}\n{plan}"
    ))
}

/// The bound is tight: where clocks differ by more, two are found to lead at once, whether electors grant or candidates
/// acquire; and so are two electors.
fn check_bound() -> Option<String> {
    let plain = |plan: &RunPlan| {
        let mut candidates = plan.setup.candidates.iter();
        candidates.all(|it| it.mode == PlannedMode::Plain)
    };
    let (mut elected, mut acquired, mut electors) = (false, false, false);
    for seed in 0..BEYOND {
        let plan = RunPlan::draw(seed, ClockBound::Beyond);
        let report = simulate(&plan, false);
        for overlap in report.violations.iter().filter(|it| it.rule == "S1") {
            match overlap.text.contains("lead the electors") {
                true => electors = true,
                false if plain(&plan) => acquired = true,
                false => elected = true,
            }
        }
    }
    let found = [
        (elected, "elected leaders"),
        (acquired, "plain leaders"),
        (electors, "electors that lead the others"),
    ];
    let missed = found.into_iter().find(|(found, _)| !found);
    missed.map(|(_, of)| format!("{BEYOND} worlds beyond the bound, and never two {of}"))
}

fn record(args: &SimArgs, statistics: &RunStatistics, failures: &[String]) -> std::io::Result<()> {
    let mut page = format!(
        "# Simulation\n\n\
         Written by `cargo xtask sim --seeds {} --from {} --record`; not to be edited.\n\n\
         Each seed is one run of the production elector and candidate code over the API server in memory, in virtual\n\
         time. The faults are drawn from the seed, and so are the participants: 1 to 3 electors, 2 to 4 candidates\n\
         for each of 1 or 2 leases, elected, auto, plain or mixed (R18). In about half of the runs the electors elect one\n\
         of themselves, and in some they take the lock of the built-in controller. Clocks are up to ten\n\
         minutes off, and their rates differ by up to a tenth, or by just what W and H allow. After the recovery of each run the electors are taken\n\
         away, and each leader that may be followed without them is killed. Times are the least, the middle, the 99th of 100 and the most.\n\n{}",
        args.seeds,
        args.from,
        statistics.table()
    );
    if !failures.is_empty() {
        page.push_str("\nSeeds that failed, with what they broke first (`cargo xtask sim --replay SEED`):\n\n");
    }
    for failure in failures {
        page.push_str(&format!("* {failure}\n"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, page)
}

// === impl SimArgs ===

impl SimArgs {
    /// `None` where help is asked for.
    fn parse(arguments: &[String]) -> Result<Option<Self>, String> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut args = Self {
            from: 0,
            seeds: SEEDS,
            minutes: None,
            jobs: processors,
            replay: None,
            digest: None,
            record: false,
            all: arguments.is_empty(),
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} needs a value"));
            let mut number = || {
                let value = value()?;
                let parsed = value.parse::<u64>();
                parsed.map_err(|_| format!("{flag} {value}: not a number"))
            };
            match flag.as_str() {
                "--from" => args.from = number()?,
                "--seeds" => args.seeds = number()?,
                "--minutes" => args.minutes = Some(number()?),
                "--jobs" => args.jobs = usize::try_from(number()?).unwrap_or(1).max(1),
                "--replay" => args.replay = Some(plan_of(value()?)?),
                "--digest" => args.digest = Some(number()?),
                "--record" => args.record = true,
                "--help" | "-h" => return Ok(None),
                // Flags that cargo passes to every test program.
                "--nocapture" | "--quiet" | "-q" | "--include-ignored" | "--ignored" => {}
                other => return Err(format!("{other} is unknown")),
            }
        }
        Ok(Some(args))
    }
}

/// The plan of a seed, or the one that once failed of this name.
fn plan_of(text: &str) -> Result<RunPlan, String> {
    if let Ok(seed) = text.parse() {
        return Ok(RunPlan::draw(seed, ClockBound::Within));
    }
    let named = regressions()
        .into_iter()
        .find(|(name, _)| name.contains(text));
    let plan = named.map(|(_, plan)| plan);
    plan.ok_or_else(|| format!("--replay {text}: neither a seed nor in the name of a plan"))
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}\n"))
        .collect::<String>()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked had not changed it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
