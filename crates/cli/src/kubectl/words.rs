//! An operator's words on a lease or on a candidate, in the annotations that electors read (R16).

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use elector_api::{
    CandidateApi, Lease, LeaseCandidate, Rfc3339, annotation, format_freeze, format_prefer,
    parse_duration,
};
use elector_protocol::{Identity, LONGEST_WORD, OperatorPreference, Timestamp};
use elector_runtime::{Cluster, connect, printable};

use super::annotation_patch::{AnnotatedObject, DryRun, WordArgs};
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
    word: WordArgs,
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
    word: WordArgs,
}

/// Ends the freeze of a lease.
#[derive(Args, Debug)]
pub(super) struct UnfreezeArgs {
    /// The lease
    lease: String,

    #[command(flatten)]
    word: WordArgs,
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
    word: WordArgs,
}

/// A word of an operator, and the text that confirms it.
struct Word<'a> {
    annotation: &'static str,
    value: Option<&'a str>,
    done: String,
    already: &'static str,
}

/// Runs `stand-down`.
///
/// # Errors
///
/// When there is no such candidate, or the server refuses the change.
pub(super) async fn stand_down(args: StandDownArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.word.client).await?;
    let object = candidate_object(&cluster, &args.word, &args.candidate).await?;
    if args.undo {
        let word = Word {
            annotation: annotation::STAND_DOWN,
            value: None,
            done: "may be elected again".to_owned(),
            already: "may be elected already",
        };
        return say(&cluster, &object, &word, args.word.dry_run).await;
    }
    let until = Rfc3339(until(&cluster, args.lasts).await?).to_string();
    let word = Word {
        annotation: annotation::STAND_DOWN,
        value: Some(&until),
        done: format!("stands down until {until}"),
        already: "stands down until then already",
    };
    say(&cluster, &object, &word, args.word.dry_run).await
}

/// Runs `freeze`.
///
/// # Errors
///
/// When there is no such Lease, or the server refuses the change.
pub(super) async fn freeze(args: FreezeArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.word.client).await?;
    let until = until(&cluster, args.lasts).await?;
    let word = Word {
        annotation: annotation::FREEZE,
        value: Some(&format_freeze(until)),
        done: format!("frozen until {}", Rfc3339(until)),
        already: "frozen until then already",
    };
    let object = lease_object(&cluster, &args.word, &args.lease)?;
    say(&cluster, &object, &word, args.word.dry_run).await
}

/// Runs `unfreeze`.
///
/// # Errors
///
/// As [`freeze`].
pub(super) async fn unfreeze(args: UnfreezeArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.word.client).await?;
    let word = Word {
        annotation: annotation::FREEZE,
        value: None,
        done: "not frozen any more".to_owned(),
        already: "not frozen",
    };
    let object = lease_object(&cluster, &args.word, &args.lease)?;
    say(&cluster, &object, &word, args.word.dry_run).await
}

/// Runs `prefer`.
///
/// # Errors
///
/// As [`freeze`], and when the candidate is none of this lease.
pub(super) async fn prefer(args: PreferArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.word.client).await?;
    let object = lease_object(&cluster, &args.word, &args.lease)?;
    let Some(name) = args.candidate else {
        let word = Word {
            annotation: annotation::PREFER,
            value: None,
            done: "prefers no candidate any more".to_owned(),
            already: "prefers no candidate",
        };
        return say(&cluster, &object, &word, args.word.dry_run).await;
    };
    let found = candidate_object(&cluster, &args.word, &name).await?;
    let candidate: LeaseCandidate = found.read(&cluster).await?;
    let lease = &candidate.spec.lease_name;
    ensure!(
        *lease == args.lease,
        "prefer {name}: it is a candidate for lease {lease}, not for {}",
        args.lease
    );
    let until = until(&cluster, args.lasts).await?;
    let candidate = Identity::new(name.as_str()).context("use an empty name")?;
    let preference = OperatorPreference { candidate, until };
    let word = Word {
        annotation: annotation::PREFER,
        value: Some(&format_prefer(&preference)),
        done: format!("prefers {name} until {}", Rfc3339(until)),
        already: "prefers it until then already",
    };
    say(&cluster, &object, &word, args.word.dry_run).await
}

/// Writes the word, and confirms it as kubectl does.
async fn say(
    cluster: &Cluster,
    object: &AnnotatedObject,
    word: &Word<'_>,
    dry_run: DryRun,
) -> anyhow::Result<ExitCode> {
    let change = (word.annotation, word.value);
    let done = match object.annotate(cluster, change, dry_run).await? {
        true => word.done.as_str(),
        false => word.already,
    };
    let dry = match dry_run {
        DryRun::None => "",
        DryRun::Server => " (server dry run)",
    };
    let line = format!("{} {done}{dry}", object.shown());
    output::print(&format!("{}\n", printable(&line))).context("print the result")?;
    Ok(ExitCode::SUCCESS)
}

fn lease_object(
    cluster: &Cluster,
    args: &WordArgs,
    lease: &str,
) -> anyhow::Result<AnnotatedObject> {
    AnnotatedObject::new(
        Lease::API_VERSION,
        "leases.coordination.k8s.io",
        (args.namespace(cluster), lease),
    )
}

/// The candidate of that name, of the API that the cluster serves.
async fn candidate_object(
    cluster: &Cluster,
    args: &WordArgs,
    name: &str,
) -> anyhow::Result<AnnotatedObject> {
    let api = cluster.candidate_api().await?;
    let resource = match api {
        CandidateApi::Elector => "leasecandidates.elector.dev",
        _ => "leasecandidates.coordination.k8s.io",
    };
    AnnotatedObject::new(api.api_version(), resource, (args.namespace(cluster), name))
}

/// The end of a time that begins now by the server's clock, or by that of this machine where the server does not tell.
async fn until(cluster: &Cluster, lasts: Duration) -> anyhow::Result<Timestamp> {
    let now = cluster.server_time().await?.unwrap_or_else(present);
    let micros = i64::try_from(lasts.as_micros()).unwrap_or(i64::MAX);
    let until = now.as_micros().saturating_add(micros);
    Timestamp::from_micros(until).context("use --for: it ends after the year 9999")
}

/// A duration of a second at least, and of no more than electors heed.
fn lasting(text: &str) -> Result<Duration, String> {
    let lasts = parse_duration(text).map_err(|error| error.to_string())?;
    if lasts < Duration::from_secs(1) {
        return Err("must be at least 1s".to_owned());
    }
    if lasts > LONGEST_WORD {
        return Err("must be at most 24h, since electors ignore what ends later".to_owned());
    }
    Ok(lasts)
}
