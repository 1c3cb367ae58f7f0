//! Elector and candidates, the real ones, in virtual time, while the API of LeaseCandidates changes under them.
//!
//! Everything that happens is recorded and judged in the end, whatever the test is about.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{Config as ElectorConfig, Elector};
use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_apiserver::{ApiServer, Clock, Config, Latency, NativeCandidates};
use elector_candidate::{Candidate, Config as CandidateConfig, Leadership};
use elector_protocol::{Identity, LeaseKey, Timestamp};
use elector_runtime::{Cluster, TokioClock};
use elector_verify::{Entry, Event, EventKind, History, Limits, Maker, Roster, What, verify};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::api::{Api, DeleteParams, ListParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
const V1ALPHA2: CandidateApi = CandidateApi::V1Alpha2;
const CUSTOM: CandidateApi = CandidateApi::Elector;

/// Microseconds of 2026, when every clock starts.
const EPOCH: i64 = 1_767_225_600_000_000;

/// The only client that the server tells apart, but for the recorder.
const CLIENT: &str = "everybody";

/// Who is a candidate for the lease.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A cluster whose candidates are served where it says.
#[derive(Clone)]
struct Stage {
    server: ApiServer,
    served: Arc<Mutex<BTreeSet<CandidateApi>>>,
    at_work: Arc<AtWork>,
    book: Book,
    _recorders: Arc<[Running; 3]>,
}

/// What happened, by the one clock that everybody shares here; each process has set its own to another time.
#[derive(Clone)]
struct Book {
    entries: Arc<Mutex<Vec<Entry>>>,
    clock: Clock,
}

/// How many do the work that one may do at a time.
#[derive(Default)]
struct AtWork {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// The time that somebody works; ends however the work ends.
struct Shift {
    at_work: Arc<AtWork>,
    book: Book,
    event: Event,
}

/// A process; dropping it is a crash.
struct Running(JoinHandle<()>);

// === impl Stage ===

impl Stage {
    fn new(served: &[CandidateApi]) -> Self {
        let epoch = k8s_openapi::jiff::Timestamp::from_microsecond(EPOCH).unwrap();
        let clock = Clock::following_timers(epoch);
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
        let book = Book { entries, clock };
        let client = Client::new(server.service("recorder"), "default");
        let leases = book.follow(
            Api::default_namespaced_with(client.clone(), &()),
            |lease: Lease, gone| {
                let (name, lease) = (lease.name_any(), Arc::new(lease));
                if gone {
                    What::LeaseGone(name, lease)
                } else {
                    What::Lease(name, lease)
                }
            },
        );
        let candidates = |api| {
            let objects = Api::default_namespaced_with(client.clone(), &api);
            book.follow(objects, |candidate: LeaseCandidate, gone| {
                let (name, candidate) = (candidate.name_any(), Arc::new(candidate));
                if gone {
                    What::CandidateGone(name, candidate)
                } else {
                    What::Candidate(name, candidate)
                }
            })
        };
        let recorders = [leases, candidates(V1BETA1), candidates(CUSTOM)];
        Self {
            server,
            book,
            _recorders: Arc::new(recorders),
            served: Arc::new(Mutex::new(served.iter().copied().collect())),
            at_work: Arc::default(),
        }
    }

    /// The cluster as its clients see it: what is not served is asked for under a group that does not exist.
    fn cluster(&self) -> Cluster {
        Cluster::new(self.client(), "stage", Duration::from_secs(5))
    }

    fn client(&self) -> Client {
        let (inner, served) = (self.server.service(CLIENT), Arc::clone(&self.served));
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
            inner.clone().oneshot(request)
        });
        Client::new(service, "default")
    }

    /// From now on candidates are served there. Every watch breaks, as when the API server is restarted, and custom
    /// resources go with their definition.
    async fn serve(&self, apis: &[CandidateApi]) {
        *self.served.lock().unwrap() = apis.iter().copied().collect();
        if !apis.contains(&CUSTOM) {
            // Nobody can create any while they go.
            let everything = Client::new(self.server.service(CLIENT), "default");
            let objects: Api<LeaseCandidate> = Api::default_namespaced_with(everything, &CUSTOM);
            let all = ListParams::default();
            objects
                .delete_collection(&DeleteParams::default(), &all)
                .await
                .unwrap();
        }
        self.server.switches(CLIENT).break_watches();
    }

    fn candidates(&self, api: CandidateApi) -> Api<LeaseCandidate> {
        Api::default_namespaced_with(self.client(), &api)
    }

    /// Who is registered in this API.
    async fn registered(&self, api: CandidateApi) -> BTreeSet<String> {
        let list = self.candidates(api).list(&ListParams::default()).await;
        let names = list.unwrap().items.into_iter();
        names.filter_map(|item| item.metadata.name).collect()
    }

    async fn lease(&self) -> Option<Lease> {
        let leases: Api<Lease> = Api::default_namespaced_with(self.client(), &());
        leases.get_opt("work").await.unwrap()
    }

    /// Who leads, and in which term.
    async fn leader(&self) -> (String, i32) {
        let spec = self.lease().await.unwrap_or_default().spec;
        (
            spec.holder_identity.unwrap_or_default(),
            spec.lease_transitions.unwrap_or_default(),
        )
    }

    /// Waits until somebody else than `who` leads.
    async fn successor_of(&self, who: &str, patience: Duration) -> String {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let (holder, _) = self.leader().await;
            if !holder.is_empty() && holder != who && self.at_work.now.load(Ordering::SeqCst) > 0 {
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
    fn judge(&self) {
        let mut roster = Roster::new(Limits {
            clocks: None,
            ..Limits::default()
        });
        for name in NAMES {
            roster.enrol(LeaseKey::new("default", "work"), name, Maker::Ours);
        }
        let entries = self.book.entries.lock().unwrap().clone();
        let verdict = verify(&History::from(entries), &roster);
        assert!(verdict.holds(), "{verdict}");
        let extent = &verdict.cases.values().next().unwrap().extent;
        assert!(extent.terms > 0 && extent.traced, "{extent:?}");
    }

    fn elector(&self) -> Running {
        let clock = Arc::new(TokioClock::start(Timestamp::from_micros(EPOCH).unwrap()));
        let elector = Elector::new(ElectorConfig::default(), self.cluster(), clock).unwrap();
        Running(tokio::spawn(elector.run(std::future::pending())))
    }

    fn candidate(&self, name: &str, api: CandidateApi) -> Running {
        let config = CandidateConfig::new(
            LeaseKey::new("default", "work"),
            Identity::new(name).unwrap(),
            "1.0.0",
        );
        let clock = Arc::new(TokioClock::start(Timestamp::from_micros(EPOCH).unwrap()));
        let candidate = Candidate::new(self.cluster(), api, config)
            .unwrap()
            .with_clock(clock);
        let (at_work, book, name) = (
            Arc::clone(&self.at_work),
            self.book.clone(),
            name.to_owned(),
        );
        let work = move |leadership: Leadership| {
            let (at_work, book) = (Arc::clone(&at_work), book.clone());
            let event = Event {
                term: Some(leadership.term().0.into()),
                token: Some(leadership.token()),
                ..Event::new(name.as_str(), EventKind::Leading)
            };
            async move {
                let _shift = Shift::begin(at_work, book, event);
                leadership.stopped().await;
                // A little late, as work is.
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok::<(), ()>(())
            }
        };
        Running(tokio::spawn(async move {
            let _ = candidate.run(work, std::future::pending()).await;
        }))
    }
}

// === impl Book ===

impl Book {
    fn write(&self, what: What) {
        let at = Timestamp::from_micros(self.clock.now().as_microsecond()).unwrap();
        self.entries.lock().unwrap().push(Entry { at, what });
    }

    /// Writes down everything that happens to these objects.
    fn follow<K>(&self, api: Api<K>, what: impl Fn(K, bool) -> What + Send + 'static) -> Running
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let book = self.clone();
        Running(tokio::spawn(async move {
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
                    book.write(what(object, gone));
                }
            }
        }))
    }
}

