//! Our watch beside the watcher of kube-runtime, which no line of ours is part of: under the same faults both come to
//! show what the store holds. Where they differ is why Elector has watches of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_api::Lease;
use elector_apiserver::{ApiServer, Config, Fault, RequestVerb, Rule};
use elector_runtime::{
    Cluster, Scope, Watch, WatchEvent, WatchOptions, reflect_leases, watch_leases,
};
use elector_testing::{BackgroundTask, millis, pass, seconds};
use kube::Client;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// The holder of each Lease, by its namespace and name.
type Holders = BTreeMap<String, String>;

/// A server, and the reports of both clients.
struct WatchedServer {
    server: ApiServer,
    ours: Arc<Mutex<WatchReport>>,
    theirs: Arc<Mutex<WatchReport>>,
    /// The number of writes, which makes each holder another one.
    writes: u64,
    _clients: [BackgroundTask; 2],
}

/// The objects that a client shows, and its fate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WatchReport {
    shown: Holders,
    lists: u32,
    failures: u32,
}

const OURS: &str = "ours";
const THEIRS: &str = "theirs";

/// Leases of the last are not watched.
const NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-node-lease"];

/// More Leases of a namespace than one page of our lists holds.
const NAMES: u32 = 150;

/// The time in which both find what they missed: a dead connection takes 35 s, and a pause of kube-runtime's up to 60 s.
const PATIENCE: Duration = Duration::from_secs(300);

// === impl WatchedServer ===

impl WatchedServer {
    /// A server with many Leases, and both clients, which know them.
    async fn start(seed: u64) -> Self {
        let server = ApiServer::new(Config {
            seed,
            ..Config::default()
        });
        let (ours, theirs) = <(Arc<Mutex<WatchReport>>, Arc<Mutex<WatchReport>>)>::default();
        let connect = |name: &str| Cluster::from(Client::new(server.service(name), "default"));
        let clients = [
            BackgroundTask::spawn(watch(connect(OURS), seed, Arc::clone(&ours))),
            BackgroundTask::spawn(reflect(connect(THEIRS), Arc::clone(&theirs))),
        ];
        let mut watched = Self {
            server,
            ours,
            theirs,
            writes: 0,
            _clients: clients,
        };
        watched.heal();
        for number in 0..NAMES {
            for namespace in NAMESPACES {
                watched.write(namespace, number);
            }
        }
        watched.settle().await;
        watched
    }

    fn write(&mut self, namespace: &str, number: u32) {
        self.writes += 1;
        let holder = self.writes.to_string();
        let name = format!("lease-{number}");
        self.server.put("leases", (namespace, &name), |lease| {
            lease["spec"]["holderIdentity"] = holder.into();
        });
    }

    fn remove(&self, namespace: &str, number: u32) {
        let name = format!("lease-{number}");
        self.server.remove("leases", (namespace, &name));
    }

    /// Something befalls both clients alike, or the store.
    fn disturb(&mut self, random: &mut StdRng) {
        let step = random.random_range(0..14);
        for client in [OURS, THEIRS] {
            let faults = self.server.faults(client);
            match step {
                0 => faults.freeze_watches(true),
                1 => faults.freeze_watches(false),
                2 => faults.close_watches(),
                3 => faults.break_watches(),
                4 => faults.partition(true),
                5 => faults.partition(false),
                6 => faults.hold_cache(Some(self.server.revision())),
                7 => faults.hold_cache(None),
                _ => {}
            }
        }
        match step {
            8 | 9 => self.refuse(random),
            10 => self.server.compact(),
            _ => {
                for _ in 0..random.random_range(1..20) {
                    let namespace = NAMESPACES.choose(random).unwrap();
                    let number = random.random_range(0..NAMES);
                    if random.random_ratio(1, 3) {
                        self.remove(namespace, number);
                    } else {
                        self.write(namespace, number);
                    }
                }
            }
        }
    }

    /// The next requests of both fail.
    fn refuse(&self, random: &mut StdRng) {
        let faults = [
            Fault::DropBefore,
            Fault::DropAfter,
            Fault::HangBefore,
            Fault::HangAfter,
            Fault::Delay(seconds(3)),
            Fault::Refuse(429),
            Fault::Refuse(500),
            Fault::Refuse(410),
            Fault::Refuse(403),
        ];
        let fault = *faults.choose(random).unwrap();
        let verb = [RequestVerb::List, RequestVerb::Watch];
        let verb = *verb.choose(random).unwrap();
        let rule = Rule::new(fault).verb(verb).times(random.random_range(1..4));
        for client in [OURS, THEIRS] {
            self.server.faults(client).inject(rule.clone());
        }
    }

