//! The simulation: each seed is one run of electors and candidates, in virtual time, through what goes wrong in it.
//!
//! Without arguments, as `cargo test` runs it: the regressions, 200 seeds, six of them again in another process, 16 groups of
//! leases, and worlds beyond the bound, in which two must be found to lead at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use elector_sim::{ClockBound, PlannedMode, RunPlan, RunStatistics, simulate};
use parking_lot::Mutex;
use serde_json::json;

/// Run the production elector and candidates through what goes wrong in virtual time, one run for each seed
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask sim")]
struct SimArgs {
    /// The number of seeds to run
    #[arg(long, value_name = "N", default_value_t = 200)]
    seeds: u64,

    /// The first of them
    #[arg(long, value_name = "K", default_value_t = 0)]
    from: u64,

    /// Play groups instead: three members that share eight leases
    #[arg(long, conflicts_with = "record")]
    groups: bool,

    /// Stop after this number of minutes
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,

    /// The number at a time; one for each processor by default
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,

    /// Print what is planned and all that happens in one of them, in that of a group (`group-SEED`), or in the plan that
    /// once failed whose name contains this
    #[arg(long, value_name = "SEED|NAME", value_parser = plan_of)]
    replay: Option<RunPlan>,

    /// Print the hash of the trace of one of them
    #[arg(long, value_name = "SEED", hide = true)]
    digest: Option<u64>,

    /// Write the table to docs/proofs/simulation.md
    #[arg(long)]
    record: bool,

    /// Everything that `cargo test` is to check
    #[arg(skip = std::env::args_os().len() == 1)]
    all: bool,

    /// Taken for the sake of `cargo test`: nothing is captured here
    #[arg(long, hide = true)]
    nocapture: bool,

    /// Taken for the sake of `cargo test`
    #[arg(short, long, hide = true)]
    quiet: bool,
}

/// Groups that are played for `cargo test`.
const GROUPS: u64 = 16;

/// Worlds beyond the bound that are looked into for one with two leaders.
const BEYOND: u64 = 20;

/// The prefix of the seed of a group.
const GROUP_SEED: &str = "group-";

/// Where the page goes.
const PAGE: &str = "../../docs/proofs/simulation.md";

fn main() -> ExitCode {
    let args = SimArgs::parse();
    let passed = match (args.digest, &args.replay) {
        (Some(seed), _) => {
            println!("{}", digest(seed));
            true
        }
        (None, Some(plan)) => replay(plan),
        (None, None) => run_all(&args),
    };
    match passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(101),
    }
}

/// Runs the seeds, and what else `cargo test` is to check. Returns whether nothing was wrong.
fn run_all(args: &SimArgs) -> bool {
    let start = Instant::now();
    let (statistics, failures) = run_seeds(args, args.seeds, args.groups);
    println!("\n{}", statistics.table());
    let (mut passed, mut failed) = (
        statistics.seeds() - statistics.failed(),
        statistics.failed(),
    );
    let mut doubts = statistics.excesses();
    // Fewer seeds tell nothing of what is rare.
    if args.seeds >= 100 && !args.groups && args.minutes.is_none() {
        doubts.extend(statistics.rarities());
    }
    if args.all {
        let (groups, _) = run_seeds(args, GROUPS, true);
        doubts.extend(groups.excesses());
        passed += groups.seeds() - groups.failed();
        failed += groups.failed();
        let mut wrong = vec![check_determinism(), check_bound()];
        let plans = regressions().into_iter();
        wrong.extend(plans.map(|(name, plan)| regression(&name, &plan)));
        for wrong in wrong {
            passed += u64::from(wrong.is_none());
            failed += u64::from(wrong.is_some());
            print!("{}", wrong.unwrap_or_default());
        }
    }
    for doubt in doubts {
        println!("{doubt}");
        failed += 1;
    }
    // A page that leaves out what failed would promise too much.
    if args.record
        && let Err(error) = record(args, &statistics, &failures)
    {
        println!("failed to write {PAGE}: {error}");
        failed += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; finished in {seconds:.1} s");
    failed == 0
}

/// Runs the seeds, several at a time. Says of each seed that failed what it broke first.
fn run_seeds(args: &SimArgs, count: u64, groups: bool) -> (RunStatistics, Vec<String>) {
    let limit = args.minutes.map(|it| Duration::from_secs(60 * it));
    let (start, next) = (Instant::now(), AtomicU64::new(0));
    let reports = Mutex::new(BTreeMap::new());
    // A thread that panicked had not changed it.
    let locked = || reports.lock();
    let work = || {
        while limit.is_none_or(|limit| start.elapsed() < limit) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= count {
                return;
            }
            let seed = args.from + position;
            let (plan, kind) = match groups {
                true => (RunPlan::draw_group(seed), GROUP_SEED),
                false => (RunPlan::draw(seed, ClockBound::Within), ""),
            };
            let report = simulate(&plan, false);
            if let Some(violation) = report.violations.first() {
                println!("seed {kind}{seed} failed: {violation}");
                println!("  replay it with: cargo xtask sim --replay {kind}{seed}");
                let small = shrunk(&plan, violation.rule);
                println!("{small}");
                println!("  to be kept in regressions.json: {}", json!(small));
            }
            locked().insert(seed, report);
        }
    };
    thread::scope(|scope| {
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..args.jobs.unwrap_or_else(processors).max(1) {
            scope.spawn(work);
        }
    });
    let (mut statistics, mut failures) = (RunStatistics::default(), Vec::new());
    for (seed, report) in locked().iter() {
        statistics.add(report);
        let violation = report.violations.first();
        failures.extend(violation.map(|it| format!("\n* seed {seed} failed: {it}\n")));
    }
    (statistics, failures)
}

