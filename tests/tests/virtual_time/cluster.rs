//! A cluster in virtual time, in which the real elector and the real candidates run.
//!
//! Everything that happens is recorded and judged in the end, in every test.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{Config as ElectorConfig, Elector};
use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_apiserver::{ChangeKind, ObjectChange, Rule};
use elector_candidate::{Candidate, Config as CandidateConfig, Leadership};
use elector_protocol::{Identity, LeaseKey, Timestamp};
use elector_runtime::{Clock as _, Cluster, TokioClock};
use elector_testkit::{BackgroundTask, MemoryCluster, eventually, millis, pass, seconds, wall};
use elector_verify::{
    EntryContent, Event, EventKind, History, HistoryEntry, Implementation, Limits, Participants,
    verify,
};
use http::Request;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::client::Body;

use crate::slow_server::RequestDelays;

/// A cluster with a lease and [three candidates](NAMES) for it. Clones are the same one.
#[derive(Clone)]
pub(crate) struct VirtualCluster {
    memory: MemoryCluster,
    delays: Arc<Mutex<Option<RequestDelays>>>,
    /// The events of the candidates, by the clock of the cluster; each process has set its own to another time.
    events: Arc<Mutex<Vec<(Timestamp, Event)>>>,
    /// When the store was first seen at a revision, by the same clock.
    commit_times: Arc<Mutex<BTreeMap<u64, Timestamp>>>,
    _recorder: Arc<BackgroundTask>,
}

/// The time that a candidate works; it ends with the work, also with a crash.
struct WorkSpan {
    cluster: VirtualCluster,
    event: Event,
}

const NAMESPACE: &str = "default";
const LEASE: &str = "work";

/// The candidates for the lease.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

// === impl VirtualCluster ===

impl VirtualCluster {
    /// A cluster whose candidates are served there.
    pub(crate) fn new(served: &[CandidateApi]) -> Self {
        let memory = MemoryCluster::without_gate();
        memory.serve(served);
        let commit_times = Arc::new(Mutex::new(BTreeMap::new()));
        let (cluster, times) = (memory.clone(), Arc::clone(&commit_times));
        let recorder = BackgroundTask::spawn(async move {
            loop {
                let (server, now) = (cluster.server(), cluster.clock().wall());
                let revision = server.revision();
                times.lock().unwrap().insert(revision, now);
                server.changed(revision).await;
            }
        });
        Self {
            memory,
            delays: Arc::default(),
            events: Arc::default(),
            commit_times,
            _recorder: Arc::new(recorder),
        }
    }

