//! `elector dev`: an API server, the elector and a few candidates in one process.

mod kubeconfig;
mod narration;
mod participants;
mod reporter;
mod scenario;

use std::env;
use std::io::{self, Stdout};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use elector_apiserver::{ApiServer, Config};
use elector_runtime::{LogArgs, LogFormat, Signal, init_logging, shutdown_signal};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::kubeconfig::KubeconfigFile;
use self::narration::Narration;
use self::scenario::DemoScenario;
use crate::output;

/// Shows elections on this machine alone: an API server, the elector and a few candidates in one process
///
/// The API server keeps Leases, LeaseCandidates, Namespaces and Events in memory and listens on 127.0.0.1 without TLS
/// or credentials: for trying out, never for use. Candidates of different versions come, crash and go, and the
/// terminal tells who leads and why. Afterwards all of them stay, to be looked at and interfered with by kubectl,
/// until Ctrl-C. A crash here means that a candidate's tasks and connections are dropped in the middle of what they
/// do, without a release; a kill of a whole process is `cargo xtask demo --real`'s to show.
#[derive(Args, Debug)]
pub(crate) struct DevArgs {
    /// End when the scenario is over, with exit code 0 if it went as it should
    #[arg(long)]
    once: bool,

    /// No colours; also with $NO_COLOR, and where standard output is no terminal
    #[arg(long)]
    plain: bool,

    /// The API server only, without elector and candidates
    #[arg(long, conflicts_with = "once")]
    serve_only: bool,

    /// Port of the API server on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Where to write the kubeconfig, which is removed at the end. A file that came from elsewhere is not overwritten
    /// [default: in a temporary folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,

    /// Feature gate CoordinatedLeaderElection: `on`, and the API server keeps spec.strategy and spec.preferredHolder
    /// of a Lease; `off`, and they travel as annotations
    #[arg(
        long,
        value_enum,
        default_value = "on",
        value_name = "on|off",
        hide_possible_values = true
    )]
    gate: Switch,

    /// Verbosity of the log on standard error: 0 warnings, 2 leadership changes and the like, 4 every decision, 6 every
    /// request and event. $RUST_LOG overrides it
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 0)]
    verbosity: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// The API server, and the file that says where it is.
struct DevServer {
    url: String,
    kubeconfig: KubeconfigFile,
    /// Ends with this value.
    serving: JoinSet<io::Result<()>>,
    close: oneshot::Sender<()>,
}

/// Runs the sub-command until its scenario is over, or until it is asked to stop.
pub(crate) fn run(args: DevArgs) -> anyhow::Result<ExitCode> {
    init_logging(&LogArgs {
        logging_format: LogFormat::Text,
        verbosity: args.verbosity,
    })?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start the runtime")?;
    let done = runtime.block_on(run_demo(args));
    // Connections are all that is left.
    runtime.shutdown_timeout(Duration::from_millis(100));
    done.or_else(|error| match error.downcast_ref::<io::Error>() {
        // The reader of standard output has gone.
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        _ => Err(error),
    })
}

async fn run_demo(args: DevArgs) -> anyhow::Result<ExitCode> {
    let mut signal = pin!(shutdown_signal().context("catch signals")?);
    let mut narration = Narration::new(io::stdout(), args.colour());
    let server = DevServer::open(&args).await?;
    let path = server.kubeconfig.path().to_owned();
    narration.say(
        Instant::now(),
        format_args!("an API server with an empty store is up at {}", server.url),
    )?;
    if args.serve_only {
        narration.explain(format_args!(
            "kubectl --kubeconfig {} get leases",
            path.display()
        ))?;
        let signal = signal.await;
        narration.say(Instant::now(), format_args!("{signal}: that is all"))?;
        server.close().await?;
        return Ok(ExitCode::SUCCESS);
    }
    narration.explain(format_args!(
        "look on with: kubectl --kubeconfig {} get leases -w",
        path.display()
    ))?;
    let mut scenario = DemoScenario::new(narration, path);
    let outcome = tokio::select! {
        biased;
        signal = &mut signal => Ok(Some(signal)),
        outcome = run_scenario(&mut scenario, args.once) => outcome.map(|()| None),
    };
    let ended = scenario
        .leave(outcome.as_ref().ok().copied().flatten())
        .await;
    server.close().await?;
    let interrupted = outcome?;
    ended?;
    Ok(match interrupted {
        // The scenario was cut short.
        Some(signal) if args.once => exit_code(signal),
        _ => ExitCode::SUCCESS,
    })
}

/// The scenario, and unless it is to run once, all that happens afterwards.
async fn run_scenario(scenario: &mut DemoScenario<Stdout>, once: bool) -> anyhow::Result<()> {
    scenario.run().await?;
    if once {
        return Ok(());
    }
    let program = env::args_os().next().unwrap_or_else(|| "elector".into());
    scenario.run_on(&program.to_string_lossy()).await
}

fn exit_code(signal: Signal) -> ExitCode {
    u8::try_from(signal.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

// === impl DevArgs ===

impl DevArgs {
    fn colour(&self) -> bool {
        !self.plain && output::is_coloured()
    }
}

// === impl DevServer ===

impl DevServer {
    /// Opens the port before the kubeconfig appears: a program that waits for the file can use it at once.
    async fn open(args: &DevArgs) -> anyhow::Result<Self> {
        let port = args.port.unwrap_or_default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("listen on 127.0.0.1:{port}"))?;
        let address = listener.local_addr().context("read the port")?;
        let url = format!("http://{address}");
        let kubeconfig = KubeconfigFile::write(args.kubeconfig_out.as_deref(), &url)?;
        let server = ApiServer::new(Config {
            gate: args.gate == Switch::On,
            ..Config::default()
        });
        let (close, closed) = oneshot::channel();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // An error means that the other end is gone, which says the same.
            let closed = async { closed.await.unwrap_or_default() };
            server.serve(listener, closed).await
        });
        Ok(Self {
            url,
            kubeconfig,
            serving,
            close,
        })
    }

    async fn close(mut self) -> anyhow::Result<()> {
        drop(self.close);
        while let Some(served) = self.serving.join_next().await {
            served.context("serve the API")?.context("serve the API")?;
        }
        self.kubeconfig.remove()
    }
}