    /// Nothing befalls either any more.
    fn heal(&self) {
        for client in [OURS, THEIRS] {
            let faults = self.server.faults(client);
            faults.clear();
            // An answer that takes no time would let no time pass.
            faults.latency(millis(1), Duration::ZERO);
        }
    }

    /// Waits until both show what the store holds.
    async fn settle(&self) {
        let expected = [self.stored(), self.stored()];
        let settled = async {
            while self.shown() != expected {
                pass(seconds(1)).await;
            }
        };
        // The caller asserts, and then names the difference.
        let _ = tokio::time::timeout(PATIENCE, settled).await;
    }

    /// The holders that ours shows, and those that theirs does.
    fn shown(&self) -> [Holders; 2] {
        [&self.ours, &self.theirs].map(|report| report.lock().shown.clone())
    }

    /// The holders that either should show.
    fn stored(&self) -> Holders {
        let [watched @ .., _] = NAMESPACES;
        let keys = watched.iter().flat_map(|namespace| {
            (0..NAMES).map(move |number| (*namespace, format!("lease-{number}")))
        });
        let holders = keys.filter_map(|(namespace, name)| {
            let lease = self.server.object("leases", (namespace, &name))?;
            let holder = lease["spec"]["holderIdentity"].as_str()?;
            Some((format!("{namespace}/{name}"), holder.to_owned()))
        });
        holders.collect()
    }
}

/// Our watch, folded.
async fn watch(cluster: Cluster, seed: u64, report: Arc<Mutex<WatchReport>>) {
    let options = WatchOptions::elector(seed);
    let mut leases: Watch<Lease> = watch_leases(&cluster, &Scope::Cluster, &options);
    loop {
        let event = leases.next().await;
        let mut report = report.lock();
        match event {
            WatchEvent::Listed { items, .. } => {
                report.lists += 1;
                report.shown = items.iter().map(holder).collect();
            }
            WatchEvent::Applied(lease) => {
                report.shown.extend([holder(&lease)]);
            }
            WatchEvent::Deleted(lease) => {
                report.shown.remove(&lease.key().to_string());
            }
            WatchEvent::Failed(_) => report.failures += 1,
            WatchEvent::Gap { .. } | WatchEvent::Rewound { .. } | WatchEvent::Synced => {}
        }
    }
}

/// The watcher and the reflector of kube-runtime.
async fn reflect(cluster: Cluster, report: Arc<Mutex<WatchReport>>) {
    let mut leases = reflect_leases(&cluster, None);
    loop {
        let changed = leases.changed().await;
        let mut report = report.lock();
        report.failures += u32::from(changed.is_err());
        report.shown = leases.objects().iter().map(|lease| holder(lease)).collect();
    }
}

fn holder(lease: &Lease) -> (String, String) {
    let holder = lease.spec.holder_identity.clone();
    (lease.key().to_string(), holder.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn our_watch_and_that_of_kube_runtime_show_the_same_after_any_faults() {
    let (mut lists, mut failures) = (0, 0);
    for seed in 1..=20 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut watched = WatchedServer::start(seed).await;
        for _ in 0..4 {
            for _ in 0..random.random_range(1..12) {
                watched.disturb(&mut random);
                pass(millis(random.random_range(0..40_000))).await;
            }
            watched.heal();
            watched.settle().await;
            let ([ours, theirs], stored) = (watched.shown(), watched.stored());
            assert_eq!(theirs, stored, "theirs, seed {seed}");
            assert_eq!(ours, stored, "ours, seed {seed}");
        }
        let ours = watched.ours.lock();
        (lists, failures) = (lists + ours.lists, failures + ours.failures);
    }
    // Each run begins with a list; in some, versions were forgotten behind the back of a watch.
    assert!(lists > 25, "{lists} lists");
    assert!(failures > 100, "{failures} failures");
}

/// The watcher of kube-runtime opens its watch again at a version that the restored store has not reached, hears nothing
/// and goes on showing what never was. When this fails, the paragraph of ARCHITECTURE.md about our watches is to be
/// looked at.
#[tokio::test(start_paused = true)]
async fn a_restored_store_is_noticed_by_our_watch_alone() {
    let mut watched = WatchedServer::start(1).await;
    let backup = watched.server.backup();
    let before = watched.stored();
    for number in 0..5 {
        watched.write("default", number);
    }
    watched.settle().await;
    let never = watched.stored();
    assert_eq!(watched.shown(), [never.clone(), never.clone()]);

    watched.server.restore(&backup);
    for client in [OURS, THEIRS] {
        watched.server.faults(client).break_watches();
    }
    pass(PATIENCE).await;
    assert_eq!(watched.stored(), before);
    assert_eq!(watched.shown(), [before, never]);
}
