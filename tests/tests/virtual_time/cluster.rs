//! A cluster in virtual time, on which the real elector and the real candidates play.
//!
//! Everything that happens is recorded and judged in the end, in every test.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{Config as ElectorConfig, Elector};
use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_apiserver::{ApiServer, Config, Latency, NativeCandidates, Rule, WallClock};
use elector_candidate::{Candidate, Config as CandidateConfig, Leadership};
use elector_protocol::{Identity, LeaseKey, Timestamp};
use elector_runtime::{Cluster, TokioClock};
use elector_verify::{
    EntryContent, Event, EventKind, History, HistoryEntry, Implementation, Limits, Participants,
    verify,
};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::api::{Api, DeleteParams, ListParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use crate::slow_server::{RequestDelays, RequestFate};

pub(crate) const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
pub(crate) const CUSTOM: CandidateApi = CandidateApi::Elector;

/// Microseconds of 2026, when every clock starts.
const EPOCH: i64 = 1_767_225_600_000_000;

/// The only client that the server tells apart, but for those that look on.
const CLIENT: &str = "everybody";

/// The candidates for the lease.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// A cluster whose candidates are served where it says.
#[derive(Clone)]
pub(crate) struct VirtualCluster {
    server: ApiServer,
    delays: Arc<Mutex<Option<RequestDelays>>>,
    pub(crate) served: Arc<Mutex<BTreeSet<CandidateApi>>>,
    pub(crate) work_count: Arc<ActiveWork>,
    journal: SharedJournal,
    _recorders: Arc<[RunningTask; 3]>,
}

/// What happened, by the one clock that all processes share here; each process has set its own to another time.
#[derive(Clone)]
struct SharedJournal {
    entries: Arc<Mutex<Vec<HistoryEntry>>>,
    clock: WallClock,
}

/// How many do the work that one may do at a time.
#[derive(Default)]
pub(crate) struct ActiveWork {
    pub(crate) now: AtomicUsize,
    pub(crate) most: AtomicUsize,
}

/// The time that a candidate works; it ends with the work, also with a crash.
struct WorkSpan {
    work_count: Arc<ActiveWork>,
    journal: SharedJournal,
    event: Event,
}

/// A process; dropping it is a crash.
pub(crate) struct RunningTask(JoinHandle<()>);

// === impl VirtualCluster ===

impl VirtualCluster {
    pub(crate) fn new(served: &[CandidateApi]) -> Self {
        let epoch = k8s_openapi::jiff::Timestamp::from_microsecond(EPOCH).unwrap();
        let clock = WallClock::following_timers(epoch);
        let server = ApiServer::new(Config {
            native: NativeCandidates::V1Beta1AndV1Alpha2,
            custom_candidates: true,
            clock: clock.clone(),
            ..Config::default()
        });
        // An answer that takes no time would let no time pass.
        server.switches(CLIENT).latency(Latency {
            request: Duration::from_millis(2),
            ..Latency::default()
        });
        let entries = Arc::default();
        let journal = SharedJournal { entries, clock };
        let client = Client::new(server.service("recorder"), "default");
        let leases = journal.follow(
            Api::default_namespaced_with(client.clone(), &()),
            |lease: Lease, gone| {
                let (name, lease) = (lease.name_any(), Arc::new(lease));
                if gone {
                    EntryContent::LeaseGone(name, lease)
                } else {
                    EntryContent::Lease(name, lease)
                }
            },
        );
        let candidates = |api| {
            let objects = Api::default_namespaced_with(client.clone(), &api);
            journal.follow(objects, |candidate: LeaseCandidate, gone| {
                let (name, candidate) = (candidate.name_any(), Arc::new(candidate));
                if gone {
                    EntryContent::CandidateGone(name, candidate)
                } else {
                    EntryContent::Candidate(name, candidate)
                }
            })
        };
        let recorders = [leases, candidates(V1BETA1), candidates(CUSTOM)];
        Self {
            server,
            delays: Arc::default(),
            journal,
            _recorders: Arc::new(recorders),
            served: Arc::new(Mutex::new(served.iter().copied().collect())),
            work_count: Arc::default(),
        }
    }

    /// The cluster as its clients see it: what is not served is asked for under a group that does not exist.
    fn cluster(&self) -> Cluster {
        Cluster::new(self.client(), "cluster", Duration::from_secs(5))
    }

    fn client(&self) -> Client {
        let (inner, served) = (self.server.service(CLIENT), Arc::clone(&self.served));
        let (switches, delays) = (self.server.switches(CLIENT), Arc::clone(&self.delays));
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let hidden = CandidateApi::ALL.into_iter().any(|api| {
                let rest = path.strip_prefix(&format!("/apis/{api}"));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                    && !served.lock().unwrap().contains(&api)
            });
            if hidden {
                *request.uri_mut() = "/apis/nobody.example/v1".parse().unwrap();
            }
            let fate = delays.lock().unwrap().as_mut().map(RequestDelays::draw);
            let (inner, switches) = (inner.clone(), switches.clone());
            async move {
                let RequestFate { there, back, fault } = fate.unwrap_or_default();
                tokio::time::sleep(there).await;
                if let Some(fault) = fault {
                    switches.inject(Rule::new(fault).times(1));
                }
                let answer = inner.oneshot(request).await;
                tokio::time::sleep(back).await;
                answer
            }
        });
        Client::new(service, "default")
    }

    /// From now on requests fare as this weather lets them.
    pub(crate) fn delays(&self, delays: RequestDelays) {
        *self.delays.lock().unwrap() = Some(delays);
    }

    /// Parts all clients from the API server, or joins them again.
    pub(crate) fn part(&self, parted: bool) {
        self.server.switches(CLIENT).partition(parted);
    }

    /// A client that the delays do not reach.
    fn onlooker(&self) -> Client {
        Client::new(self.server.service("onlooker"), "default")
    }

    /// From now on candidates are served there. Every watch breaks, as when the API server is restarted, and custom
    /// resources go with their definition.
    pub(crate) async fn serve(&self, apis: &[CandidateApi]) {
        *self.served.lock().unwrap() = apis.iter().copied().collect();
        if !apis.contains(&CUSTOM) {
            // None can be created while they go.
            let objects: Api<LeaseCandidate> =
                Api::default_namespaced_with(self.onlooker(), &CUSTOM);
            let all = ListParams::default();
            objects
                .delete_collection(&DeleteParams::default(), &all)
                .await
                .unwrap();
        }
        self.server.switches(CLIENT).break_watches();
    }

    /// The candidates that are registered in this API.
    pub(crate) async fn registered(&self, api: CandidateApi) -> BTreeSet<String> {
        let objects: Api<LeaseCandidate> = Api::default_namespaced_with(self.onlooker(), &api);
        let list = objects.list(&ListParams::default()).await;
        let names = list.unwrap().items.into_iter();
        names.filter_map(|item| item.metadata.name).collect()
    }

    async fn lease(&self) -> Option<Lease> {
        let leases: Api<Lease> = Api::default_namespaced_with(self.onlooker(), &());
        leases.get_opt("work").await.unwrap()
    }

    /// The leader, and its term.
    pub(crate) async fn leader(&self) -> (String, i32) {
        let spec = self.lease().await.unwrap_or_default().spec;
        (
            spec.holder_identity.unwrap_or_default(),
            spec.lease_transitions.unwrap_or_default(),
        )
    }

    /// Waits until another candidate than `who` leads.
    pub(crate) async fn successor_of(&self, who: &str, patience: Duration) -> String {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let (holder, _) = self.leader().await;
            if !holder.is_empty() && holder != who && self.work_count.now.load(Ordering::SeqCst) > 0
            {
                return holder;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{who} has no successor"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Judges everything that happened.
    pub(crate) fn verify_history(&self) {
        let mut participants = Participants::new(Limits {
            clock_difference: None,
            ..Limits::default()
        });
        for name in NAMES {
            participants.add(
                LeaseKey::new("default", "work"),
                name,
                Implementation::Elector,
            );
        }
        let entries = self.journal.entries.lock().unwrap().clone();
        let verdict = verify(&History::from(entries), &participants);
        assert!(verdict.holds(), "{verdict}");
        let extent = &verdict.leases.values().next().unwrap().extent;
        assert!(extent.terms > 0 && extent.traced, "{extent:?}");
    }

    pub(crate) fn elector(&self) -> RunningTask {
        let clock = Arc::new(TokioClock::start(Timestamp::from_micros(EPOCH).unwrap()));
        let elector = Elector::new(ElectorConfig::default(), self.cluster())
            .unwrap()
            .with_clock(clock);
        RunningTask(tokio::spawn(elector.run(std::future::pending::<()>())))
    }

    pub(crate) fn candidate(&self, name: &str) -> RunningTask {
        let config = CandidateConfig::new(
            LeaseKey::new("default", "work"),
            Identity::new(name).unwrap(),
            "1.0.0",
        );
        let clock = Arc::new(TokioClock::start(Timestamp::from_micros(EPOCH).unwrap()));
        let candidate = Candidate::new(config, self.cluster())
            .unwrap()
            .with_clock(clock);
        let (work_count, journal, name) = (
            Arc::clone(&self.work_count),
            self.journal.clone(),
            name.to_owned(),
        );
        let work = move |leadership: Leadership| {
            let (work_count, journal) = (Arc::clone(&work_count), journal.clone());
            let event = Event {
                term: Some(leadership.term().0.into()),
                token: Some(leadership.token()),
                ..Event::new(name.as_str(), EventKind::Leading)
            };
            async move {
                let _shift = WorkSpan::begin(work_count, journal, event);
                leadership.stopped().await;
                // A little late, as work is.
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok::<(), ()>(())
            }
        };
        RunningTask(tokio::spawn(async move {
            let _ = candidate.run(work, std::future::pending::<()>()).await;
        }))
    }
}

// === impl SharedJournal ===

impl SharedJournal {
    fn write(&self, content: EntryContent) {
        let at = Timestamp::from_micros(self.clock.now().as_microsecond()).unwrap();
        self.entries
            .lock()
            .unwrap()
            .push(HistoryEntry { at, content });
    }

    /// Writes down everything that happens to these objects.
    fn follow<K>(
        &self,
        api: Api<K>,
        what: impl Fn(K, bool) -> EntryContent + Send + 'static,
    ) -> RunningTask
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let journal = self.clone();
        RunningTask(tokio::spawn(async move {
            let mut version = "0".to_owned();
            loop {
                let mut events = api
                    .watch(&WatchParams::default(), &version)
                    .await
                    .unwrap()
                    .boxed();
                while let Some(event) = events.try_next().await.unwrap() {
                    let (object, gone) = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                        WatchEvent::Deleted(object) => (object, true),
                        WatchEvent::Bookmark(bookmark) => {
                            version = bookmark.metadata.resource_version;
                            continue;
                        }
                        WatchEvent::Error(status) => {
                            panic!("the recorder's watch broke: {status:?}")
                        }
                    };
                    version = object.resource_version().unwrap();
                    journal.write(what(object, gone));
                }
            }
        }))
    }
}

// === impl WorkSpan ===

impl WorkSpan {
    fn begin(work_count: Arc<ActiveWork>, journal: SharedJournal, event: Event) -> Self {
        let now = work_count.now.fetch_add(1, Ordering::SeqCst) + 1;
        work_count.most.fetch_max(now, Ordering::SeqCst);
        journal.write(EntryContent::Event(event.clone()));
        Self {
            work_count,
            journal,
            event,
        }
    }
}

impl Drop for WorkSpan {
    fn drop(&mut self) {
        self.work_count.now.fetch_sub(1, Ordering::SeqCst);
        self.event.kind = EventKind::WorkStopped;
        self.journal.write(EntryContent::Event(self.event.clone()));
    }
}

// === impl RunningTask ===

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
