//! Measures cold start, hand-over and crash on a real kube-apiserver and etcd, which waits for the disk.
//!
//! ```console
//! $ cargo run --release --package elector-tests --bin measure -- --runs 10 --out measured.jsonl
//! ```
//!
//! Every run is one JSON line, on standard output or in `--out`; the summary goes to standard error. Times are those
//! that the candidates write themselves: work begins, work has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterMode, EntryContent, EventKind, Implementation, TestProcess, TestSite, Testbed,
    TestedPrograms, between, warm_up,
};
use futures::{StreamExt as _, stream};
use serde_json::json;
use xtask::release::Release;

/// Measures cold start, hand-over and crash on a real kube-apiserver and etcd.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// How often each case is measured
    #[arg(long, default_value_t = 10)]
    runs: u32,
    /// How many runs go on at once; they spend most of their time waiting
    #[arg(long, default_value_t = 3)]
    jobs: usize,
    /// Which cases, all if none is given
    #[arg(long = "case", value_enum)]
    cases: Vec<MeasuredCase>,
    /// On which kind of cluster, all if none is given
    #[arg(long = "mode", value_enum)]
    modes: Vec<ModeName>,
    /// The implementation of the candidates, both if none is given
    #[arg(long = "candidates", value_enum)]
    implementations: Vec<ImplementationName>,
    /// The elector; Kubernetes' built-in controller with client-go candidates only
    #[arg(long = "elector", value_enum, default_value = "elector")]
    electors: Vec<ElectorName>,
    /// Release of Kubernetes
    #[arg(long, value_name = "1.N")]
    kubernetes: Option<Release>,
    /// The cargo profile of `elector`
    #[arg(long, default_value = "release")]
    profile: String,
    /// Where the JSON lines go [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MeasuredCase {
    /// Three candidates of different versions start where there was nothing
    ColdStart,
    /// A better candidate arrives while another leads
    HandOver,
    /// The leader is killed with SIGKILL at a random moment
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeName {
    GateOn,
    GateOff,
    Custom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ElectorName {
    Elector,
    BuiltIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ImplementationName {
    Elector,
    ClientGo,
}

/// What one run came to, in seconds by name.
type Figures = Vec<(&'static str, f64)>;

/// The values of one figure of one case.
type FigureTable = BTreeMap<(String, &'static str), Vec<f64>>;

/// A kind of run.
#[derive(Clone, Copy, Debug)]
struct RunKind {
    case: MeasuredCase,
    mode: ClusterMode,
    implementation: Implementation,
    builtin: bool,
}

/// For what takes longest: a client-go leader that makes room, and expires.
const PATIENCE: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Result<()> {
    let kinds = arguments.kinds();
    ensure!(
        !kinds.is_empty(),
        "there is nothing to measure: the built-in controller needs the gate and client-go"
    );
    let programs = Arc::new(TestedPrograms::build_for(
        &arguments.profile,
        arguments.kubernetes,
    )?);
    let mut out: Box<dyn Write> = match &arguments.out {
        Some(path) => Box::new(
            File::create(path).with_context(|| format!("failed to create {}", path.display()))?,
        ),
        None => Box::new(io::stdout()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut table = FigureTable::new();
    let mut sites: Vec<(ClusterMode, bool)> = Vec::new();
    for kind in &kinds {
        if !sites.contains(&kind.site()) {
            sites.push(kind.site());
        }
    }
    for site in sites {
        let kinds: Vec<RunKind> = kinds
            .iter()
            .filter(|kind| kind.site() == site)
            .copied()
            .collect();
        runtime.block_on(on_one_site(
            arguments,
            &kinds,
            Arc::clone(&programs),
            &mut out,
            &mut table,
        ))?;
    }
    summarize(&table);
    Ok(())
}

async fn on_one_site(
    arguments: &Arguments,
    kinds: &[RunKind],
    programs: Arc<TestedPrograms>,
    out: &mut dyn Write,
    table: &mut FigureTable,
) -> Result<()> {
    let (mode, builtin) = kinds[0].site();
    let folder = tempfile::Builder::new()
        .prefix("elector-measure-")
        .tempdir()?;
    let site = Arc::new(TestSite::start(mode, programs, folder.path().to_owned(), true).await?);
    let _elector: Option<TestProcess> = if builtin {
        None
    } else {
        let elector = site.elector("elector", mode.elector_flags().iter().copied())?;
        warm_up(&site).await?;
        Some(elector)
    };
    // The kinds take turns, so that none has the machine's better minutes to itself.
    let runs = (0..arguments.runs).flat_map(|run| kinds.iter().map(move |kind| (run, *kind)));
    let mut results = stream::iter(runs)
        .map(|(run, kind)| {
            let site = Arc::clone(&site);
            async move { (run, kind, one(site, run, kind).await) }
        })
        .buffer_unordered(arguments.jobs.max(1));
    while let Some((run, kind, figures)) = results.next().await {
        let (figures, error) = match figures {
            Ok(figures) => (figures, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        if let Some(error) = &error {
            eprintln!("{} run {run} failed: {error}", kind.label());
        }
        let seconds: serde_json::Map<_, _> = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let line = json!({
            "case": kind.case.to_possible_value().map(|value| value.get_name().to_owned()),
            "kubernetes": site.release().map(|release| release.to_string()),
            "mode": kind.mode.to_string(),
            "candidates": if kind.implementation == Implementation::Elector { "ours" } else { "client-go" },
            "elector": if kind.builtin { "built-in" } else { "ours" },
            "run": run,
            "jobs": arguments.jobs,
            "seconds": seconds,
            "error": error,
        });
        writeln!(out, "{line}")?;
        out.flush()?;
        for (name, value) in figures {
            table.entry((kind.label(), name)).or_default().push(value);
        }
    }
    Ok(())
}

async fn one(site: Arc<TestSite>, run: u32, kind: RunKind) -> Result<Figures> {
    let namespace = format!(
        "{}-{run}",
        kind.label().replace([' ', ','], "-").replace("--", "-")
    );
    let testbed = Testbed::open(site, &namespace, kind.implementation).await?;
    let figures = match kind.case {
        MeasuredCase::ColdStart => cold_start(&testbed).await,
        MeasuredCase::HandOver => hand_over(&testbed).await,
        MeasuredCase::Crash => crash(&testbed, run).await,
    };
    let figures = figures.with_context(|| testbed.journal().text())?;
    if !kind.builtin {
        testbed.verdict().await?;
    }
    Ok(figures)
}

async fn cold_start(testbed: &Testbed) -> Result<Figures> {
    let start = testbed.note("start");
    let _candidates = [
        testbed.candidate("newest").version("1.3.0").start()?,
        testbed.candidate("middle").version("1.2.0").start()?,
        testbed.candidate("oldest").version("1.1.0").start()?,
    ];
    let (_, led) = testbed.first_leader(PATIENCE).await?;
    Ok(vec![("start to first leader", seconds(start, led))])
}

async fn hand_over(testbed: &Testbed) -> Result<Figures> {
    let holder = testbed.candidate("holder").version("1.2.0").start()?;
    holder.leads(PATIENCE).await?;
    testbed.stays("holder", 1).await?;
    let arrival = testbed.note("a better one arrives");
    let better = testbed.candidate("better").version("1.1.0").start()?;
    let led = better.leads(PATIENCE).await?;
    let stopped = holder.says(EventKind::WorkStopped, 0, PATIENCE).await?;
    let mut figures = vec![
        ("arrival to new leader", seconds(arrival, led)),
        ("work stopped to new leader", seconds(stopped, led)),
    ];
    let preferred = testbed.journal().read(|entries| {
        entries.iter().find_map(|entry| match &entry.content {
            EntryContent::Lease(_, lease) => lease
                .record()
                .ok()?
                .preferred_holder
                .is_some_and(|name| name.as_str() == "better")
                .then_some(entry.at),
            _ => None,
        })
    });
    if let Some(preferred) = preferred {
        figures.push(("preference to new leader", seconds(preferred, led)));
    }
    Ok(figures)
}

async fn crash(testbed: &Testbed, run: u32) -> Result<Figures> {
    let mut leader = testbed.candidate("leader").version("1.1.0").start()?;
    leader.leads(PATIENCE).await?;
    let _standbys = [
        testbed.candidate("second").version("1.2.0").start()?,
        testbed.candidate("third").version("1.3.0").start()?,
    ];
    testbed.stays("leader", 2).await?;
    // The phases of the renew interval in equal measure: the age of the last renewal decides the result.
    tokio::time::sleep(Duration::from_millis(u64::from(run) * 1237 % 3300)).await;
    let renewed = testbed
        .lease()?
        .spec
        .renew_time
        .context("the leader has not renewed")?;
    let killed = leader.kill()?;
    let seen = testbed.journal().len();
    let led = testbed
        .journal()
        .until("somebody else leads", PATIENCE, |entries| {
            entries[seen..]
                .iter()
                .find_map(|entry| match &entry.content {
                    EntryContent::Event(event) if event.kind == EventKind::Leading => {
                        Some(entry.at)
                    }
                    _ => None,
                })
        })
        .await?;
    Ok(vec![
        ("kill to new leader", seconds(killed, led)),
        ("last renewal to new leader", seconds(renewed, led)),
    ])
}

fn seconds(earlier: Timestamp, later: Timestamp) -> f64 {
    // The other way round it is an overlap, which must not look like a zero.
    between(earlier, later).as_secs_f64() - between(later, earlier).as_secs_f64()
}

fn summarize(table: &FigureTable) {
    eprintln!(
        "\n{:<44} {:<28} {:>4} {:>8} {:>8} {:>8}",
        "case", "seconds from", "n", "min", "median", "max"
    );
    for ((label, figure), values) in table {
        let mut values = values.clone();
        values.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first(), values.last()) else {
            continue;
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        eprintln!(
            "{label:<44} {figure:<28} {:>4} {min:>8.3} {median:>8.3} {max:>8.3}",
            values.len()
        );
    }
}

// === impl Arguments ===

impl Arguments {
    fn kinds(&self) -> Vec<RunKind> {
        let cases: &[MeasuredCase] = if self.cases.is_empty() {
            MeasuredCase::value_variants()
        } else {
            &self.cases
        };
        let modes: &[ModeName] = if self.modes.is_empty() {
            ModeName::value_variants()
        } else {
            &self.modes
        };
        let implementations: &[ImplementationName] = if self.implementations.is_empty() {
            ImplementationName::value_variants()
        } else {
            &self.implementations
        };
        let mut kinds = Vec::new();
        for &elector in &self.electors {
            for &mode in modes {
                for &implementation in implementations {
                    for &case in cases {
                        kinds.push(RunKind {
                            case,
                            mode: match mode {
                                ModeName::GateOn => ClusterMode::GateOn,
                                ModeName::GateOff => ClusterMode::GateOff,
                                ModeName::Custom => ClusterMode::Custom,
                            },
                            implementation: match implementation {
                                ImplementationName::Elector => Implementation::Elector,
                                ImplementationName::ClientGo => Implementation::ClientGo,
                            },
                            builtin: elector == ElectorName::BuiltIn,
                        });
                    }
                }
            }
        }
        kinds.retain(|kind| kind.is_possible());
        kinds
    }
}

// === impl RunKind ===

impl RunKind {
    fn is_possible(self) -> bool {
        let client_go = self.implementation == Implementation::ClientGo;
        // Without the gate a client-go leader cannot be asked to make room.
        let yields =
            !client_go || self.mode == ClusterMode::GateOn || self.case != MeasuredCase::HandOver;
        let builtin_elects = !self.builtin || (client_go && self.mode == ClusterMode::GateOn);
        // client-go knows no custom resources.
        let registers = !client_go || self.mode != ClusterMode::Custom;
        yields && builtin_elects && registers
    }

    /// The cluster that it is measured on: the two electors do not share one.
    fn site(self) -> (ClusterMode, bool) {
        (self.mode, self.builtin)
    }

    fn label(self) -> String {
        let case = match self.case {
            MeasuredCase::ColdStart => "cold start",
            MeasuredCase::HandOver => "hand-over",
            MeasuredCase::Crash => "crash",
        };
        let implementation = if self.implementation == Implementation::Elector {
            "ours"
        } else {
            "client-go"
        };
        let builtin = if self.builtin { ", built-in" } else { "" };
        format!("{case}, {implementation}, {}{builtin}", self.mode)
    }
}
