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
mod programs;
mod run;
mod server;
mod table;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::measured;

pub(crate) use args::RunSize;
pub use args::{ScaleArgs, ServerName};
pub use bare_client::{BareClientArgs, run as run_bare_client};
pub(crate) use benchmarked_elector::ScrapedFigures;
pub use figures::{BareClient, BareWrites, LatencySummary, Phase, Resident, ScaleFigures};
pub(crate) use fleet::Fleet;
pub use fleet::FleetCounts;
pub(crate) use follower::lease_key;
pub use programs::BenchPrograms;
pub(crate) use server::create_namespaces;
pub use table::table;

/// Measures everything that is asked for, one after the other, until something fails. What was measured before is in
/// `figures`.
///
/// # Errors
/// When something does not start, or a request fails.
pub async fn measure(
    args: &ScaleArgs,
    programs: &BenchPrograms,
    figures: &mut Vec<ScaleFigures>,
) -> Result<()> {
    let sizes = args.sizes()?;
    for size in sizes {
        let folder = tempfile::Builder::new()
            .prefix("elector-scale-")
            .tempdir()
            .context("failed to create a folder")?;
        let (measured, ended) = run::measure(args, &size, programs, folder.path()).await;
        if ended.is_err() || !measured.as_ref().is_some_and(ScaleFigures::is_complete) {
            eprintln!("the logs are kept in {}", folder.keep().display());
        }
        figures.extend(measured);
        ended?;
    }
    Ok(())
}

/// Measures, prints the table, and writes what is to be written.
///
/// # Errors
/// When a file cannot be written; after all is written, as [`measure`], when not all leases came to be led, or when a target
/// is missed.
pub async fn run(args: &ScaleArgs) -> Result<()> {
    let mut figures = Vec::new();
    let programs = BenchPrograms::build(&args.profile)?;
    let ended = measure(args, &programs, &mut figures).await;
    if figures.is_empty() {
        return ended;
    }
    let mut table = table(&figures);
    if let Err(error) = &ended {
        table.push_str(&format!("\nNot all was measured: {error}.\n"));
    }
    println!("{table}");
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&figures)?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    if args.record {
        let server = figures.first().map_or("", |measured| &measured.server);
        let line = args.command();
        let text = format!("`{line}`, {server}.\n\n{table}");
        measured::record("docs/scale.md", args.table_name(), &text)?;
    }
    ended?;
    ensure!(
        figures.iter().all(ScaleFigures::is_complete),
        "not all leases came to be led within {:?}",
        args.patience
    );
    let missed: Vec<String> = figures.iter().filter_map(ScaleFigures::missed).collect();
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}
