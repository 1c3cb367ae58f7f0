//! `elector run`: the elector as a process, with its flags and its end.

mod endpoints;
mod leader_elect;
mod timing;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use elector::{BuiltinController, Config, ConfigError, Elector, Health, Metrics, Scope};
use elector_api::parse_duration;
use elector_candidate::pod_or_host_name;
use elector_runtime::{ClientArgs, LogArgs, connect, init_logging, shutdown_signal};
use tokio::runtime::Builder;
use tracing::info;

use self::endpoints::EndpointArgs;
use self::leader_elect::LeaderElectArgs;
use self::timing::TimingArgs;
use crate::output;

/// Elects a leader for every lease that a candidate names, until SIGTERM or SIGINT
///
/// Any number of electors may run at the same time; with --leader-elect one of them acts and the others stand by.
/// Durations are Go's: 15s, 1m30s, 250ms.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    elections: ElectionArgs,
    #[command(flatten)]
    endpoints: EndpointArgs,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    logs: LogArgs,
}

/// What becomes the configuration of an elector.
#[derive(Args, Debug)]
struct ElectionArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    leader_elect: LeaderElectArgs,
    #[command(flatten)]
    timing: TimingArgs,
}

/// What to elect for, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Elections")]
struct ScopeArgs {
    /// Serve this namespace only; may be given several times [default: all but kube-system and kube-node-lease]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Vec<String>,

    /// Serve kube-system as well, where the control plane has its leases
    #[arg(long)]
    system_namespaces: bool,

    /// Take the lock of the elector that is built into kube-apiserver, so that it stands by, and elect and collect
    /// dead candidates in its place; implies --system-namespaces. Without this, leases of its strategy are left to it
    /// while it is alive
    #[arg(long)]
    replace_builtin: bool,

    #[arg(long, hide = true, num_args = 0, default_missing_value = "")]
    #[arg(value_parser = UnknownArgumentValueParser::suggest(RESERVE_WENT))]
    reserve: Option<String>,

    /// How many leases may be written at the same time, at least 1; where more than one namespace is served, those of one
    /// are at most half of them
    #[arg(long, value_name = "N", default_value = "32")]
    concurrent_elections: NonZeroUsize,

    /// How long a lease waits after its first failed write, doubled with each further one. From 1ms to --retry-max
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = parse_duration)]
    retry_base: Duration,

    /// The longest wait after failed writes. From 1ms to 1m
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    retry_max: Duration,
}

/// The reason why `--reserve` is refused.
const RESERVE_WENT: &str = "it was removed: it served only client-go leaders where the gate CoordinatedLeaderElection is off; \
                            with the gate on they are asked to make room";
/// Exit code for values that cannot be used, as clap has it for flags that cannot be read.
const USAGE: u8 = 2;

/// Runs the sub-command until it is asked to stop.
pub(crate) fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let RunArgs {
        elections,
        endpoints,
        client,
        logs,
    } = args;
    let config = match Config::try_from(elections) {
        Ok(config) => config,
        Err(error) => {
            output::print_error(format_args!("failed to start: {error}"));
            return Ok(ExitCode::from(USAGE));
        }
    };
    init_logging(&logs)?;
    // Where a connection has another thread than the loop, each event wakes both: half of all processor time.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let (health, metrics) = (Health::default(), endpoints.metrics());
    let _endpoints = runtime.block_on(endpoints.serve(&health, &metrics))?;
    runtime.block_on(elect(config, health, metrics, &client))?;
    // Connections are all that is left.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(ExitCode::SUCCESS)
}

async fn elect(
    config: Config,
    health: Health,
    metrics: Metrics,
    client: &ClientArgs,
) -> anyhow::Result<()> {
    let signal = shutdown_signal().context("catch signals")?;
    let cluster = connect(client).await?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        server = cluster.url(),
        "elector starts"
    );
    let elector = Elector::new(config, cluster)?
        .with_health(health)
        .with_metrics(metrics);
    let shutdown = async {
        let signal = signal.await;
        info!(%signal, "shutting down");
    };
    elector.run(shutdown).await;
    info!("elector stopped");
    Ok(())
}

// === impl Config ===

impl TryFrom<ElectionArgs> for Config {
    type Error = ConfigError;