/// The plan without the faults that are not needed to break the same rule.
fn shrunk(plan: &RunPlan, rule: &str) -> RunPlan {
    let mut best = plan.clone();
    for index in (0..plan.faults.len()).rev() {
        let mut smaller = best.clone();
        smaller.faults.remove(index);
        let report = simulate(&smaller, false);
        if report.violations.iter().any(|it| it.rule == rule) {
            best = smaller;
        }
    }
    best
}

/// Prints everything about one run.
fn replay(plan: &RunPlan) -> bool {
    let report = simulate(plan, true);
    println!("{plan}\n{}\n", report.trace.join("\n"));
    let (lines, hash) = report.digest;
    let (lasted, found) = (report.lasted, report.violations.len());
    println!("{lines} lines of hash {hash:016x} in {lasted:?}; {found} violations");
    found == 0
}

fn digest(seed: u64) -> String {
    let report = simulate(&RunPlan::draw(seed, ClockBound::Within), false);
    let (lines, hash) = report.digest;
    format!("{seed} {lines} {hash:016x}")
}

/// One seed is one trace: here, here again, and in another process.
fn check_determinism() -> Option<String> {
    let program = std::env::current_exe().expect("a program that runs is a file");
    (0..6).find_map(|seed| {
        let (one, other) = (digest(seed), digest(seed));
        let mut process = Command::new(&program);
        let output = process.args(["--digest", &seed.to_string()]).output();
        let output = output.expect("this program runs once more");
        let elsewhere = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let same = one == other && one == elsewhere;
        (!same).then(|| format!("not the same trace each time: {one}, {other}, {elsewhere}\n"))
    })
}

/// Plans that once failed, as they were cut down, each under the name of what was wrong. They are kept as data, since a
/// change of the drawing gives every seed another meaning.
fn regressions() -> Vec<(String, RunPlan)> {
    let plans = include_str!("../regressions.json");
    serde_json::from_str(plans).expect("each is a name and a plan")
}

/// A plan that once failed does not any more.
fn regression(name: &str, plan: &RunPlan) -> Option<String> {
    let report = simulate(plan, false);
    let violation = report.violations.first()?;
    let replay = format!("replay it with: cargo xtask sim --replay {name:?}");
    Some(format!(
        "regression: {name}: {violation}\n  {replay}\n{plan}\n"
    ))
}

/// The bound is tight: where clocks differ by more, two are found to lead at once, whether electors grant or candidates
/// acquire; and so are two electors.
fn check_bound() -> Option<String> {
    let plain = |plan: &RunPlan| {
        let mut candidates = plan.setup.candidates.iter();
        candidates.all(|it| it.mode == PlannedMode::Plain)
    };
    let (mut elected, mut acquired, mut electors, mut work) = (false, false, false, false);
    for seed in 0..BEYOND {
        let plan = RunPlan::draw(seed, ClockBound::Beyond);
        let report = simulate(&plan, false);
        for overlap in report.violations.iter().filter(|it| it.rule == "S1") {
            let found = match &overlap.text {
                text if text.contains("lead the electors") => &mut electors,
                text if text.contains("writes beside") => &mut work,
                _ if plain(&plan) => &mut acquired,
                _ => &mut elected,
            };
            *found = true;
        }
    }
    let found = [
        (elected, "elected leaders"),
        (acquired, "plain leaders"),
        (electors, "electors that lead the others"),
        (work, "leaders that work"),
    ];
    let missed = found.into_iter().find(|(found, _)| !found);
    missed.map(|(_, of)| format!("{BEYOND} worlds beyond the bound, and never two {of}\n"))
}

fn record(args: &SimArgs, statistics: &RunStatistics, failures: &[String]) -> std::io::Result<()> {
    let page = format!(
        "# Simulation\n\n\
         Written by `cargo xtask sim --seeds {} --from {} --record`; not to be edited.\n\n\
         Each seed is one run of the production elector and candidate code over the API server in memory, in virtual\n\
         time. The faults are drawn from the seed, and so are the participants: 1 to 3 electors, 2 to 4 candidates\n\
         for each of 1 or 2 leases, elected, auto, plain or mixed (R18). In about half of the runs the electors elect one\n\
         of themselves, and in some they take the lock of the built-in controller. Clocks are up to ten\n\
         minutes off, and their rates differ by up to a tenth, or by just what W and H allow. After the recovery of each run the electors are taken\n\
         away, and each leader that may be followed without them is killed. Times are the least, the middle, the 99th of 100 and the most.\n\n{}{}",
        args.seeds,
        args.from,
        statistics.table(),
        failures.concat()
    );
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE), page)
}

/// The plan of a seed, or the one that once failed of this name.
fn plan_of(text: &str) -> Result<RunPlan, String> {
    if let Ok(seed) = text.parse() {
        return Ok(RunPlan::draw(seed, ClockBound::Within));
    }
    let group = text.strip_prefix(GROUP_SEED);
    if let Some(seed) = group.and_then(|seed| seed.parse().ok()) {
        return Ok(RunPlan::draw_group(seed));
    }
    let mut plans = regressions().into_iter();
    let named = plans.find(|(name, _)| name.contains(text));
    let plan = named.map(|(_, plan)| plan);
    plan.ok_or_else(|| "neither a seed nor in the name of a plan".to_owned())
}
