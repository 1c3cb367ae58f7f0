//! Cold start, hand-over and crash on a real kube-apiserver and etcd, which waits for the disk, also of client-go and of
//! Kubernetes' own controller: `cargo xtask bench upstream`.

mod args;
mod run;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;
use elector_tests::rig::{SitePurpose, TestSite, TestedPrograms, warm_up};
use futures::{StreamExt as _, stream};
use serde_json::{Map, json};

use args::RunKind;
pub use args::{MeasuredCase, UpstreamArgs};

/// The values of one figure of one case.
type FigureTable = BTreeMap<(String, &'static str), Vec<f64>>;

/// Measures, writes a line for each run, and sums up.
///
/// # Errors
/// When a program cannot be built, or a cluster does not start.
pub async fn run(args: &UpstreamArgs) -> Result<()> {
    let programs = TestedPrograms::build_for(&args.profile, args.kubernetes)?;
    let programs = Arc::new(programs);
    let mut out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(
            File::create(path).with_context(|| format!("failed to create {}", path.display()))?,
        ),
        None => Box::new(io::stdout()),
    };
    let mut table = FigureTable::new();
    for mode in &args.modes {
        let kinds = args.kinds(*mode);
        if !kinds.is_empty() {
            on_one_site(args, &kinds, Arc::clone(&programs), &mut out, &mut table).await?;
        }
    }
    ensure!(
        !table.is_empty(),
        "nothing was measured: the built-in controller needs the gate and client-go"
    );
    summarize(table);
    Ok(())
}

async fn on_one_site(
    args: &UpstreamArgs,
    kinds: &[RunKind],
    programs: Arc<TestedPrograms>,
    out: &mut dyn Write,
    table: &mut FigureTable,
) -> Result<()> {
    let mode = kinds[0].mode;
    let folder = tempfile::Builder::new()
        .prefix("elector-bench-")
        .tempdir()?;
    let (path, purpose) = (folder.path().to_owned(), SitePurpose::Measuring);
    let site = Arc::new(TestSite::start(mode, programs, path, purpose).await?);
    let _elector = if args.built_in {
        None
    } else {
        let elector = site.start_elector("elector").await?;
        warm_up(&site).await?;
        Some(elector)
    };
    // The kinds take turns, so that none has the machine's better minutes to itself.
    let runs = (0..args.runs).flat_map(|run| kinds.iter().map(move |kind| (run, *kind)));
    let mut results = stream::iter(runs)
        .map(|(run, kind)| {
            let site = Arc::clone(&site);
            async move { (run, kind, run::one(site, run, kind).await) }
        })
        .buffer_unordered(args.jobs.max(1));
    while let Some((run, kind, figures)) = results.next().await {
        let (figures, error) = match figures {
            Ok(figures) => (figures, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        if let Some(error) = &error {
            eprintln!("{} run {run} failed: {error}", kind.label());
        }
        let seconds = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        let line = json!({
            "case": kind.case.to_possible_value().map(|value| value.get_name().to_owned()),
            "kubernetes": site.release().map(|release| release.to_string()),
            "mode": kind.mode.to_string(),
            "candidates": kind.candidates(),
            "elector": if kind.builtin { "built-in" } else { "ours" },
            "run": run,
            "jobs": args.jobs,
            "seconds": Map::from_iter(seconds),
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

fn summarize(table: FigureTable) {
    eprintln!(
        "\n{:<44} {:<28} {:>4} {:>8} {:>8} {:>8}",
        "case", "seconds from", "n", "min", "median", "max"
    );
    for ((label, figure), mut values) in table {
        values.sort_by(f64::total_cmp);
        let (last, middle) = (values.len() - 1, values.len() / 2);
        let (min, max) = (values[0], values[last]);
        let median = f64::midpoint(values[last - middle], values[middle]);
        eprintln!(
            "{label:<44} {figure:<28} {:>4} {min:>8.3} {median:>8.3} {max:>8.3}",
            values.len()
        );
    }
}
