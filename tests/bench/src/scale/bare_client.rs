//! The events and requests of the same elections, but for the Events that an elector records, through a client that
//! decides nothing: what the libraries and the kernel take of the elector's processor time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use elector_protocol::StrategyName;
use elector_runtime::{ClientArgs, Writer, connect};
use elector_tests::rig::now as wall_clock;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Client, Resource};
use rustix::time::{ClockId, clock_gettime};
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
    /// Events and responses.
    pub(crate) received: u64,
}

/// The prefix of the namespaces that are used.
pub(crate) const PREFIX: &str = "client";

/// The number of requests under way at the same time, as of an elector by default.
const AT_ONCE: usize = 16;
/// The duration of the watches: longer than the elections, for a watch that ends is not begun again.
const WATCH_SECONDS: u32 = 6 * 60 * 60;
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
    let candidates = watch::<LeaseCandidate>(client).await?;
    let leases = watch::<Lease>(client).await?;
    let mut events = stream::select(
        candidates.map(|name| Ok::<_, anyhow::Error>(Some(name?))),
        leases.map(|name| name.map(|_| None)),
    );
    let before = clock_gettime(ClockId::ThreadCPUTime);
    let _ = ready.send(());
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let last = format!("-{}", size.candidates - 1);
    let all = u64::from(size.leases) * (u64::from(size.candidates) + 3);
    let mut requests = JoinSet::new();
    for _ in 0..all {
        let name = events.next().await.context("a watch has ended")??;
        let lease = name.as_deref().and_then(|name| name.strip_suffix(&*last));
        if let Some(number) = lease.and_then(lease_number) {
            let (client, size) = (client.clone(), size.clone());
            let (room, granted) = (Arc::clone(&room), granted.clone());
            requests.spawn(async move {
                let _room = room.acquire_owned().await?;
                let lease = grant(&client, &size, number).await?;
                granted.send(lease).await.context("nobody accepts")
            });
        }
        while let Some(ended) = requests.try_join_next() {
            ended??;
        }
    }
    let spent = |time: rustix::time::Timespec| Duration::try_from(time);
    let processor = spent(clock_gettime(ClockId::ThreadCPUTime))? - spent(before)?;
    Ok(BareClientTimes {
        processor,
        received: all + 2 * u64::from(size.leases),
    })
}

/// The names of the objects that a watch delivers, in all namespaces, from now on.
async fn watch<K>(client: &Client) -> Result<impl Stream<Item = Result<String>> + Unpin>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned + 'static,
{
    let api: Api<K> = Api::all(client.clone());
    let list = api.list_metadata(&ListParams::default().limit(1)).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let params = WatchParams::default()
        .timeout(WATCH_SECONDS)
        .disable_bookmarks();
    let events = api.watch(&params, &version).await?;
    let names = events.map(|event| match event? {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Ok(object.meta().name.clone().unwrap_or_default())
        }
        WatchEvent::Bookmark(_) => Err(anyhow!("a watch was interrupted")),
        WatchEvent::Error(status) => Err(anyhow!("a watch failed: {}", status.message)),
    });
    Ok(Box::pin(names))
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
        lease_duration_seconds: Some(5),
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
