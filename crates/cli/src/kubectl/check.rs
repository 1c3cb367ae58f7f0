//! `kubectl elector check`: whether all that an election needs is there, and what to do about what is not.

mod availability;
mod before;
mod builtin;
mod candidates;
mod clocks;
mod crd;
mod credentials;
mod electors;
mod finalizers;
mod kubernetes;
mod leases;
mod line;
mod overrides;
mod place;
mod policies;
mod right;
mod rights;
mod writers;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use elector_api::{CandidateApi, parse_duration};
use elector_protocol::LeaseKey;
use elector_runtime::{ClientArgs, Cluster, DiscoveryError, connect};
use tokio::time::{Instant, sleep};

use self::line::{CheckLevel, CheckLine, apply_overlay};
use self::place::CheckedPlace;
use crate::explain::cluster;
use crate::namespace::NamespaceArgs;
use crate::output::{self, ListFormat};

/// Tells whether all that an election needs is there: the API, rights, policies, electors, leaders and clocks.
///
/// Each line is ok, a warning or an error, and says what to do and where more is written. The exit code is 1 where one is
/// an error. Nothing is written.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Only this lease, and who may write it
    #[arg(long, value_name = "LEASE", conflicts_with = "all_namespaces")]
    lease: Option<String>,

    /// User whose rights as a candidate for --lease are asked for, such as system:serviceaccount:NAMESPACE:NAME [default:
    /// the accounts of the Pods of its candidates]
    #[arg(long, value_name = "USER", requires = "lease")]
    candidate_user: Option<String>,

    /// Look at what an installation needs instead, before there is one
    #[arg(long, conflicts_with_all = ["lease", "wait"])]
    pre: bool,

    /// Check again until no line is an error and the electors are up, for 5m where no duration follows
    #[arg(
        long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "5m",
        value_parser = parse_duration
    )]
    wait: Option<Duration>,

    /// Print a table, or a list whose form is stable
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table)]
    output: ListFormat,

    #[command(flatten)]
    electors: ElectorArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Where the electors are.
#[derive(Args, Clone, Debug)]
pub(crate) struct ElectorArgs {
    /// Namespace of the electors, and of their lock
    #[arg(long, value_name = "NAME", default_value = "elector-system")]
    pub(super) elector_namespace: String,

    /// Name of the Lease by which electors with --leader-elect are elected
    #[arg(long, value_name = "NAME", default_value = elector::LeaderElection::DEFAULT_NAME)]
    elector_lock: String,

    /// User that electors run as [default: the service account elector of --elector-namespace]
    #[arg(long, value_name = "USER")]
    elector_user: Option<String>,
}

/// The period of the checks while one waits.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Runs the sub-command.
pub(super) async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.client).await?;
    let deadline = args.wait.map(|wait| Instant::now() + wait);
    let lines = loop {
        let found = match args.pre {
            true => before_installation(&args, &cluster).await,
            false => installed(&args, &cluster).await,
        };
        let is_over = deadline.is_none_or(|deadline| deadline <= Instant::now());
        match found {
            Ok(lines) if is_over || lines.iter().all(CheckLine::is_settled) => break lines,
            // No request succeeds with a certificate that has expired, so that this is all there is to say.
            Err(error) if is_over => match credentials::check(&cluster) {
                Some(line) if line.level == CheckLevel::Error => break vec![line],
                _ => return Err(error),
            },
            // A server that is not there yet is waited for as well.
            _ => sleep(LOOK_EVERY).await,
        }
    };
    output::print_list(args.output, &lines, || table(&lines)).context("print the result")?;
    if args.wait.is_some() && !lines.iter().all(CheckLine::is_settled) {
        bail!("pass the check in {:?}", args.wait.unwrap_or_default());
    }
    if lines.iter().any(|line| line.level == CheckLevel::Error) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn before_installation(
    args: &CheckArgs,
    cluster: &Cluster,
) -> anyhow::Result<Vec<CheckLine>> {
    let (place, mut lines) = args.electors.place(cluster, None).await?;
    lines.extend(credentials::check(cluster));
    let (api, _) = candidate_api(&place).await?;
    kubernetes::check(&place, api, &mut lines).await;
    before::check(&place, api, &mut lines).await;
    if api.is_some_and(CandidateApi::is_native) {
        builtin::check(&place, &mut lines).await;
    }
    Ok(lines)
}