// === impl Shift ===

impl Shift {
    fn begin(at_work: Arc<AtWork>, book: Book, event: Event) -> Self {
        let now = at_work.now.fetch_add(1, Ordering::SeqCst) + 1;
        at_work.most.fetch_max(now, Ordering::SeqCst);
        book.write(What::Event(event.clone()));
        Self {
            at_work,
            book,
            event,
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.at_work.now.fetch_sub(1, Ordering::SeqCst);
        self.event.kind = EventKind::WorkStopped;
        self.book.write(What::Event(self.event.clone()));
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Longer than a candidate takes to notice a better API.
const NOTICED: u64 = 90;

#[tokio::test(start_paused = true)]
async fn whoever_leads_leads_on_through_every_change() {
    let stage = Stage::new(&[CUSTOM]);
    let _elector = stage.elector();
    pass(20).await;
    let _candidates = NAMES.map(|name| stage.candidate(name, CUSTOM));
    let leader = stage.successor_of("", Duration::from_secs(5)).await;
    let all: BTreeSet<_> = NAMES.map(str::to_owned).into();
    let changes: [(&[CandidateApi], Option<CandidateApi>); 7] = [
        (&[V1ALPHA2, CUSTOM], Some(V1ALPHA2)),
        (&[V1BETA1, V1ALPHA2, CUSTOM], Some(V1BETA1)),
        (&[CUSTOM], Some(CUSTOM)),
        (&[], None),
        (&[CUSTOM], Some(CUSTOM)),
        (&[V1BETA1], Some(V1BETA1)),
        (&[V1BETA1, CUSTOM], Some(V1BETA1)),
    ];
    for (served, used) in changes {
        stage.serve(served).await;
        pass(NOTICED).await;
        assert_eq!(stage.leader().await, (leader.clone(), 1), "{served:?}");
        if let Some(used) = used {
            assert_eq!(stage.registered(used).await, all, "{served:?}");
        }
        if used != Some(CUSTOM) && served.contains(&CUSTOM) {
            assert_eq!(
                stage.registered(CUSTOM).await,
                BTreeSet::new(),
                "{served:?}"
            );
        }
    }
    assert_eq!(stage.at_work.most.load(Ordering::SeqCst), 1);
    stage.judge();
}

/// The leader crashes at every phase of a change; there is a next one as soon as elector and candidates have met
/// again, and never are there two.
#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_change_is_survived() {
    for (from, to, best) in [
        (&[CUSTOM] as &[_], &[V1BETA1, CUSTOM] as &[_], V1BETA1),
        (&[V1BETA1, CUSTOM], &[CUSTOM], CUSTOM),
        (&[V1BETA1], &[V1ALPHA2], V1ALPHA2),
    ] {
        for phase in [0, 1, 5, 20, 45, 65] {
            let stage = Stage::new(from);
            let _elector = stage.elector();
            pass(20).await;
            let start = *stage.served.lock().unwrap().first().unwrap();
            let mut candidates: Vec<_> = NAMES
                .map(|name| (name, stage.candidate(name, start)))
                .into();
            let leader = stage.successor_of("", Duration::from_secs(5)).await;
            stage.serve(to).await;
            pass(phase).await;
            candidates.retain(|(name, _)| *name != leader);
            let patience = Duration::from_secs(NOTICED + 20);
            let next = stage.successor_of(&leader, patience).await;
            assert_ne!(next, leader);
            pass(NOTICED).await;
            assert_eq!(stage.leader().await.0, next, "{to:?} {phase}");
            assert!(stage.registered(best).await.len() >= 2, "{to:?} {phase}");
            assert_eq!(
                stage.at_work.most.load(Ordering::SeqCst),
                1,
                "{to:?} {phase}"
            );
            stage.judge();
        }
    }
}
