//! Cold start, crash, hand-over, equal candidates, quiet leases and fleets on real kube-apiservers and etcds, which wait for
//! the disk, with our elector, with Kubernetes' own controller and with plain client-go: `cargo xtask bench upstream`.
//!
//! ```text
//!   cluster whose controller our elector replaced <── ours, client-go's ──┐
//!                                                                         ├── take turns ──> lines, tables, picture
//!   cluster whose own controller elects <── built-in, plain client-go ────┘
//! ```

mod args;
mod fleet;
mod picture;
mod plain_fleet;
mod quiet;
mod results;
mod run;
mod table;
mod targets;
mod unelected;

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::{measured, paths};
use elector_tests::rig::{
    ClusterMode, SitePurpose, TestProcess, TestSite, TestedPrograms, warm_up,
};
use futures::{StreamExt as _, stream};
use tempfile::TempDir;

use args::RunKind;
pub use args::{MeasuredCase, Subject, UpstreamArgs};
use results::RunResults;

/// The documents, from the root of the workspace.
const PAGE: &str = "docs/comparison.md";
const LINES: &str = "docs/comparison.jsonl";
const PICTURE: &str = "docs/comparison.svg";

/// A cluster, and our elector where it elects there. The processes end before the folder of their logs goes.
struct ElectionSite {
    site: Arc<TestSite>,
    _elector: Option<TestProcess>,
    _folder: TempDir,
}

/// Measures, writes a line for each run, sums up, and records.
///
/// # Errors
/// When a program cannot be built, a cluster that is not one fleet's alone does not start, or a file cannot be written; after
/// all is written, when a run has failed, unless nobody was elected and our elector did not elect, or a target is missed.
pub async fn run(args: &UpstreamArgs) -> Result<()> {
    let began = Instant::now();
    let read = |path| fs::read_to_string(path).with_context(|| format!("failed to read {path:?}"));
    let known = args.lines.iter().map(read).collect::<Result<String>>()?;
    let records_all = args.record && !args.quick;
    let lines = paths::workspace().join(LINES);
    // The lines that the page was made of stay as they are until there is another page.
    let unfinished = lines.with_extension("jsonl.unfinished");
    let recorded = records_all.then(|| unfinished.clone());
    let mut results = RunResults::to(args.out.clone().or(recorded))?;
    results.take_lines(&known)?;
    if args.lines.is_empty() {
        measure(args, &mut results).await?;
    }
    let table = table::table(&results);
    println!("{table}");
    ensure!(!results.is_empty(), "nothing was measured");
    let took = format!(
        "It took {} s, with all programs built.",
        began.elapsed().as_secs()
    );
    println!("{took}");
    if args.record && args.quick {
        measured::record(PAGE, "upstream --quick", &took)?;
    }
    if records_all {
        measured::record(PAGE, "upstream", &table)?;
        fs::rename(&unfinished, &lines)
            .with_context(|| format!("failed to write {}", lines.display()))?;
        let path = paths::workspace().join(PICTURE);
        let drawn = picture::draw(&results);
        fs::write(&path, drawn).with_context(|| format!("failed to write {}", path.display()))?;
        let paragraph = table::paragraph(&results).context("a figure of the README is missing")?;
        measured::sum_up("README.md", "upstream", &paragraph)?;
    }
    // In five minutes there are too few runs for a target.
    let judged = if args.quick { vec![] } else { args.kinds() };
    let missed = targets::missed(&results, &judged);
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}

/// Plays all that is asked for.
async fn measure(args: &UpstreamArgs, results: &mut RunResults) -> Result<()> {
    let programs = TestedPrograms::build_for(&args.profile, args.kubernetes)?;
    let programs = Arc::new(programs);
    let kinds = args.kinds();
    let (fleets, others): (Vec<_>, _) = kinds.iter().partition(|kind| kind.case.fleet().is_some());
    take_turns(args, &others, &programs, results).await?;
    let most = fleets.iter().map(|kind| args.runs_of(*kind)).max();
    for run in 0..most.unwrap_or_default() {
        for kind in &fleets {
            // One that is not led in its time would not be the next time.
            if results.endless(kind.case, kind.subject) == 0 {
                // A namespace with thousands of objects is no ground for another run.
                let place = ElectionSite::start(&programs, kind.subject.is_elected_by_us()).await;
                let played = match place.context("its cluster did not start") {
                    Ok(place) => run::one(Arc::clone(&place.site), run, *kind).await,
                    Err(error) => Err(error),
                };
                results.add(*kind, run, played)?;
            }
        }
    }
    Ok(())
}

/// Plays all but the fleets on two clusters, side by side where one does not disturb the other.
async fn take_turns(
    args: &UpstreamArgs,
    kinds: &[RunKind],
    programs: &Arc<TestedPrograms>,
    results: &mut RunResults,
) -> Result<()> {
    if kinds.is_empty() {
        return Ok(());
    }
    let ours = ElectionSite::start(programs, true).await?;
    let theirs = ElectionSite::start(programs, false).await?;
    let play = |(run, kind): (u32, RunKind)| {
        let place = if kind.subject.is_elected_by_us() {
            &ours
        } else {
            &theirs
        };
        let site = Arc::clone(&place.site);
        async move { (run, kind, run::one(site, run, kind).await) }
    };
    let most = kinds.iter().map(|kind| args.runs_of(*kind)).max();
    let all = (0..most.unwrap_or_default())
        .flat_map(|run| kinds.iter().map(move |kind| (run, *kind)))
        .filter(|(run, kind)| *run < args.runs_of(*kind));
    // The kinds take turns, so that none has the machine's better minutes to itself. Those that are only watched need no
    // turns, and while requests are counted nothing else may run on that cluster.
    let (watched, all): (Vec<_>, Vec<_>) =
        all.partition(|(_, kind)| kind.case == MeasuredCase::Equal);
    let (counted, timed): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, kind)| kind.case == MeasuredCase::Quiet);
    for (runs, jobs) in [(timed, args.jobs.max(1)), (watched, usize::MAX)] {
        let mut played = stream::iter(runs).map(play).buffer_unordered(jobs);
        while let Some((run, kind, figures)) = played.next().await {
            results.add(kind, run, figures)?;
        }
    }
    let (of_ours, of_theirs): (Vec<_>, Vec<_>) = counted
        .into_iter()
        .partition(|(_, kind)| kind.subject.is_elected_by_us());
    let one_by_one = |runs| stream::iter(runs).then(play).boxed_local();
    let mut played = stream::select(one_by_one(of_ours), one_by_one(of_theirs));
    while let Some((run, kind, figures)) = played.next().await {
        results.add(kind, run, figures)?;
    }
    Ok(())
}

// === impl ElectionSite ===

impl ElectionSite {
    /// One with the gate, on which our elector has replaced the built-in controller, or has not.
    async fn start(programs: &Arc<TestedPrograms>, ours: bool) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("elector-bench-")
            .tempdir()?;
        let (path, programs) = (folder.path().to_owned(), Arc::clone(programs));
        let (mode, purpose) = (ClusterMode::GateOn, SitePurpose::Measuring);
        let site = Arc::new(TestSite::start(mode, programs, path, purpose).await?);
        let elector = if ours {
            let elector = site.start_elector("elector").await?;
            warm_up(&site).await?;
            Some(elector)
        } else {
            None
        };
        Ok(Self {
            site,
            _elector: elector,
            _folder: folder,
        })
    }
}