    fn try_from(args: ElectionArgs) -> Result<Self, ConfigError> {
        let scope = args.scope;
        let namespaces: BTreeSet<Arc<str>> = scope.namespace.into_iter().map(Arc::from).collect();
        let config = Self {
            timing: args.timing.into(),
            scope: if namespaces.is_empty() {
                Scope::AllNamespaces
            } else {
                Scope::Namespaces(namespaces)
            },
            system_namespaces: scope.system_namespaces,
            builtin: if scope.replace_builtin {
                BuiltinController::Replace {
                    host: pod_or_host_name(),
                }
            } else {
                BuiltinController::Respect
            },
            leader_election: args.leader_elect.election(pod_or_host_name),
            event_host: Some(pod_or_host_name()),
            concurrent_elections: scope.concurrent_elections,
            retry_base: scope.retry_base,
            retry_max: scope.retry_max,
        };
        config.validate()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use elector::LeaderElection;
    use elector_protocol::LeaseKey;

    use super::*;

    #[derive(Parser)]
    struct RunCli {
        #[command(flatten)]
        args: RunArgs,
    }

    fn config(flags: &[&str]) -> Result<Config, String> {
        let line = ["elector"].iter().chain(flags);
        let program = RunCli::try_parse_from(line).map_err(|error| error.to_string())?;
        Config::try_from(program.args.elections).map_err(|error| error.to_string())
    }

    #[test]
    fn without_flags_it_is_the_default() {
        let expected = Config {
            event_host: Some(pod_or_host_name()),
            ..Config::default()
        };
        assert_eq!(config(&[]).unwrap(), expected);
    }

    #[test]
    fn each_flag_reaches_its_constant() {
        let defaults = config(&[]).unwrap();
        for flag in [
            "--accept-window=7s",
            "--accept-window-max=70s",
            "--ack-window=3s",
            "--ack-window-unmarked=4s",
            "--fresh=6s",
            "--max-lease-duration=45s",
            "--absent-lease-grace=0s",
            "--passed-over=2m",
            "--passed-over-max=20m",
            "--re-ping-after=40s",
            "--ping-interval=16m",
            "--candidate-validity=32m",
            "--preemptions=4",
            "--preemption-window=11m",
            "--retry-base=6ms",
            "--retry-max=6s",
            "--concurrent-elections=3",
        ] {
            assert_ne!(config(&[flag]).unwrap(), defaults, "{flag}");
        }
        let set = config(&["--max-lease-duration=45s", "--namespace=a", "-nb"]).unwrap();
        assert_eq!(set.timing.max_lease_duration, Duration::from_secs(45));
        let expected = Scope::Namespaces(["a".into(), "b".into()].into());
        assert_eq!(set.scope, expected);
    }

    #[test]
    fn one_of_the_electors_acts_on_request() {
        let election = |flags: &[&str]| config(flags).unwrap().leader_election;
        for off in [&[][..], &["--leader-elect=false"]] {
            assert_eq!(election(off), None);
        }
        let defaults = election(&["--leader-elect"]).unwrap();
        assert!(!defaults.host.is_empty());
        assert_eq!(
            election(&["--leader-elect=true"]).map(|election| election.lease),
            Some(defaults.lease.clone())
        );
        assert_eq!(
            defaults,
            LeaderElection {
                lease: defaults.lease.clone(),
                ..LeaderElection::new(defaults.host.clone())
            }
        );
        let set = election(&[
            "--leader-elect",
            "--leader-elect-lease-duration=60s",
            "--leader-elect-renew-deadline=40s",
            "--leader-elect-retry-period=5s",
            "--leader-elect-resource-name=mine",
            "--leader-elect-resource-namespace=here",
        ]);
        let expected = LeaderElection {
            lease: LeaseKey::new("here", "mine"),
            host: defaults.host,
            lease_duration: Duration::from_secs(60),
            renew_deadline: Duration::from_secs(40),
            retry_period: Duration::from_secs(5),
        };
        assert_eq!(set, Some(expected));
    }

    #[test]
    fn the_builtin_is_replaced_on_request() {
        let replaced = config(&["--replace-builtin", "--namespace", "kube-system"]).unwrap();
        let BuiltinController::Replace { host } = replaced.builtin else {
            panic!("it is to be replaced");
        };
        assert!(!host.is_empty());
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (flags, text) in [
            (
                &["--accept-window=500ms"][..],
                "--accept-window is 500ms: must be from 1s to 60s",
            ),
            (
                &["--accept-window=15"][..],
                "must be a duration such as 15s, 1m30s or 250ms",
            ),
            (
                &["--leader-elect", "--leader-elect-renew-deadline=13s"][..],
                "--leader-elect-renew-deadline is 13s: must be at most 4/5 of lease-duration",
            ),
            (
                &["--concurrent-elections=0"][..],
                "number would be zero for non-zero type",
            ),
            (
                &["--metrics-bind-address=127.0.0.1"][..],
                "must be 0 for off, PORT for that port of 127.0.0.1, :PORT for all interfaces, or IP:PORT",
            ),
            (
                &["--namespace=kube-system"][..],
                "needs --system-namespaces or --replace-builtin",
            ),
            (
                &["--reserve"],
                "unexpected argument '--reserve' found\n\n  tip: it was removed: it served only client-go leaders",
            ),
        ] {
            let error = config(flags).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
