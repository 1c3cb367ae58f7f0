//! An operator's overrides, in the annotations that electors read (R16).

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use elector_api::{
    CandidateApi, Lease, LeaseCandidate, Rfc3339, annotation, format_freeze, format_prefer,
    parse_duration,
};
use elector_protocol::{Identity, LONGEST_OVERRIDE, OperatorPreference, Timestamp};
use elector_runtime::{Cluster, connect, printable};

use super::annotation_patch::{AnnotatedObject, DryRun, OverrideArgs};
use crate::explain::present;
use crate::output;

/// Has a candidate stand down: it is not elected, and makes room where it leads.
///
/// Others take over as in any hand-over; where there is no other, it leads on. A process that starts anew registers a new
/// candidate, of which nothing is said.
#[derive(Args, Debug)]
pub(super) struct StandDownArgs {
    /// The candidate
    candidate: String,

    /// For how long, from now on by the server's clock; 24h at most
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = lasting)]
    lasts: Duration,

    /// Let it be elected again
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    at: OverrideArgs,
}

/// Freezes a lease: its leader is not asked to make room before a time.
///
/// A leader that dies or releases the lease is replaced all the same.
#[derive(Args, Debug)]
pub(super) struct FreezeArgs {
    /// The lease
    lease: String,

    /// For how long, from now on by the server's clock; 24h at most
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = lasting)]
    lasts: Duration,

    #[command(flatten)]
    at: OverrideArgs,
}

/// Ends the freeze of a lease.
#[derive(Args, Debug)]
pub(super) struct UnfreezeArgs {
    /// The lease
    lease: String,

    #[command(flatten)]
    at: OverrideArgs,
}

/// Prefers a candidate of a lease to all others before a time.
///
/// It has to answer its ping and to accept like any other. When the time is over, the best candidate leads again.
#[derive(Args, Debug)]
pub(super) struct PreferArgs {
    /// The lease
    lease: String,

    /// The candidate
    #[arg(required_unless_present = "undo", conflicts_with = "undo")]
    candidate: Option<String>,

    /// For how long, from now on by the server's clock; 24h at most
    #[arg(long = "for", value_name = "DURATION", default_value = "10m", value_parser = lasting)]
    lasts: Duration,

    /// Prefer no candidate any more
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    at: OverrideArgs,
}

/// A change of an annotation, and the texts that confirm it.
struct AnnotationChange {
    annotation: &'static str,
    value: Option<String>,
    done: String,
    already: &'static str,
}

/// The LeaseCandidates of a cluster, as objects that have annotations.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateKind(CandidateApi);

/// Runs `stand-down`.
pub(super) async fn stand_down(args: StandDownArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.at.client).await?;
    let object = candidate_object(&cluster, &args.at, &args.candidate).await?;
    let (value, done, already) = if args.undo {
        let done = "may be elected again".to_owned();
        (None, done, "may be elected already")
    } else {
        let until = Rfc3339(until(&cluster, args.lasts).await?).to_string();
        let done = format!("stands down until {until}");
        (Some(until), done, "stands down until then already")
    };
    let change = AnnotationChange {
        annotation: annotation::STAND_DOWN,
        value,
        done,
        already,
    };
    change.write(&cluster, &object, args.at.dry_run).await
}

/// Runs `freeze`.
pub(super) async fn freeze(args: FreezeArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.at.client).await?;
    let until = until(&cluster, args.lasts).await?;
    let change = AnnotationChange {
        annotation: annotation::FREEZE,
        value: Some(format_freeze(until)),
        done: format!("frozen until {}", Rfc3339(until)),
        already: "frozen until then already",
    };
    let object = lease_object(&cluster, &args.at, &args.lease)?;
    change.write(&cluster, &object, args.at.dry_run).await
}

/// Runs `unfreeze`.
pub(super) async fn unfreeze(args: UnfreezeArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.at.client).await?;
    let change = AnnotationChange {
        annotation: annotation::FREEZE,
        value: None,
        done: "not frozen any more".to_owned(),
        already: "not frozen",
    };
    let object = lease_object(&cluster, &args.at, &args.lease)?;
    change.write(&cluster, &object, args.at.dry_run).await
}

