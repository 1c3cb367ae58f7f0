//! The events and requests of the same elections, but for the Events that an elector records, through a client that
//! decides nothing: what the libraries and the kernel take of the elector's processor time.

use std::collections::HashSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use elector_protocol::StrategyName;
use elector_runtime::{ClientArgs, Writer, connect};
use elector_tests::rig::now as wall_clock;
use futures::stream::{self, BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::scale::args::RunSize;
use crate::scale::bare::{for_each, register};
use crate::scale::follower::{accept, lease_key, lease_number, snapshot};

/// Its use of the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareClientTimes {
    pub(crate) processor: Duration,
    /// Events and responses: as many as there were, where lists hid some.
    pub(crate) received: u64,
    /// The times that a watch was cut off, and all was listed again.
    pub(crate) further_lists: u64,
}

/// The part of a watch's event that matters.
enum SeenObject {
    /// A candidate of this name.
    Candidate(String),
    /// A lease that its holder has accepted.
    Led(u32),
    /// The end of a list.
    All,
    Nothing,
}

type SeenObjects = BoxStream<'static, Result<SeenObject>>;

/// The prefix of the namespaces that are used.
pub(crate) const PREFIX: &str = "client";

/// The number of requests under way at the same time, as of an elector by default.
const AT_ONCE: usize = 16;
/// The lease duration of a grant, which is the time for its accept.
const GRANT_SECONDS: i32 = 5;
/// The number of Leases that may wait for their accepts.
const GRANTED: usize = 1024;

/// Watches LeaseCandidates and Leases by kube and k8s-openapi on a thread of its own, creates and grants a Lease when the
/// last candidate of it appears, and counts the time of that thread. This process registers and accepts meanwhile.
///
/// # Errors
/// When the server refuses something, and when not all is granted in `patience`.
pub(crate) async fn run_bare_client(
    size: &RunSize,
    kubeconfig: &Path,
    writer: &Writer,
    patience: Duration,
) -> Result<BareClientTimes> {
    let kubeconfig = kubeconfig.to_owned();
    let (ready, is_ready) = oneshot::channel();
    let (granted, grants) = mpsc::channel(GRANTED);
    let of_client = size.clone();
    let client = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let served = serve(&of_client, kubeconfig, ready, granted);
            timeout(patience, served)
                .await
                .context("not all leases were granted in time")?
        })
    });
    // Where the client has failed, it says why itself.
    if is_ready.await.is_ok() {
        let registered = for_each(size.all_candidates(), size.connections as usize, |number| {
            let (writer, size) = (writer.clone(), size.clone());
            async move { register(&size, PREFIX, &writer, number).await }
        });
        tokio::try_join!(registered, accept_all(size, writer, grants))?;
    }
    let ended = tokio::task::spawn_blocking(move || client.join()).await?;
    ended.map_err(|_| anyhow!("the bare client panicked"))?
}

