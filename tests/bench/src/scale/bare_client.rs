//! The events and requests of the same elections, but for the Events that an elector records, through a client that
//! decides nothing: what the libraries and the kernel take of the elector's processor time. It is a process of its own, as the
//! elector is.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use clap::Args;
use elector_protocol::StrategyName;
use elector_runtime::{ClientArgs, connect};
use elector_tests::rig::TestProcess;
use futures::stream::{self, BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::scale::args::RunSize;
use crate::scale::benchmarked_elector::LISTS;

/// A client that decides nothing, as a program.
#[derive(Args, Clone, Debug)]
pub struct BareClientArgs {
    /// The server, and who asks
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: PathBuf,

    /// The number of candidates of each lease: the last one has it granted
    #[arg(long, value_name = "N")]
    pub candidates: u32,

    /// The number of leases that are written at the same time
    #[arg(long, value_name = "N")]
    pub at_once: u32,
}

/// Its use of the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareClientTimes {
    /// For each event and response, microseconds.
    pub(crate) per_event: f64,
    /// The times that a watch was cut off, and all was listed again.
    pub(crate) further_lists: u64,
}

/// The running program.
pub(crate) struct RunningClient {
    pub(crate) process: TestProcess,
    lists: Arc<AtomicU64>,
}

/// The part of a watch's event that matters.
enum SeenObject {
    /// A candidate of this name, and the namespace and name of its lease.
    Candidate(String, (String, String)),
    /// The end of a list.
    All,
    Nothing,
}

type SeenObjects = BoxStream<'static, Result<SeenObject>>;

/// The line that the program writes after each list.
const LISTED: &str = "listed";
/// The number of watches, each of which lists once.
const WATCHES: u64 = 2;
/// The number of leases written at the same time, and of those of one namespace, as of an elector by default.
const AT_ONCE: u32 = 32;
const OF_NAMESPACE: u32 = AT_ONCE / 2;
/// The lease duration of a grant, which is the time for its accept.
const GRANT_SECONDS: i32 = 5;

/// Starts the program, and waits until it has listed all.
///
/// # Errors
/// When it does not start, or does not list in time.
pub(crate) async fn start(
    program: &Path,
    kubeconfig: &Path,
    size: &RunSize,
    folder: &Path,
) -> Result<RunningClient> {
    let at_once = AT_ONCE.min(OF_NAMESPACE * size.namespaces);
    let mut command = Command::new(program);
    command
        .arg("bare-client")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg(format!("--candidates={}", size.candidates))
        .arg(format!("--at-once={at_once}"));
    // The log has the lines of earlier rounds too.
    let lists = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lists);
    let count = move |line: &str| {
        counted.fetch_add(u64::from(line == LISTED), Ordering::Relaxed);
    };
    let mut process = TestProcess::spawn("bare-client", command, folder, count)?;
    let listed = |_: &str| (lists.load(Ordering::Relaxed) >= WATCHES).then_some(());
    process.output_until("its lists", LISTS, listed).await?;
    Ok(RunningClient { process, lists })
}

// === impl RunningClient ===

impl RunningClient {
    /// The times that a watch was cut off, and all was listed again.
    pub(crate) fn further_lists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed).saturating_sub(WATCHES)
    }
}

/// Watches LeaseCandidates and Leases by kube and k8s-openapi, and creates and grants a Lease when the last candidate of it
/// appears, until the process is killed.
///
/// # Errors
/// When the server refuses something.
pub fn run(args: &BareClientArgs) -> Result<Infallible> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(args, || println!("{LISTED}")))
}

