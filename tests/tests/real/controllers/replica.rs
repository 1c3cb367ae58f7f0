//! The program of a replica: a controller of ConfigMaps under leadership, whose reconciles write the token of their term.
//!
//! It takes the command line of `elector candidate --events`, whose work is the kubeconfig for the objects. SIGUSR1 has its
//! controller panic, SIGUSR2 ends the stream of its reconciles.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_api::Rfc3339;
use elector_candidate::{
    Candidate, ClientArgs, Config, Event, LeaderGate, Leadership, Timing, kube5, shutdown_signal,
};
use elector_protocol::Timestamp;
use elector_runtime::connect;
use elector_tests::rig::{EventKind, now};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::{SHORT_DEADLINE, SHORT_LEASE};

/// The label of the objects.
pub(super) const RECONCILED: &str = "elector.dev/reconciled";

/// The first word of the command line of a replica.
pub(crate) const IS_REPLICA: &str = "candidate";

/// The time between two writes of an object.
const PACE: Duration = Duration::from_millis(200);

struct ReconcileContext {
    client: Client,
    name: String,
}

/// Runs a replica until it is asked to end.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new();
    let run = async { replicate(arguments).await };
    match runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn replicate(arguments: &[String]) -> Result<()> {
    let given = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1))
            .with_context(|| format!("{flag} is missing"))
    };
    let (namespace, name) = (given("--namespace")?, given("--name")?.clone());
    let objects = ClientArgs::of_kubeconfig(given("--")?);
    let objects = connect(&objects).await?;
    let config = Config::new(&**given("--lease")?, given("--binary-version")?)
        .namespace(&**namespace)
        .identity(&*name)
        .timing(Timing::new(SHORT_LEASE, SHORT_DEADLINE));
    let shutdown = shutdown_signal()?;
    let candidate = Candidate::connect(config).await?;
    let teller = name.clone();
    let candidate = candidate.observed_by(move |_, event| tell(&teller, event));
    let client = kube5::guarded(objects.client(), &candidate.handle().leader_only());
    let api = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let gate = LeaderGate::new();
    let mut ends = signal(SignalKind::user_defined2())?;
    let controller = Controller::new(api, watcher::Config::default().labels(RECONCILED))
        .reconcile_all_on(gate.starts())
        .run(
            gate.reconciler(reconcile, Action::await_change),
            |_, _, _| Action::requeue(PACE),
            Arc::new(ReconcileContext { client, name }),
        )
        .take_until(async move { ends.recv().await })
        .for_each(|result| async {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        });
    // A trace takes a debug build seconds on a busy machine, and the panic is not noticed before it is printed.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let mut panics = signal(SignalKind::user_defined1())?;
    let controller = async move {
        tokio::select! {
            () = controller => {}
            _ = panics.recv() => panic!("as it should"),
        }
    };
    let candidate = candidate.alongside("controller", |_| controller);
    let work = move |leadership| gate.lead(leadership);
    candidate.run(work, shutdown).await?;
    Ok(())
}

/// Writes the token of the term. A write is conditional on the revision that was looked at, which a controller's cache
/// may lag behind; that it does not look at the token there is what the scenario is about.
async fn reconcile(
    object: Arc<ConfigMap>,
    context: Arc<ReconcileContext>,
    leadership: Leadership,
) -> kube::Result<Action> {
    let namespace = object.namespace().unwrap_or_default();
    let api = Api::<ConfigMap>::namespaced(context.client.clone(), &namespace);
    let mut next = ConfigMap::clone(&object);
    let data = next.data.get_or_insert_default();
    let token = leadership.token().to_string();
    let at = now().as_micros();
    let is_recent = |written: &String| {
        let pace = i64::try_from(PACE.as_micros()).unwrap_or(i64::MAX);
        written
            .parse::<i64>()
            .is_ok_and(|written| at - written < pace)
    };
    if data.get("token") == Some(&token) && data.get("at").is_some_and(is_recent) {
        return Ok(Action::requeue(PACE));
    }
    data.insert("token".to_owned(), token);
    data.insert("by".to_owned(), context.name.clone());
    data.insert("at".to_owned(), at.to_string());
    api.replace(&object.name_any(), &PostParams::default(), &next)
        .await?;
    Ok(Action::requeue(PACE))
}

/// One line for what the journal is to know.
fn tell(name: &str, event: &Event) {
    let (kind, term) = match event {
        Event::Registered => (EventKind::Start, None),
        Event::Leading { term, token, .. } => (EventKind::Leading, Some((*term, Some(*token)))),
        Event::WorkStopped { term, .. } => (EventKind::WorkStopped, Some((*term, None))),
        Event::Ended { term, .. } => (EventKind::Lost, Some((*term, None))),
        _ => return,
    };
    let time: Timestamp = now();
    let mut line = json!({"event": kind, "name": name, "time": Rfc3339(time).to_string()});
    if let Some((term, token)) = term {
        line["term"] = term.into();
        line["token"] = token.into();
    }
    // The test that reads it may have gone.
    let _ = writeln!(std::io::stdout(), "{line}");
}
