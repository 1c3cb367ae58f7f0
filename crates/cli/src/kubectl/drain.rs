//! `kubectl elector drain`: all candidates on a node make room, before the node goes.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use elector_api::{Lease, LeaseCandidate, Rfc3339, annotation, parse_duration};
use elector_protocol::{LeaseKey, Timestamp};
use elector_runtime::{ClientArgs, Cluster, RequestError, Target, Verb, connect, printable};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::annotate::{CandidateKind, lasting, lease_at, until};
use super::annotation_patch::DryRun;
use super::pods::{Pod, list_pods};
use super::status::row::{StatusRow, rows};
use crate::explain::cluster::{self, ListedObjects};
use crate::explain::input::LeaseChoice;
use crate::explain::present;
use crate::output;

/// Has all candidates on a node stand down, and waits until they lead nothing.
///
/// A candidate is on a node if its Pod is: the Pod that owns it, or the one that it is named for. Cordon the node first, so
/// that no new one comes, and drain it with kubectl afterwards. It takes the right to list Pods, to get and patch
/// LeaseCandidates, and under the admission policies to operate leases.elector.dev.
#[derive(Args, Debug)]
pub(super) struct DrainArgs {
    /// The node
    node: String,

    /// Only the candidates of this namespace [default: all]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,

    /// For how long they stand down, from now on by the server's clock; 24h at most
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = lasting)]
    lasts: Duration,

    /// How long to wait until they lead nothing; 0 is without a limit
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    timeout: Duration,

    /// Let them be elected again
    #[arg(long)]
    undo: bool,

    /// With `server`, have the server check the changes and keep none; nothing is waited for
    #[arg(long, value_enum, default_value_t = DryRun::None)]
    dry_run: DryRun,

    #[command(flatten)]
    client: ClientArgs,
}

/// The period of the questions who leads.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs the sub-command.
pub(super) async fn run(args: DrainArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.client).await?;
    let node = args.node.as_str();
    is_known(&cluster, node).await?;
    let namespace = args.namespace.as_deref();
    let query = format!("&fieldSelector=spec.nodeName%3D{node}");
    let mut pods = list_pods(&cluster, namespace, &query).await?;
    pods.retain(|pod| pod.spec.node_name == node && !pod.has_ended());
    let objects = cluster::list(&cluster, namespace).await?;
    let candidates = on_node(&objects, &pods);
    if candidates.is_empty() {
        say(&format!("node/{node} has no candidate"))?;
        return Ok(ExitCode::SUCCESS);
    }
    annotate(&cluster, &args, &candidates).await?;
    if args.undo || args.dry_run == DryRun::Server {
        return Ok(ExitCode::SUCCESS);
    }
    let all = candidates.len();
    lead_nothing(&cluster, &args, &candidates).await?;
    say(&format!(
        "node/{node} drained: its candidates, {all}, lead nothing"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a node that does not exist. An account that may not read nodes is not held up.
async fn is_known(cluster: &Cluster, node: &str) -> anyhow::Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if node.is_empty() || !node.chars().all(fits) {
        bail!("use {node:?}: no node can have that name");
    }
    let target = Target {
        verb: Verb::Get,
        resource: "nodes".into(),
        namespace: None,
        name: Some(node.into()),
    };
    let path = format!("/api/v1/nodes/{node}");
    let read: Result<Value, RequestError> = cluster.request(target, &path, None).await;
    match read {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(403) => Ok(()),
        Err(error) if error.code() == Some(404) => bail!("find node {node}"),
        Err(error) => Err(error.into()),
    }
}

/// The candidates of these Pods, by namespace and name, with the lease that each names.
fn on_node(objects: &ListedObjects, pods: &[Pod]) -> BTreeMap<LeaseKey, LeaseKey> {
    let mut by_namespace: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        let pods = by_namespace.entry(&pod.metadata.namespace).or_default();
        pods.push(pod);
    }
    let is_here = |candidate: &&LeaseCandidate| {
        let namespace = candidate.metadata.namespace.as_deref().unwrap_or_default();
        let mut pods = by_namespace.get(namespace).into_iter().flatten();
        pods.any(|pod| pod.is_author(candidate) || pod.shares_host(candidate))
    };
    let candidates = objects.candidates.iter().filter(is_here);
    let keys = candidates.map(|candidate| {
        let name = candidate.metadata.name.as_deref().unwrap_or_default();
        let lease = candidate.lease_key();
        (LeaseKey::new(&*lease.namespace, name), lease)
    });
    keys.collect()
}

