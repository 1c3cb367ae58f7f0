//! `elector explain`: what the elector would do next for each lease, and why.

pub(crate) mod cluster;
pub(crate) mod group;
pub(crate) mod input;
pub(crate) mod operator;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use elector_api::parse_time;
use elector_protocol::elector::Settings;
use elector_protocol::{ElectorTiming, Timestamp};
use elector_runtime::{ClientArgs, Clock as _, SystemClock, connect};

use self::input::{InputObjects, LeaseChoice};
use crate::block_on::block_on;
use crate::namespace::NamespaceArgs;
use crate::output::{self, ListFormat};

/// Says what the elector would do next for each lease that a candidate names, and why.
///
/// Reads the namespace, or with --filename a list as `kubectl get leases,leasecandidates -o json` (or yaml) prints it.
/// The objects' own times stand for what an elector would have observed; a missing Lease counts as long absent. Where a
/// Lease comes in several revisions, as with `kubectl get leases -w -o json`, the last one is explained, and the earlier
/// ones tell of hand-overs that were not accepted.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Only this lease
    lease: Option<String>,

    /// Read objects from this file instead of the cluster; `-` is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Option<PathBuf>,

    /// Judge as of this time, RFC 3339 [default: the present]
    #[arg(long, value_name = "TIME", value_parser = parse_now)]
    now: Option<Timestamp>,

    /// Print a table, or a list whose form is stable
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table)]
    output: ListFormat,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// The longest lease duration that any client of the cluster uses
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = elector_api::parse_duration)]
    max_lease_duration: std::time::Duration,

    #[command(flatten)]
    client: ClientArgs,
}

/// Runs the sub-command. Malformed objects are named on standard error and the others explained all the same; the exit
/// code then is 1.
pub(crate) fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    block_on(explain(args))
}

async fn explain(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let timing = ElectorTiming {
        max_lease_duration: args.max_lease_duration,
        ..ElectorTiming::default()
    };
    timing.validate().context("use the flags")?;
    let choice = LeaseChoice::named(args.lease.as_deref());
    let (mut objects, namespace) = match &args.filename {
        Some(path) => {
            let namespace = args.namespace.in_file().map(str::to_owned);
            (InputObjects::read(path, choice)?, namespace)
        }
        None => {
            let cluster = connect(&args.client).await?;
            let namespace = args.namespace.in_cluster(&cluster).map(str::to_owned);
            let objects = cluster::read(&cluster, namespace.as_deref(), choice).await?;
            (objects, namespace)
        }
    };
    objects.show_misnamed();
    let now = args.now.unwrap_or_else(present);
    let settings = Settings {
        timing,
        preference_field: objects.preference_field,
    };
    objects.assign_groups(now, &settings);
    objects.keep(namespace.as_deref(), args.lease.as_deref());
    for fault in &objects.faults {
        output::print_error(fault);
    }
    let rows = report::rows(&objects, now, &settings);
    if let Some(lease) = args.lease.filter(|_| rows.is_empty()) {
        bail!("find lease {}", in_place(&lease, namespace.as_deref()));
    }
    if rows.is_empty() && args.output == ListFormat::Table {
        eprintln!("No lease is named by a candidate.");
    }
    output::print_list(args.output, &rows, || report::table(&rows)).context("print the report")?;
    if objects.faults.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// A lease and where it was looked for.
pub(crate) fn in_place(lease: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => {
            format!("{namespace}/{lease}: there is no such Lease, and no candidate names it")
        }
        None => {
            format!("{lease} in any namespace: there is no such Lease, and no candidate names it")
        }
    }
}

fn parse_now(text: &str) -> Result<Timestamp, String> {
    parse_time(text).map_err(|error| error.to_string())
}

/// The wall clock, in whole microseconds.
pub(crate) fn present() -> Timestamp {
    SystemClock::start().wall()
}
