//! The cost of the elector for each lease and for each event, with thousands of leases: `cargo xtask bench scale`.
//!
//! ```text
//!   API server <── watches, writes ── elector run (a process) ──> /proc, /metrics ──> ScaleFigures
//!      ^
//!      └── two watches, all writes of all candidates ── Fleet (this process)
//! ```
//!
//! Nothing is asserted but that all leases come to be led, and that 100 000 of them cost no more than their target.

mod args;
mod bare;
mod bare_client;
mod benchmarked_elector;
mod figures;
mod fleet;
mod follower;
mod run;
mod server;
mod table;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::measured;
use elector_tests::rig::TestedPrograms;

pub(crate) use args::RunSize;
pub use args::{ScaleArgs, ServerName};
pub(crate) use benchmarked_elector::ScrapedFigures;
pub use figures::{BareClient, BareWrites, LatencySummary, Phase, Resident, ScaleFigures};
pub(crate) use fleet::Fleet;
pub use fleet::FleetCounts;
pub(crate) use follower::lease_key;
pub(crate) use server::create_namespaces;
pub use table::table;

/// Measures everything that is asked for, one after the other.
///
/// # Errors
/// When something does not start, or not all leases come to be led.
pub async fn measure(args: &ScaleArgs) -> Result<Vec<ScaleFigures>> {
    let sizes = args.sizes()?;
    let program = TestedPrograms::elector(&args.profile)?;
    let mut figures = Vec::new();
    for size in sizes {
        let folder = tempfile::Builder::new()
            .prefix("elector-scale-")
            .tempdir()
            .context("failed to create a folder")?;
        let measured = run::measure(args, &size, &program, folder.path()).await;
        if !measured.as_ref().is_ok_and(ScaleFigures::is_complete) {
            eprintln!("the logs are kept in {}", folder.keep().display());
        }
        figures.push(measured?);
    }
    Ok(figures)
}

/// Measures, prints the table, and writes what is to be written.
///
/// # Errors
/// As [`measure`], or when a file cannot be written; after all is written, when a target is missed.
pub async fn run(args: &ScaleArgs) -> Result<()> {
    let figures = measure(args).await?;
    println!("{}", table(&figures));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&figures)?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    if args.record {
        let server = figures.first().map_or("", |measured| &measured.server);
        let (line, table) = (args.command(), table(&figures));
        let text = format!("`{line}`, {server}.\n\n{table}");
        measured::record("docs/scale.md", args.table_name(), &text)?;
    }
    ensure!(
        figures.iter().all(ScaleFigures::is_complete),
        "not all leases came to be led within {:?}",
        args.patience
    );
    let missed: Vec<String> = figures.iter().filter_map(ScaleFigures::missed).collect();
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}
