//! Ranges of objects on a kube-apiserver 1.36 that selects by them: what a member of a group is sent falls to its share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_candidate::{
    Cluster, Config, Error, GroupCandidate, GroupHandle, Leadership, ObjectKey, Parts, kube5,
};
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::release::Release;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, ResourceExt as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::{BoxError, service_fn};

const OBJECTS: usize = 200;
const RANGES: u16 = 8;
/// The text in each object, in bytes.
const FILLING: usize = 4_096;
/// The wait for what takes two lease durations at most.
const PROMPTLY: Duration = Duration::from_secs(60);

/// A member of the group, with a cache of the objects that it is sent.
struct Member {
    handle: GroupHandle,
    store: Store<ConfigMap>,
    /// The bytes of the bodies that came for the cache.
    received: Arc<AtomicUsize>,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<(), Error>>,
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn a_member_is_sent_the_objects_of_its_ranges() -> Result<()> {
    let cluster = RealCluster::start(&Options {
        kubernetes: Some(Release::DEFAULT),
        apiserver_flags: vec!["--feature-gates=ShardedListAndWatch=true".to_owned()],
        ..Options::default()
    })?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(shares(&cluster))
}

async fn shares(cluster: &RealCluster) -> Result<()> {
    let client = client(cluster).await?;
    for number in 0..OBJECTS {
        create(&client, &format!("map-{number}")).await?;
    }
    // Both begin at once, each at another part, and take one every 250 ms.
    let mut members = Vec::new();
    for name in ["a", "b"] {
        members.push(Member::start(cluster, name).await?);
    }
    let all_led = || members.iter().map(Member::led).sum::<usize>() == usize::from(RANGES);
    eventually("each range is led", all_led).await?;
    let held = || {
        let members = members.iter().map(|member| member.store.len());
        members.sum::<usize>()
    };
    let hold_theirs = || {
        let has_its_own = |member: &Member| member.names() == member.owned(&members);
        held() == OBJECTS && members.iter().all(has_its_own)
    };
    eventually("each member holds the objects of its ranges", hold_theirs).await?;
    for member in &members {
        let (led, held) = (member.led(), member.store.len());
        println!("{led} of {RANGES} ranges: {held} of {OBJECTS} objects");
        ensure!(0 < led && led < usize::from(RANGES), "one member leads all");
        // Uids spread evenly.
        let share = OBJECTS * led / usize::from(RANGES);
        let holds = held.abs_diff(share) < OBJECTS / 5;
        ensure!(holds, "{held} of {OBJECTS} objects");
    }

    // Each change comes to one of them.
    let before: Vec<_> = members.iter().map(Member::received).collect();
    for number in 0..OBJECTS {
        create(&client, &format!("later-{number}")).await?;
    }
    eventually("the later objects have come", || held() == 2 * OBJECTS).await?;
    let received = members.iter().zip(&before);
    let received: Vec<_> = received
        .map(|(member, before)| member.received() - before)
        .collect();
    let sent: usize = received.iter().sum();
    println!("bytes of {OBJECTS} events: {received:?}");
    for (member, received) in members.iter().zip(&received) {
        let share = sent * member.led() / usize::from(RANGES);
        let holds = received.abs_diff(share) < sent / 5;
        ensure!(holds, "{received} of {sent} bytes");
    }
    let bodies = 2 * FILLING * OBJECTS;
    ensure!(sent < bodies, "{sent} bytes are twice those of the objects");

    // One ends, and the other is sent its objects too.
    let mut last = members.remove(0);
    drop(last.shutdown.take());
    last.run.await??;
    let other = &members[0];
    eventually("the other member holds all", || {
        other.store.len() == 2 * OBJECTS
    })
    .await?;
    Ok(())
}

// === impl Member ===

impl Member {
    async fn start(cluster: &RealCluster, name: &str) -> Result<Self> {
        let (client, received) = (client(cluster).await?, Arc::new(AtomicUsize::new(0)));
        let config = Config::plain("maps").identity(name);
        let connection = Cluster::from(client.clone());
        let group = GroupCandidate::new(config, Parts::by_uid(RANGES), connection)?;
        let handle = group.handle();
        let counted = counting(client, Arc::clone(&received));
        let sharded = kube5::sharded(&counted, &handle, &["configmaps"]);
        let api = Api::<ConfigMap>::default_namespaced(sharded);
        let (store, writer) = reflector::store();
        let objects = watcher(api, watcher::Config::default()).default_backoff();
        let objects = objects.reflect(writer).for_each(|_| std::future::ready(()));
        let (shutdown, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let work = |leadership: Leadership| async move {
            leadership.stopped().await;
            Ok::<(), std::convert::Infallible>(())
        };
        let group = group.alongside("cache", |_| objects);
        Ok(Self {
            handle,
            store,
            received,
            shutdown: Some(shutdown),
            run: tokio::spawn(group.run(work, stopped)),
        })
    }

    fn led(&self) -> usize {
        let parts = self.handle.parts().iter();
        parts.filter(|part| part.is_leader()).count()
    }

    fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    fn names(&self) -> BTreeSet<String> {
        self.store
            .state()
            .iter()
            .map(|map| map.name_any())
            .collect()
    }

    /// The names of those objects that any member holds, and that are in ranges of this one.
    fn owned(&self, members: &[Self]) -> BTreeSet<String> {
        let objects = members.iter().flat_map(|member| member.store.state());
        let owned = objects.filter(|map| {
            let uid = map.uid().unwrap_or_default();
            self.handle.owns(ObjectKey::new(&uid))
        });
        owned.map(|map| map.name_any()).collect()
    }
}

/// The same client, whose bodies are counted as they come.
fn counting(client: Client, received: Arc<AtomicUsize>) -> Client {
    let count = service_fn(move |request: Request<Body>| {
        let (client, received) = (client.clone(), Arc::clone(&received));
        async move {
            let (head, body) = client.send(request).await?.into_parts();
            let frames = BodyStream::new(body).inspect_ok(move |frame| {
                let bytes = match frame.data_ref() {
                    Some(data) => data.len(),
                    None => 0,
                };
                received.fetch_add(bytes, Ordering::Relaxed);
            });
            let body = BodyExt::map_err(StreamBody::new(frames), BoxError::from).boxed_unsync();
            Ok::<_, BoxError>(Response::from_parts(head, body))
        }
    });
    Client::new(count, "default")
}

async fn create(client: &Client, name: &str) -> Result<()> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some([("filling".to_owned(), "x".repeat(FILLING))].into());
    let api = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &map).await?;
    Ok(())
}

async fn client(cluster: &RealCluster) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_retry = false;
    config.default_namespace = "default".to_owned();
    let client = Client::try_from(config)?;
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    api.list(&ListParams::default().limit(1))
        .await
        .context("no list of ConfigMaps")?;
    Ok(client)
}

async fn eventually(what: &str, holds: impl Fn() -> bool) -> Result<()> {
    let until = Instant::now() + PROMPTLY;
    while !holds() {
        ensure!(Instant::now() < until, "{what}: not within {PROMPTLY:?}");
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
