//! `kubectl elector check`: whether all that an election needs is there, and what to do about what is not.

mod builtin;
mod clocks;
mod electors;
mod leases;
mod line;
mod place;
mod policies;
mod rights;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use elector_api::CandidateApi;
use elector_runtime::{ClientArgs, DiscoveryError, connect};

use self::line::{CheckLevel, CheckLine};
use self::place::CheckedPlace;
use crate::namespace::NamespaceArgs;
use crate::output::{self, ListFormat};

/// Tells whether all that an election needs is there: the API, rights, policies, electors, leaders and clocks.
///
/// Each line is ok, a warning or an error, and says what to do. The exit code is 1 where one is an error. Nothing is
/// written.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Print a table, or a JSON array whose form is stable
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table)]
    output: ListFormat,

    /// Namespace of the electors, and of their lock
    #[arg(long, value_name = "NAME", default_value = "elector-system")]
    elector_namespace: String,

    /// Name of the Lease by which electors with --leader-elect are elected
    #[arg(long, value_name = "NAME", default_value = elector::LeaderElection::DEFAULT_NAME)]
    elector_lock: String,

    /// User that electors run as [default: the service account elector of --elector-namespace]
    #[arg(long, value_name = "USER")]
    elector_user: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

/// Runs the sub-command.
pub(super) async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.client).await?;
    let (now, mut lines) = clocks::compare(&cluster).await?;
    let account = format!("system:serviceaccount:{}:elector", args.elector_namespace);
    let place = CheckedPlace {
        namespace: args.namespace.in_cluster(&cluster).map(str::to_owned),
        elector_namespace: args.elector_namespace,
        elector_lock: args.elector_lock,
        elector_user: args.elector_user.unwrap_or(account),
        now,
        cluster,
    };
    let (api, line) = candidate_api(&place).await?;
    lines.insert(0, line);
    let in_force = policies::check(&place, &mut lines).await;
    rights::check(&place, api, in_force, &mut lines).await;
    if api.is_some_and(CandidateApi::is_native) {
        builtin::check(&place, &mut lines).await;
    }
    electors::check(&place, &mut lines).await;
    if api.is_some() {
        leases::check(&place, &mut lines).await;
    }
    print(&lines, args.output)?;
    if lines.iter().any(|line| line.level == CheckLevel::Error) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn candidate_api(place: &CheckedPlace) -> anyhow::Result<(Option<CandidateApi>, CheckLine)> {
    const CHECK: &str = "api";
    match place.cluster.candidate_api().await {
        Ok(api) => {
            let kind = if api.is_native() {
                "of Kubernetes"
            } else {
                "custom resources"
            };
            let text = format!("LeaseCandidates are {kind}, {}", api.api_version());
            Ok((Some(api), CheckLine::ok(CHECK, text)))
        }
        Err(DiscoveryError::NotServed(why)) => Ok((
            None,
            CheckLine::error(
                CHECK,
                format!("no LeaseCandidates can be used: {why}"),
                "for the CRD: kubectl apply -f manifests/components/crd/leasecandidates.yaml",
            ),
        )),
        Err(DiscoveryError::Request(error)) => Err(error.into()),
    }
}

fn print(lines: &[CheckLine], format: ListFormat) -> anyhow::Result<()> {
    match format {
        ListFormat::Json => output::print_json(&lines),
        ListFormat::Table => {
            let header = ["LEVEL", "CHECK", "RESULT"].map(str::to_owned);
            let cells: Vec<_> = [header]
                .into_iter()
                .chain(lines.iter().map(CheckLine::cells))
                .collect();
            let colours = [None]
                .into_iter()
                .chain(lines.iter().map(|line| line.level.colour()));
            output::print(&output::coloured(output::columns(&cells, 3), colours))
        }
    }
    .context("print the result")
}