    /// The cluster as a process sees it, each of whose requests has a fate of its own once there are
    /// [delays](Self::delays).
    fn cluster(&self) -> Cluster {
        let (cluster, delays) = (self.memory.clone(), Arc::clone(&self.delays));
        let client = cluster.cluster().client().clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fate = delays.lock().unwrap().as_mut().map(RequestDelays::draw);
            let (cluster, client) = (cluster.clone(), client.clone());
            async move {
                let fate = fate.unwrap_or_default();
                pass(fate.there).await;
                if let Some(fault) = fate.fault {
                    cluster.inject(Rule::new(fault).times(1));
                }
                let answer = client.send(request).await;
                pass(fate.back).await;
                answer
            }
        });
        Cluster::new(Client::new(service, NAMESPACE), "cluster", seconds(5))
    }

    /// From now on every request draws its fate here.
    pub(crate) fn delays(&self, delays: RequestDelays) {
        *self.delays.lock().unwrap() = Some(delays);
    }

    /// The candidates that are registered in this API.
    pub(crate) async fn registered(&self, api: CandidateApi) -> BTreeSet<String> {
        let client = Client::new(self.server().service("onlooker"), NAMESPACE);
        let objects: Api<LeaseCandidate> = Api::default_namespaced_with(client, &api);
        let list = objects.list(&ListParams::default()).await;
        let names = list.unwrap().items.into_iter();
        names.filter_map(|item| item.metadata.name).collect()
    }

    /// The leader, and its term.
    pub(crate) fn leader(&self) -> (String, i32) {
        (
            self.holder(NAMESPACE, LEASE).unwrap_or_default(),
            self.term(NAMESPACE, LEASE).unwrap_or_default(),
        )
    }

    /// The number of candidates that work now, and the most that did so at a time.
    pub(crate) fn working(&self) -> (usize, usize) {
        let (mut now, mut most) = (0, 0);
        for (_, event) in self.events.lock().unwrap().iter() {
            if event.kind == EventKind::Leading {
                now += 1;
                most = most.max(now);
            } else {
                now -= 1;
            }
        }
        (now, most)
    }

    /// Waits until another candidate than `who` leads.
    pub(crate) async fn successor_of(&self, who: &str, patience: Duration) -> String {
        let succeeded = eventually(|| {
            let leads = |holder: String| !holder.is_empty() && holder != who;
            self.working().0 > 0 && leads(self.leader().0)
        });
        let succeeded = tokio::time::timeout(patience, succeeded).await;
        assert!(succeeded.is_ok(), "{who} has no successor");
        self.leader().0
    }

    /// Judges everything that happened.
    pub(crate) fn verify_history(&self) {
        let mut participants = Participants::new(Limits {
            clock_difference: None,
            ..Limits::default()
        });
        for name in NAMES {
            participants.add(key(), name, Implementation::Elector);
        }
        let changes = self.server().changes().into_iter();
        let mut entries: Vec<_> = changes.filter_map(|change| self.entry(change)).collect();
        let events = self.events.lock().unwrap().clone().into_iter();
        entries.extend(events.map(|(at, event)| HistoryEntry {
            at,
            content: EntryContent::Event(event),
        }));
        entries.sort_by_key(|entry| entry.at);
        let verdict = verify(&History::from(entries), &participants);
        assert!(verdict.holds(), "{verdict}");
        let extent = &verdict.leases.values().next().unwrap().extent;
        assert!(extent.terms > 0 && extent.traced, "{extent:?}");
    }

    /// A change of a Lease or of a candidate, as the checker reads it.
    fn entry(&self, change: ObjectChange) -> Option<HistoryEntry> {
        let gone = change.kind == ChangeKind::Deleted;
        let content = if change.resource.starts_with("leases.") {
            EntryContent::lease(Lease::from_value(change.object), gone)
        } else if change.resource.starts_with("leasecandidates.") {
            EntryContent::candidate(LeaseCandidate::from_value(change.object), gone)
        } else {
            return None;
        };
        let times = self.commit_times.lock().unwrap();
        let committed = times.range(content.version().unwrap().0..).next();
        let at = committed.map_or_else(|| self.clock().wall(), |(_, at)| *at);
        Some(HistoryEntry { at, content })
    }

    pub(crate) fn elector(&self) -> BackgroundTask {
        let elector = Elector::new(ElectorConfig::default(), self.cluster())
            .unwrap()
            .with_clock(clock());
        BackgroundTask::spawn(elector.run(std::future::pending::<()>()))
    }

    pub(crate) fn candidate(&self, name: &str) -> BackgroundTask {
        let lease = key();
        let config = CandidateConfig::new(&*lease.name, "1.0.0".parse().unwrap())
            .in_namespace(&*lease.namespace)
            .identified_as(Identity::new(name).unwrap());
        let candidate = Candidate::new(config, self.cluster())
            .unwrap()
            .with_clock(clock());
        let (cluster, name) = (self.clone(), name.to_owned());
        let work = move |leadership: Leadership| {
            let event = Event {
                term: Some(leadership.term().0.into()),
                token: Some(leadership.token()),
                ..Event::new(name.as_str(), EventKind::Leading)
            };
            let cluster = cluster.clone();
            async move {
                let _span = WorkSpan::begin(cluster, event);
                leadership.stopped().await;
                // A little late, as work is.
                pass(millis(300)).await;
                Ok::<(), Infallible>(())
            }
        };
        BackgroundTask::spawn(async move {
            let _ = candidate.run(work, std::future::pending::<()>()).await;
        })
    }

    fn record(&self, event: Event) {
        let at = self.clock().wall();
        self.events.lock().unwrap().push((at, event));
    }
}

impl Deref for VirtualCluster {
    type Target = MemoryCluster;

    fn deref(&self) -> &MemoryCluster {
        &self.memory
    }
}

// === impl WorkSpan ===

impl WorkSpan {
    fn begin(cluster: VirtualCluster, event: Event) -> Self {
        cluster.record(event.clone());
        Self { cluster, event }
    }
}

impl Drop for WorkSpan {
    fn drop(&mut self) {
        self.event.kind = EventKind::WorkStopped;
        self.cluster.record(self.event.clone());
    }
}

fn key() -> LeaseKey {
    LeaseKey::new(NAMESPACE, LEASE)
}

/// The clock of one process, which shows the same time of day at its start as all others did at theirs.
fn clock() -> Arc<TokioClock> {
    Arc::new(TokioClock::start(wall()))
}
