//! Replicas of one controller that share ranges of objects, on an API server that sends each the objects of its ranges.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use elector_apiserver::{ApiServer, Config as ServerConfig, OtherKinds};
use elector_candidate::{
    Cluster, Config, Error, GroupCandidate, GroupHandle, Leadership, Parts, ShardGate, kube5,
};
use elector_protocol::Timestamp;
use elector_runtime::TokioClock;
use elector_testing::eventually;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::pass;

const MAPS: usize = 30;

/// An API server with ConfigMaps, and what was done to them.
struct ShardedWorld {
    server: ApiServer,
    clock: Arc<TokioClock>,
    reconciles: Arc<Mutex<Vec<Reconciled>>>,
}

/// A reconcile that ended.
#[derive(Clone, Debug)]
struct Reconciled {
    replica: &'static str,
    map: String,
    token: u64,
    began: Instant,
    ended: Instant,
}

struct ShardReplica {
    handle: GroupHandle,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<(), Error>>,
}

// === impl ShardedWorld ===

impl ShardedWorld {
    async fn new() -> Self {
        let server = ApiServer::new(ServerConfig {
            sharding: true,
            other_kinds: OtherKinds::Any,
            ..ServerConfig::default()
        });
        let api =
            Api::<ConfigMap>::default_namespaced(Client::new(server.service("user"), "default"));
        for number in 0..MAPS {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(format!("map-{number}"));
            api.create(&PostParams::default(), &map).await.unwrap();
        }
        Self {
            server,
            clock: Arc::new(TokioClock::start(Timestamp::MIN)),
            reconciles: Arc::default(),
        }
    }

    fn start(&self, replica: &'static str, parts: Parts) -> ShardReplica {
        self.start_in("maps", replica, parts)
    }

    fn start_in(&self, group: &str, replica: &'static str, parts: Parts) -> ShardReplica {
        let client = Client::new(self.server.service(replica), "default");
        let cluster = Cluster::from(client.clone());
        let cluster = cluster.with_clock(self.clock.clone()).with_seed(0);
        let config = Config::plain(group).identity(replica);
        let group = GroupCandidate::new(config, parts, cluster).unwrap();
        let (handle, gate) = (group.handle(), ShardGate::new(&group.handle()));
        let sharded = kube5::sharded(&client, &handle, &["configmaps"]);
        let book = Arc::clone(&self.reconciles);
        let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>, leadership: Leadership| {
            let book: Arc<Mutex<Vec<_>>> = Arc::clone(&book);
            async move {
                let began = Instant::now();
                pass(20).await;
                book.lock().unwrap().push(Reconciled {
                    replica,
                    map: map.name_any(),
                    token: leadership.token(),
                    began,
                    ended: Instant::now(),
                });
                Ok::<_, Error>(Action::await_change())
            }
        };
        // More than one page: what is on the first ones is not in the cache yet when a controller hears of it.
        let watched = watcher::Config::default().page_size(4);
        let controller = Controller::new(Api::default_namespaced(sharded), watched)
            .reconcile_all_on(gate.starts())
            .run(
                gate.reconciler(kube5::key, reconcile, Action::await_change),
                |_, _, _| Action::await_change(),
                Arc::new(()),
            )
            .for_each(|_| std::future::ready(()));
        let group = group.alongside("controller", |_| controller);
        let (shutdown, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        ShardReplica {
            handle,
            shutdown: Some(shutdown),
            run: tokio::spawn(group.run(move |leadership| gate.lead(leadership), stopped)),
        }
    }

    /// The reconciles of each map by that replica.
    fn by(&self, replica: &str) -> BTreeMap<String, Vec<Reconciled>> {
        let mut maps = BTreeMap::<_, Vec<_>>::new();
        for done in &*self.reconciles.lock().unwrap() {
            if done.replica == replica {
                maps.entry(done.map.clone()).or_default().push(done.clone());
            }
        }
        maps
    }

    /// No map is reconciled by two at once, and each owner has a larger token than the one before.
    fn assert_one_owner_each(&self, first: &str, second: &str) {
        let (before, after) = (self.by(first), self.by(second));
        assert_eq!((before.len(), after.len()), (MAPS, MAPS));
        for (map, before) in before {
            let last = before.iter().max_by_key(|done| done.ended).unwrap();
            let next = after[&map].iter().min_by_key(|done| done.began).unwrap();
            assert!(last.ended <= next.began, "{last:?} and {next:?}");
            assert!(last.token < next.token, "{last:?} and {next:?}");
        }
    }
}

// === impl ShardReplica ===

impl ShardReplica {
    fn led(&self) -> usize {
        let parts = self.handle.parts().iter();
        parts.filter(|part| part.is_leader()).count()
    }

    async fn shut_down(&mut self) {
        drop(self.shutdown.take());
        (&mut self.run).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_gained_is_reconciled_after_the_last_owner_has_stopped() {
    let world = ShardedWorld::new().await;
    let mut first = world.start("a", Parts::by_uid(4));
    eventually(|| first.led() == 4).await;
    pass(10_000).await;
    assert_eq!(world.by("a").len(), MAPS);
    let second = world.start("b", Parts::by_uid(4));
    pass(30_000).await;
    assert_eq!((second.led(), world.by("b").len()), (0, 0));
    first.shut_down().await;
    pass(10_000).await;
    assert_eq!(second.led(), 4);
    world.assert_one_owner_each("a", "b");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_cut_off_stops_before_another_begins() {
    let world = ShardedWorld::new().await;
    let first = world.start("a", Parts::by_uid(4));
    eventually(|| first.led() == 4).await;
    pass(10_000).await;
    let second = world.start("b", Parts::by_uid(4));
    pass(5_000).await;
    world.server.faults("a").partition(true);
    eventually(|| second.led() == 4).await;
    assert_eq!(first.led(), 0);
    pass(10_000).await;
    world.assert_one_owner_each("a", "b");
}

/// Two layouts divide the objects in other ways, so neither may lead beside the other.
#[tokio::test(start_paused = true)]
async fn a_replica_with_another_number_of_ranges_waits_until_none_of_the_first_leads() {
    let world = ShardedWorld::new().await;
    let mut first = world.start("a", Parts::by_uid(4));
    eventually(|| first.led() == 4).await;
    let second = world.start("b", Parts::by_uid(8));
    for _ in 0..60 {
        pass(1_000).await;
        assert_eq!((first.led(), second.led()), (4, 0));
    }
    let unready = second.handle.check_ready().unwrap_err().to_string();
    assert!(unready.contains("of another layout"), "{unready}");
    first.shut_down().await;
    eventually(|| second.led() == 8).await;
    assert!(second.handle.check_ready().is_ok());
    pass(10_000).await;
    world.assert_one_owner_each("a", "b");
}

#[tokio::test(start_paused = true)]
async fn two_groups_in_one_process_have_nothing_but_its_name_in_common() {
    let world = ShardedWorld::new().await;
    let mut maps = world.start("a", Parts::by_uid(4));
    let mut jobs = world.start_in("jobs", "a", Parts::by_namespace(2));
    eventually(|| maps.led() == 4 && jobs.led() == 2).await;
    maps.shut_down().await;
    let next = world.start("b", Parts::by_uid(4));
    eventually(|| next.led() == 4).await;
    assert_eq!((maps.led(), jobs.led()), (0, 2));
    jobs.shut_down().await;
    pass(10_000).await;
    assert_eq!((next.led(), jobs.led()), (4, 0));
}