async fn installed(args: &CheckArgs, cluster: &Cluster) -> anyhow::Result<Vec<CheckLine>> {
    let namespace = args.namespace.in_cluster(cluster).map(str::to_owned);
    let (mut place, lines) = args.electors.place(cluster, namespace).await?;
    place.lease.clone_from(&args.lease);
    all_lines(&place, args.candidate_user.as_deref(), lines).await
}

/// All lines on an installation, as `check` prints them; those on the clocks are there already.
async fn all_lines(
    place: &CheckedPlace,
    candidate_user: Option<&str>,
    mut lines: Vec<CheckLine>,
) -> anyhow::Result<Vec<CheckLine>> {
    let (api, line) = candidate_api(place).await?;
    lines.insert(0, line);
    lines.extend(credentials::check(&place.cluster));
    kubernetes::check(place, api, &mut lines).await;
    if api == Some(CandidateApi::Elector) {
        crd::check(place, &mut lines).await;
    }
    let in_force = policies::check(place, &mut lines).await;
    rights::check(place, api, in_force, &mut lines).await;
    if api.is_some_and(CandidateApi::is_native) {
        builtin::check(place, &mut lines).await;
    }
    electors::check(place, api, &mut lines).await;
    availability::check(place, &mut lines).await;
    let Some(api) = api else {
        return Ok(lines);
    };
    match cluster::list(&place.cluster, place.namespace.as_deref()).await {
        Ok(listed) => {
            candidates::check(place, api, &listed, candidate_user, &mut lines).await;
            overrides::check(&listed, place.now, &mut lines);
            finalizers::check(place, &listed, &mut lines);
            leases::check(place, listed, &mut lines).await;
        }
        Err(error) => {
            let fix = format!(
                "use an account with this permission: {} get leases,leasecandidates",
                place.kubectl()
            );
            lines.push(CheckLine::error(
                "leases",
                format!("failed to {error:#}"),
                fix,
            ));
        }
    }
    if let (Some(namespace), Some(lease)) = (&place.namespace, &place.lease) {
        let lease = LeaseKey::new(namespace.as_str(), lease.as_str());
        writers::check(place, &lease, &mut lines).await;
    }
    Ok(lines)
}

/// The same for all namespaces, as values for programs.
pub(super) async fn report(
    electors: &ElectorArgs,
    cluster: &Cluster,
) -> anyhow::Result<serde_json::Value> {
    let (place, lines) = electors.place(cluster, None).await?;
    let lines = all_lines(&place, None, lines).await?;
    Ok(serde_json::to_value(lines)?)
}

// === impl ElectorArgs ===

impl ElectorArgs {
    /// The place to check, and the lines on its clock.
    async fn place(
        &self,
        cluster: &Cluster,
        namespace: Option<String>,
    ) -> anyhow::Result<(CheckedPlace, Vec<CheckLine>)> {
        let (now, lines) = clocks::compare(cluster).await?;
        let account = format!("system:serviceaccount:{}:elector", self.elector_namespace);
        let place = CheckedPlace {
            namespace,
            lease: None,
            elector_namespace: self.elector_namespace.clone(),
            elector_lock: self.elector_lock.clone(),
            elector_user: self.elector_user.clone().unwrap_or(account),
            now,
            cluster: cluster.clone(),
        };
        Ok((place, lines))
    }
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
        Err(DiscoveryError::NotServed(why)) => {
            let text = format!("no LeaseCandidates can be used: {why}");
            Ok((None, CheckLine::error(CHECK, text, apply_overlay(None))))
        }
        Err(DiscoveryError::Request(error)) => Err(error.into()),
    }
}

fn table(lines: &[CheckLine]) -> String {
    let header = ["LEVEL", "CHECK", "RESULT"].map(str::to_owned);
    let cells: Vec<_> = [header]
        .into_iter()
        .chain(lines.iter().map(CheckLine::cells))
        .collect();
    let colours = [None]
        .into_iter()
        .chain(lines.iter().map(|line| line.level.colour()));
    output::coloured(output::columns(&cells, 3), colours)
}
