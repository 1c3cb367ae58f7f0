//! A process that does guarded operations while it leads, or always: the subject of the fault matrix.
//!
//! With `--single` and with `--command` it takes part in no election and never asks. Otherwise it asks its guard right
//! before each operation, or with `--ignore-stop` never.

use std::convert::Infallible;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use elector_candidate::{Candidate, Config, Leadership, Timing, shutdown_signal};
use elector_faults::RegisterClient;
use elector_runtime::{ClientArgs, connect};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

#[derive(Debug, Parser)]
struct GuardedArgs {
    /// Where operations go: http://ADDRESS/GROUP/CLIENT
    #[arg(long)]
    register: String,
    /// Work always, without any election
    #[arg(long)]
    single: bool,
    /// Work always, as the command of `elector candidate`, under the token that it was started with
    #[arg(long, conflicts_with = "single")]
    command: bool,
    /// As a command, go on for 4 s after SIGTERM
    #[arg(long, requires = "command")]
    trap_sigterm: bool,
    /// Work in two spawned tasks that never ask, and never return
    #[arg(long, conflicts_with_all = ["single", "command"])]
    ignore_stop: bool,
    /// Take the lease without an elector
    #[arg(long, conflicts_with_all = ["single", "command"])]
    plain: bool,
    /// The same, and a missing Lease at once
    #[arg(long, conflicts_with_all = ["single", "command", "plain"])]
    as_client_go: bool,
    /// With the timing for a slow API server
    #[arg(long, conflicts_with_all = ["single", "command"])]
    slow_server: bool,
    #[arg(long, required_unless_present_any = ["single", "command"])]
    kubeconfig: Option<PathBuf>,
    #[arg(long, default_value = "default")]
    namespace: String,
    #[arg(long, default_value = "work")]
    lease: String,
    #[arg(long, default_value = "single")]
    name: String,
}

/// The time for which a command that traps SIGTERM goes on.
const TRAPPED: Duration = Duration::from_secs(4);

#[tokio::main]
async fn main() -> Result<()> {
    let args = GuardedArgs::parse();
    let client = RegisterClient::new(&args.register, 1)?;
    if args.single {
        work_always(client, 0).await;
        return Ok(());
    }
    if args.command {
        let token = environment_number("ELECTOR_TOKEN")?;
        let terminated = terminated(args.trap_sigterm)?;
        tokio::select! {
            biased;
            () = terminated => {}
            () = work_always(client.of_period(token), token) => {}
        }
        return Ok(());
    }
    let mut arguments = ClientArgs::default();
    arguments.kubeconfig = args.kubeconfig;
    let cluster = connect(&arguments).await?;
    let lock = env::var_os("ELECTOR_INSTANCE_LOCK").context("there is no ELECTOR_INSTANCE_LOCK")?;
    let config = match (args.plain, args.as_client_go) {
        (true, _) => Config::plain(args.lease),
        (_, true) => Config::as_client_go(args.lease),
        _ => Config::new(args.lease, "1.0.0"),
    };
    let config = config.namespace(args.namespace).identity(args.name);
    let mut config = config.instance_lock(lock);
    if args.slow_server {
        config = config.timing(Timing::slow_server());
    }
    let candidate = Candidate::new(config, cluster.into())?;
    let work = move |leadership: Leadership| {
        // No two terms have the same token, while the numbers of terms begin anew when the Lease is deleted.
        let token = leadership.token();
        let clients = [(); 2].map(|()| client.of_period(token));
        async move {
            let [client, other] = clients;
            if args.ignore_stop {
                leadership.spawn(work_always(client, token));
                leadership.spawn(work_always(other, token));
                std::future::pending::<()>().await;
            } else {
                work_while(client, &leadership).await;
            }
            Ok::<(), Infallible>(())
        }
    };
    candidate.run(work, shutdown_signal()?).await?;
    Ok(())
}

/// Is done when this process has gone on for long enough after SIGTERM; never, where that ends it by itself.
fn terminated(trapped: bool) -> Result<impl Future<Output = ()>> {
    let mut signals = match trapped {
        true => Some(signal(SignalKind::terminate())?),
        false => None,
    };
    Ok(async move {
        match &mut signals {
            Some(signals) => drop(signals.recv().await),
            None => std::future::pending().await,
        }
        sleep(TRAPPED).await;
    })
}

/// A number that `elector candidate` gives to its command.
fn environment_number(variable: &str) -> Result<u64> {
    let text = env::var(variable).with_context(|| format!("failed to read {variable}"))?;
    text.parse()
        .with_context(|| format!("failed to read {variable}: {text}"))
}

async fn work_always(mut client: RegisterClient, token: u64) {
    let mut ticks = RegisterClient::ticks();
    loop {
        ticks.tick().await;
        client.operate(token, || true).await;
    }
}

async fn work_while(mut client: RegisterClient, leadership: &Leadership) {
    let mut ticks = RegisterClient::ticks();
    loop {
        tokio::select! {
            biased;
            _ = leadership.stopped() => return,
            _ = ticks.tick() => {}
        }
        let token = leadership.token();
        client.operate(token, || leadership.is_leader()).await;
    }
}