/// The part of the elector.
async fn serve(
    size: &RunSize,
    kubeconfig: PathBuf,
    ready: oneshot::Sender<()>,
    granted: mpsc::Sender<Lease>,
) -> Result<BareClientTimes> {
    let cluster = connect(&ClientArgs::of_kubeconfig(kubeconfig)).await?;
    let client = cluster.client();
    let candidates = watch(client, |candidate: LeaseCandidate| {
        SeenObject::Candidate(candidate.metadata.name.unwrap_or_default())
    });
    let leases = watch(client, |lease: Lease| {
        let duration = lease.spec.and_then(|spec| spec.lease_duration_seconds);
        let number = lease_number(&lease.metadata.name.unwrap_or_default());
        // A grant lasts for less than any lease.
        let number = number.filter(|_| duration > Some(GRANT_SECONDS));
        number.map_or(SeenObject::Nothing, SeenObject::Led)
    });
    let mut events = stream::select(candidates, leases);
    let mut lists = 0;
    while lists < 2 {
        let event = events.next().await.context("a watch has ended")??;
        lists += u64::from(matches!(event, SeenObject::All));
    }
    let before = clock_gettime(ClockId::ThreadCPUTime);
    let _ = ready.send(());
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let last = format!("-{}", size.candidates - 1);
    // A list repeats what a watch has told.
    let (mut created, mut led) = (HashSet::new(), HashSet::new());
    let mut requests = JoinSet::new();
    while led.len() < size.leases as usize {
        let event = events.next().await.context("a watch has ended")??;
        match event {
            SeenObject::Candidate(name) => {
                let number = name.strip_suffix(&*last).and_then(lease_number);
                if let Some(number) = number.filter(|number| created.insert(*number)) {
                    let (client, size) = (client.clone(), size.clone());
                    let (room, granted) = (Arc::clone(&room), granted.clone());
                    requests.spawn(async move {
                        let _room = room.acquire_owned().await?;
                        let lease = grant(&client, &size, number).await?;
                        granted.send(lease).await.context("nobody accepts")
                    });
                }
            }
            SeenObject::Led(number) => {
                led.insert(number);
            }
            SeenObject::All => lists += 1,
            SeenObject::Nothing => {}
        }
        while let Some(ended) = requests.try_join_next() {
            ended??;
        }
    }
    let spent = |time: rustix::time::Timespec| Duration::try_from(time);
    let processor = spent(clock_gettime(ClockId::ThreadCPUTime))? - spent(before)?;
    Ok(BareClientTimes {
        processor,
        received: u64::from(size.leases) * (u64::from(size.candidates) + 5),
        further_lists: lists - 2,
    })
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
async fn grant(client: &Client, size: &RunSize, number: u32) -> Result<Lease> {
    let key = lease_key(PREFIX, size, number);
    let api: Api<Lease> = Api::namespaced(client.clone(), &key.namespace);
    let now = MicroTime(Timestamp::now());
    let born = Lease {
        metadata: ObjectMeta {
            name: Some(key.name.to_string()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            strategy: Some(StrategyName::OLDEST_EMULATION_VERSION.to_owned()),
            ..LeaseSpec::default()
        }),
    };
    let mut lease = api.create(&PostParams::default(), &born).await?;
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(format!("{}-0", key.name)),
        lease_duration_seconds: Some(GRANT_SECONDS),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        lease_transitions: Some(1),
        ..born.spec.unwrap_or_default()
    });
    Ok(api
        .replace(&key.name, &PostParams::default(), &lease)
        .await?)
}

/// Accepts all Leases, as their holders do.
async fn accept_all(
    size: &RunSize,
    writer: &Writer,
    mut granted: mpsc::Receiver<Lease>,
) -> Result<()> {
    let mut running = JoinSet::new();
    while let Some(lease) = granted.recv().await {
        let (writer, timing) = (writer.clone(), size.timing.clone());
        running.spawn(async move {
            let lease = elector_api::Lease::from_value(serde_json::to_value(lease)?);
            let grant = snapshot(&lease).context("a grant cannot be read")?;
            let record = accept(&grant, &timing, wall_clock());
            let accepted = writer.put_lease(&lease, &record).await.done();
            ensure!(accepted.is_some(), "failed to accept {}", lease.key());
            Ok::<_, anyhow::Error>(())
        });
        while running.len() >= size.connections as usize
            && let Some(ended) = running.join_next().await
        {
            ended??;
        }
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use elector_apiserver::Config;

    use super::*;
    use crate::scale::ScaleArgs;
    use crate::scale::server::{BenchServer, create_namespaces};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_watch_that_is_cut_off_lists_again() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            watch_queue: 1,
            ..Config::default()
        };
        let server = BenchServer::embedded(folder.path(), config).await.unwrap();
        let path = server.kubeconfig();
        let cluster = connect(&ClientArgs::of_kubeconfig(path.clone()))
            .await
            .unwrap();
        let api = cluster.candidate_api().await.unwrap();
        let args = ScaleArgs::parse_from(["scale", "--leases=200"]);
        let size = args.sizes().unwrap().remove(0);
        let namespaces = size.namespaces(PREFIX);
        create_namespaces(cluster.client(), namespaces)
            .await
            .unwrap();
        let (writer, patience) = (Writer::new(cluster, api), Duration::from_secs(60));
        let times = run_bare_client(&size, &path, &writer, patience)
            .await
            .unwrap();
        assert!(times.further_lists > 0, "{times:?}");
    }
}
