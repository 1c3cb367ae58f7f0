//! `kubectl elector history` and `timeline`: who led a lease when, as far as that is still known.

mod group;
pub(super) mod past;
mod picture;
mod segments;
mod svg;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use elector_api::age;
use elector_protocol::{LeaseKey, Timestamp};
use elector_runtime::{ClientArgs, connect};

use self::group::{GroupPast, group_name};
use self::past::{LeasePast, PastLine, in_seconds, read_recording};
use crate::explain::present;
use crate::output::{self, ListFormat, RED, YELLOW};

/// Tells who led a lease when and why, from Events, or from a recording.
///
/// Servers keep Events for an hour, unless --event-ttl of kube-apiserver says otherwise; how far back these reach is said at
/// the end. A recording is what `kubectl get lease -w -o json` prints.
#[derive(Args, Debug)]
pub(super) struct HistoryArgs {
    /// The lease
    lease: String,

    #[command(flatten)]
    source: PastArgs,

    /// Print a table, or a list whose form is stable
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table)]
    output: ListFormat,
}

/// Shows who led a lease when as a picture: a line for each leader, from the oldest Event or revision until now.
#[derive(Args, Debug)]
pub(super) struct TimelineArgs {
    /// The lease
    #[arg(required_unless_present = "group")]
    lease: Option<String>,

    /// All leases of a group in the place of one: a line for each lease, in which each member has a mark or a colour
    #[arg(long, value_name = "NAME", conflicts_with = "lease", value_parser = group_name)]
    group: Option<String>,

    #[command(flatten)]
    source: PastArgs,

    /// How many characters wide the time is
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(u16).range(10..=1000))]
    width: u16,

    /// Print characters, or an SVG picture in which a character is 10 pixels wide
    #[arg(short = 'o', long, value_enum, default_value_t = TimelineFormat::Text)]
    output: TimelineFormat,
}

/// Where the past comes from.
#[derive(Args, Debug)]
struct PastArgs {
    /// Namespace of the lease [default: that of the kubeconfig's context, and `default` in a file]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,

    /// Read a recording instead of the cluster; `-` is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Option<PathBuf>,

    #[command(flatten)]
    client: ClientArgs,
}

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimelineFormat {
    Text,
    Svg,
}

/// Runs `history`.
pub(super) async fn history(args: HistoryArgs) -> anyhow::Result<ExitCode> {
    let past = args.source.of_lease(&args.lease).await?;
    output::print_list(args.output, &past.lines, || table(&past, present()))
        .context("print the history")?;
    if args.output == ListFormat::Table {
        eprintln!("{}", past.reach(present()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `timeline`.
pub(super) async fn timeline(args: TimelineArgs) -> anyhow::Result<ExitCode> {
    let width = usize::from(args.width);
    let is_text = args.output == TimelineFormat::Text;
    let (picture, reach) = match (&args.group, &args.lease) {
        (Some(group), _) => {
            let past = args.source.of_group(group).await?;
            let until = past.until().unwrap_or_else(present);
            let draw = if is_text {
                picture::draw_group
            } else {
                svg::draw_group
            };
            (draw(&past, until, width), past.reach(until))
        }
        (None, lease) => {
            let past = args
                .source
                .of_lease(lease.as_deref().unwrap_or_default())
                .await?;
            let until = past.until.unwrap_or_else(present);
            let draw = if is_text { picture::draw } else { svg::draw };
            (draw(&past, until, width), past.reach(until))
        }
    };
    output::print(&picture).context("print the timeline")?;
    eprintln!("{reach}");
    Ok(ExitCode::SUCCESS)
}

fn table(past: &LeasePast, now: Timestamp) -> String {
    let header = ["TIME", "AGE", "REASON", "LEADER", "TERM", "MESSAGE"].map(str::to_owned);
    let cells = |line: &PastLine| {
        let none = || "<none>".to_owned();
        [
            in_seconds(line.at),
            age((now.as_micros() - line.at.as_micros()).div_euclid(1_000_000)),
            line.reason.clone(),
            line.leader.clone().unwrap_or_else(none),
            line.term.map_or_else(none, |term| term.to_string()),
            line.message(now),
        ]
    };
    let rows: Vec<_> = [header]
        .into_iter()
        .chain(past.lines.iter().map(cells))
        .collect();
    let colours = past.lines.iter().map(|line| {
        let colour = if line.leader.is_none() { RED } else { YELLOW };
        line.is_warning.then_some(colour)
    });
    let colours = [None].into_iter().chain(colours);
    output::coloured(output::columns(&rows, 3), colours)
}

// === impl PastArgs ===

impl PastArgs {
    async fn of_lease(&self, lease: &str) -> anyhow::Result<LeasePast> {
        let past = match &self.filename {
            Some(path) => LeasePast::of_history(
                &read_recording(path)?,
                &LeaseKey::new(self.in_file(), lease),
            ),
            None => {
                let cluster = connect(&self.client).await?;
                let namespace = self.namespace.as_deref().unwrap_or(cluster.namespace());
                LeasePast::told(&cluster, &LeaseKey::new(namespace, lease)).await?
            }
        };
        if past.lines.is_empty() {
            bail!(
                "find anything about lease {}: {}",
                past.lease,
                past.nothing()
            );
        }
        Ok(past)
    }

    async fn of_group(&self, group: &str) -> anyhow::Result<GroupPast> {
        match &self.filename {
            Some(path) => GroupPast::recorded(path, self.in_file(), group),
            None => {
                let cluster = connect(&self.client).await?;
                let namespace = self.namespace.as_deref().unwrap_or(cluster.namespace());
                GroupPast::in_cluster(&cluster, namespace, group).await
            }
        }
    }

    /// The namespace in a recording.
    fn in_file(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}