/// Runs `prefer`.
pub(super) async fn prefer(args: PreferArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.at.client).await?;
    let object = lease_object(&cluster, &args.at, &args.lease)?;
    let (value, done, already) = match &args.candidate {
        None => {
            let done = "prefers no candidate any more".to_owned();
            (None, done, "prefers no candidate")
        }
        Some(name) => {
            let preference = preference(&cluster, &args, name).await?;
            let done = format!("prefers {name} until {}", Rfc3339(preference.until));
            let value = format_prefer(&preference);
            (Some(value), done, "prefers it until then already")
        }
    };
    let change = AnnotationChange {
        annotation: annotation::PREFER,
        value,
        done,
        already,
    };
    change.write(&cluster, &object, args.at.dry_run).await
}

/// The preference for the candidate of that name, which has to be one of the lease.
async fn preference(
    cluster: &Cluster,
    args: &PreferArgs,
    name: &str,
) -> anyhow::Result<OperatorPreference> {
    let object = candidate_object(cluster, &args.at, name).await?;
    let candidate: LeaseCandidate = object.read(cluster).await?;
    let lease = &candidate.spec.lease_name;
    ensure!(
        *lease == args.lease,
        "prefer {name}: it is a candidate for lease {lease}, not for {}",
        args.lease
    );
    Ok(OperatorPreference {
        until: until(cluster, args.lasts).await?,
        candidate: Identity::new(name).context("use an empty name")?,
    })
}

// === impl AnnotationChange ===

impl AnnotationChange {
    /// Writes the annotation, and confirms it as kubectl does.
    async fn write(
        &self,
        cluster: &Cluster,
        object: &AnnotatedObject,
        dry_run: DryRun,
    ) -> anyhow::Result<ExitCode> {
        let (name, value) = (self.annotation, self.value.as_deref());
        let done = match object.annotate(cluster, name, value, dry_run).await? {
            true => self.done.as_str(),
            false => self.already,
        };
        let dry = match dry_run {
            DryRun::None => "",
            DryRun::Server => " (server dry run)",
        };
        let line = format!("{} {done}{dry}", object.shown());
        output::print(&format!("{}\n", printable(&line))).context("print the result")?;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl CandidateKind ===

impl CandidateKind {
    /// Those of the API that the cluster serves.
    pub(super) async fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        Ok(Self(cluster.candidate_api().await?))
    }

    /// The one of that name.
    pub(super) fn named(self, namespace: &str, name: &str) -> anyhow::Result<AnnotatedObject> {
        let resource = match self.0 {
            CandidateApi::Elector => "leasecandidates.elector.dev",
            _ => "leasecandidates.coordination.k8s.io",
        };
        AnnotatedObject::new(self.0.api_version(), resource, namespace, name)
    }
}

fn lease_object(
    cluster: &Cluster,
    args: &OverrideArgs,
    lease: &str,
) -> anyhow::Result<AnnotatedObject> {
    lease_at(args.namespace(cluster), lease)
}

/// The Lease of that name.
pub(super) fn lease_at(namespace: &str, name: &str) -> anyhow::Result<AnnotatedObject> {
    AnnotatedObject::new(
        Lease::API_VERSION,
        "leases.coordination.k8s.io",
        namespace,
        name,
    )
}

/// The candidate of that name, of the API that the cluster serves.
async fn candidate_object(
    cluster: &Cluster,
    args: &OverrideArgs,
    name: &str,
) -> anyhow::Result<AnnotatedObject> {
    CandidateKind::of(cluster)
        .await?
        .named(args.namespace(cluster), name)
}

/// The end of a time that begins now by the server's clock, or by that of this machine where the server does not tell.
pub(super) async fn until(cluster: &Cluster, lasts: Duration) -> anyhow::Result<Timestamp> {
    let now = cluster.server_time().await?.unwrap_or_else(present);
    let micros = i64::try_from(lasts.as_micros()).unwrap_or(i64::MAX);
    let until = now.as_micros().saturating_add(micros);
    Timestamp::from_micros(until).context("use --for: it ends after the year 9999")
}

/// A duration of a second at least, and of no more than electors heed.
pub(super) fn lasting(text: &str) -> Result<Duration, String> {
    let lasts = parse_duration(text).map_err(|error| error.to_string())?;
    if lasts < Duration::from_secs(1) {
        return Err("must be at least 1s".to_owned());
    }
    if lasts > LONGEST_OVERRIDE {
        return Err("must be at most 24h, since electors ignore what ends later".to_owned());
    }
    Ok(lasts)
}