async fn serve(args: &BareClientArgs, mut listed: impl FnMut()) -> Result<Infallible> {
    let cluster = connect(&ClientArgs::of_kubeconfig(args.kubeconfig.clone())).await?;
    let client = cluster.client();
    let candidates = watch(client, |LeaseCandidate { metadata, spec }| {
        let lease = (metadata.namespace.unwrap_or_default(), spec.lease_name);
        SeenObject::Candidate(metadata.name.unwrap_or_default(), lease)
    });
    let leases = watch(client, |_: Lease| SeenObject::Nothing);
    let mut events = stream::select(candidates, leases);
    let room = Arc::new(Semaphore::new(args.at_once as usize));
    let last = format!("-{}", args.candidates - 1);
    // A list repeats what a watch has told.
    let mut created = HashSet::new();
    let mut requests = JoinSet::new();
    loop {
        match events.next().await.context("a watch has ended")?? {
            SeenObject::Candidate(name, lease) => {
                if name.ends_with(&last) && created.insert(lease.clone()) {
                    let (client, room) = (client.clone(), Arc::clone(&room));
                    requests.spawn(async move {
                        let _room = room.acquire_owned().await?;
                        grant(&client, &lease.0, &lease.1).await
                    });
                }
            }
            SeenObject::All => listed(),
            SeenObject::Nothing => {}
        }
        while let Some(ended) = requests.try_join_next() {
            ended??;
        }
    }
}

/// The objects in all namespaces, by the watcher of kube, which lists them again where the server has cut a watch off.
fn watch<K>(client: &Client, seen: fn(K) -> SeenObject) -> SeenObjects
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(Api::<K>::all(client.clone()), watcher::Config::default());
    let objects = events.default_backoff().map(move |event| match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => Ok(seen(object)),
        Ok(Event::InitDone) => Ok(SeenObject::All),
        Ok(Event::Init | Event::Delete(_)) => Ok(SeenObject::Nothing),
        Err(error) if is_expired(&error) => Ok(SeenObject::Nothing),
        Err(error) => Err(error.into()),
    });
    objects.boxed()
}

/// True if the server has forgotten what was asked for: a list finds what there is.
fn is_expired(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchError(status)
        | watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 410,
        _ => false,
    }
}

/// Creates a Lease, and grants it to its first candidate.
async fn grant(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let now = MicroTime(Timestamp::now());
    let born = Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            strategy: Some(StrategyName::OLDEST_EMULATION_VERSION.to_owned()),
            ..LeaseSpec::default()
        }),
    };
    let mut lease = api.create(&PostParams::default(), &born).await?;
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(format!("{name}-0")),
        lease_duration_seconds: Some(GRANT_SECONDS),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        lease_transitions: Some(1),
        ..born.spec.unwrap_or_default()
    });
    api.replace(name, &PostParams::default(), &lease).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser as _;
    use elector_apiserver::Config;
    use elector_runtime::Writer;
    use tokio::time::timeout;

    use super::*;
    use crate::scale::server::{BenchServer, create_namespaces};
    use crate::scale::{Fleet, ScaleArgs};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_watch_that_is_cut_off_lists_again() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            watch_queue: 1,
            ..Config::default()
        };
        let server = BenchServer::embedded(folder.path(), config).await.unwrap();
        let cluster = connect(&ClientArgs::of_kubeconfig(server.kubeconfig()))
            .await
            .unwrap();
        let api = cluster.candidate_api().await.unwrap();
        let args = ScaleArgs::parse_from(["scale", "--leases=200"]);
        let size = args.sizes().unwrap().remove(0);
        let namespaces = size.namespaces(Fleet::PREFIX);
        create_namespaces(cluster.client(), namespaces)
            .await
            .unwrap();
        let bare = BareClientArgs {
            kubeconfig: server.kubeconfig(),
            candidates: size.candidates,
            at_once: AT_ONCE,
        };
        let lists = AtomicU64::new(0);
        let client = serve(&bare, || {
            lists.fetch_add(1, Ordering::Relaxed);
        });
        let mut fleet = Fleet::new(size, Writer::new(cluster, api)).await;
        let patience = Duration::from_secs(60);
        let times = tokio::select! {
            ended = timeout(patience, client) => panic!("{ended:?}"),
            times = fleet.elect(patience) => times.unwrap(),
        };
        assert_eq!(times.leases_led, 200);
        assert!(lists.into_inner() > WATCHES);
    }
}
