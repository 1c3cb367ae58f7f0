//! Measures cold start, hand-over and crash on a real kube-apiserver and etcd, which waits for the disk.
//!
//! ```console
//! $ cargo run --release --package elector-tests --bin measure -- --runs 10 --out measured.jsonl
//! ```
//!
//! Every run is one JSON line, on standard output or in `--out`; the summary goes to standard error. Times are those
//! that the candidates write themselves: work begins, work has ended.

mod arguments;
mod run;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser as _, ValueEnum as _};
use elector_tests::rig::{
    ClusterMode, Implementation, SitePurpose, TestProcess, TestSite, TestedPrograms, warm_up,
};
use futures::{StreamExt as _, stream};
use serde_json::json;

use crate::arguments::{Arguments, RunKind};

/// The values of one figure of one case.
type FigureTable = BTreeMap<(String, &'static str), Vec<f64>>;

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
    let (path, purpose) = (folder.path().to_owned(), SitePurpose::Measuring);
    let site = Arc::new(TestSite::start(mode, programs, path, purpose).await?);
    let _elector: Option<TestProcess> = if builtin {
        None
    } else {
        let elector = site.start_elector("elector").await?;
        warm_up(&site).await?;
        Some(elector)
    };
    // The kinds take turns, so that none has the machine's better minutes to itself.
    let runs = (0..arguments.runs).flat_map(|run| kinds.iter().map(move |kind| (run, *kind)));
    let mut results = stream::iter(runs)
        .map(|(run, kind)| {
            let site = Arc::clone(&site);
            async move { (run, kind, run::one(site, run, kind).await) }
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