/// Writes the annotation into each of them. One that has ended meanwhile leads nothing.
async fn annotate(
    cluster: &Cluster,
    args: &DrainArgs,
    candidates: &BTreeMap<LeaseKey, LeaseKey>,
) -> anyhow::Result<()> {
    let kind = CandidateKind::of(cluster).await?;
    let until = Rfc3339(until(cluster, args.lasts).await?).to_string();
    let value = Some(until.as_str()).filter(|_| !args.undo);
    let done = match args.undo {
        true => "may be elected again".to_owned(),
        false => format!("stands down until {until}"),
    };
    let dry = match args.dry_run {
        DryRun::None => "",
        DryRun::Server => " (server dry run)",
    };
    for candidate in candidates.keys() {
        let object = kind.named(&candidate.namespace, &candidate.name)?;
        let name = annotation::STAND_DOWN;
        if object
            .change(cluster, name, value, args.dry_run)
            .await?
            .is_some()
        {
            say(&format!("{candidate} {done}{dry}"))?;
        }
    }
    Ok(())
}

/// Waits until none of the candidates leads its lease.
async fn lead_nothing(
    cluster: &Cluster,
    args: &DrainArgs,
    candidates: &BTreeMap<LeaseKey, LeaseKey>,
) -> anyhow::Result<()> {
    let deadline = Some(args.timeout).filter(|timeout| !timeout.is_zero());
    let deadline = deadline.map(|timeout| Instant::now() + timeout);
    let mut led: BTreeMap<LeaseKey, LeaseKey> = BTreeMap::new();
    loop {
        let leading = leading(cluster, candidates).await?;
        for (lease, holder) in &led {
            if !leading.contains_key(lease) {
                say(&format!("{lease} is led by {} no more", holder.name))?;
            }
        }
        if leading.is_empty() {
            return Ok(());
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            let still = still_leading(cluster, args, &leading).await?;
            bail!("drain node {} in {:?}: {still}", args.node, args.timeout);
        }
        led = leading;
        sleep(LOOK_EVERY).await;
    }
}

/// The leases that one of the candidates leads, or is granted, each with that candidate.
async fn leading(
    cluster: &Cluster,
    candidates: &BTreeMap<LeaseKey, LeaseKey>,
) -> anyhow::Result<BTreeMap<LeaseKey, LeaseKey>> {
    let now = present();
    let mut leading = BTreeMap::new();
    for key in candidates.values().collect::<BTreeSet<_>>() {
        let object = lease_at(&key.namespace, &key.name)?;
        let Some(lease) = object.find::<Lease>(cluster).await? else {
            continue;
        };
        let Some(holder) = lease.spec.holder_identity.as_deref() else {
            continue;
        };
        let holder = LeaseKey::new(&*key.namespace, holder);
        if candidates.get(&holder) == Some(key) && !is_over(&lease, now) {
            leading.insert(key.clone(), holder);
        }
    }
    Ok(leading)
}

/// True once the record of a Lease has run out: its holder has ended without a word.
fn is_over(lease: &Lease, now: Timestamp) -> bool {
    let spec = &lease.spec;
    let Some((renewed, seconds)) = spec.renew_time.zip(spec.lease_duration_seconds) else {
        return false;
    };
    let micros = i64::from(seconds).saturating_mul(1_000_000);
    renewed.as_micros().saturating_add(micros) <= now.as_micros()
}

/// The leases that are still led, each with the reason.
async fn still_leading(
    cluster: &Cluster,
    args: &DrainArgs,
    leading: &BTreeMap<LeaseKey, LeaseKey>,
) -> anyhow::Result<String> {
    let listed = cluster::list(cluster, args.namespace.as_deref()).await?;
    let mut rows = rows(&listed.collect(LeaseChoice::Elected, Vec::new()), present());
    rows.retain(|row| leading.contains_key(&row_key(row)));
    let lines = rows.iter().map(|row| {
        let why = match row.next.as_str() {
            "" => row.why.clone(),
            next => format!("asked to make room for {next}"),
        };
        format!(
            "{}/{} is led by {} ({why})",
            row.namespace, row.lease, row.holder
        )
    });
    Ok(lines.collect::<Vec<_>>().join("; "))
}

fn row_key(row: &StatusRow) -> LeaseKey {
    LeaseKey::new(row.namespace.as_str(), row.lease.as_str())
}

fn say(line: &str) -> anyhow::Result<()> {
    output::print(&format!("{}\n", printable(line))).context("print the result")
}
