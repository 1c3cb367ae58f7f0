//! A process that does guarded operations while it leads, or always: the subject of the fault matrix.
//!
//! With `--single` and with `--command` it takes part in no election and never asks. Otherwise it asks its guard right
//! before each operation, or with `--ignore-stop` never.

use std::convert::Infallible;
use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use elector_candidate::{Candidate, Config, Leadership, shutdown_signal};
use elector_runtime::{ClientArgs, connect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

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
    #[arg(long, required_unless_present_any = ["single", "command"])]
    kubeconfig: Option<PathBuf>,
    #[arg(long, default_value = "default")]
    namespace: String,
    #[arg(long, default_value = "work")]
    lease: String,
    #[arg(long, default_value = "single")]
    name: String,
}

/// The interval of its work.
const PERIOD: Duration = Duration::from_millis(50);

/// The time for which a command that traps SIGTERM goes on.
const TRAPPED: Duration = Duration::from_secs(4);

/// The longest time of an operation: less than the effect grace of 5 s.
const PATIENCE: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<()> {
    let args = GuardedArgs::parse();
    let register = args
        .register
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .context("--register is not of the form http://ADDRESS/PATH")?;
    let address = register.0.parse().context("--register has no address")?;
    let path = register.1.to_owned();
    let client = move |period| RegisterClient {
        address,
        path: path.clone(),
        period,
        connection: None,
    };
    if args.single {
        client(1).work_always(0).await;
    }
    if args.command {
        let token = environment_number("ELECTOR_TOKEN")?;
        let terminated = terminated(args.trap_sigterm)?;
        tokio::select! {
            biased;
            () = terminated => {}
            () = client(token).work_always(token) => {}
        }
        return Ok(());
    }
    let mut arguments = ClientArgs::default();
    arguments.kubeconfig = args.kubeconfig;
    let cluster = connect(&arguments).await?;
    let config = match (args.plain, args.as_client_go) {
        (true, _) => Config::plain(args.lease),
        (_, true) => Config::as_client_go(args.lease),
        _ => Config::new(args.lease, "1.0.0"),
    };
    let config = config.namespace(args.namespace).identity(args.name);
    let candidate = Candidate::new(config, cluster.into())?;
    let work = move |leadership: Leadership| {
        // No two terms have the same token, while the numbers of terms begin anew when the Lease is deleted.
        let token = leadership.token();
        let clients = [(); 2].map(|()| client(token));
        async move {
            let [client, other] = clients;
            if args.ignore_stop {
                leadership.spawn(client.work_always(token));
                leadership.spawn(other.work_always(token));
                std::future::pending::<()>().await;
            } else {
                client.work_while(&leadership).await;
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

/// Where the work of one period is done.
struct RegisterClient {
    address: SocketAddr,
    path: String,
    period: u64,
    connection: Option<TcpStream>,
}

// === impl RegisterClient ===

impl RegisterClient {
    async fn work_always(mut self, token: u64) {
        let mut ticks = ticks();
        loop {
            ticks.tick().await;
            self.operate(token, || true).await;
        }
    }

    async fn work_while(mut self, leadership: &Leadership) {
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                _ = leadership.stopped() => return,
                _ = ticks.tick() => {}
            }
            let token = leadership.token();
            self.operate(token, || leadership.is_leader()).await;
        }
    }

    /// One operation, if it may be done at the very moment when everything is ready for it. What fails is left, as
    /// the next one comes soon.
    async fn operate(&mut self, token: u64, may: impl Fn() -> bool) {
        if !matches!(timeout(PATIENCE, self.post(token, may)).await, Ok(Ok(()))) {
            self.connection = None;
        }
    }

    async fn post(&mut self, token: u64, may: impl Fn() -> bool) -> Result<()> {
        let Self {
            address,
            path,
            period,
            ..
        } = self;
        let request = format!(
            "POST /{path}/{period}/{token} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"
        );
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let connection = TcpStream::connect(*address).await?;
                connection.set_nodelay(true)?;
                none.insert(connection)
            }
        };
        // Nothing is awaited between this and the send.
        if !may() {
            return Ok(());
        }
        connection.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if connection.read_buf(&mut answer).await? == 0 {
                anyhow::bail!("the register closed the connection");
            }
        }
        Ok(())
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}
