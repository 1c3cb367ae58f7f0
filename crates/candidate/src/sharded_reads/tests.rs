//! Watchers of kube-runtime over ranges that change, on the API server in memory.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_apiserver::{ApiServer, Config as ServerConfig, OtherKinds};
use elector_protocol::shard::{ShardField, ShardLayout, shard_hash};
use elector_testing::CapturedLog;
use futures::StreamExt as _;
use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use kube::client::Body;
use kube::core::WatchEvent;
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tower::service_fn;

use crate::config::Config;
use crate::group::{GroupHandle, Parts};
use crate::kube5;
use crate::test_term::TestTerm;

const RANGES: u16 = 4;
const OBJECTS: usize = 40;

/// A process of a group of four ranges, and a server with objects.
struct ReadsWorld {
    server: ApiServer,
    terms: Vec<TestTerm>,
    group: GroupHandle,
    /// The queries that the server was sent, decoded as far as they matter here.
    queries: Arc<Mutex<Vec<String>>>,
}

fn layout() -> ShardLayout {
    ShardLayout::new(ShardField::Uid, RANGES).unwrap()
}

// === impl ReadsWorld ===

impl ReadsWorld {
    async fn new(sharding: bool) -> Self {
        let server = ApiServer::new(ServerConfig {
            sharding,
            other_kinds: OtherKinds::Any,
            ..ServerConfig::default()
        });
        let term = |index| {
            let lease = layout().lease_name("maps", index);
            let term = TestTerm::of(Config::new(lease, "1.0.0").identity("me")).unwrap();
            term.expire_after(Duration::ZERO);
            term
        };
        let terms: Vec<_> = (0..RANGES).map(term).collect();
        let handles = terms.iter().map(TestTerm::handle);
        let group = GroupHandle::new(Parts::by_uid(RANGES), handles);
        let world = Self {
            server,
            terms,
            group,
            queries: Arc::default(),
        };
        for number in 0..OBJECTS {
            world.create(&format!("map-{number}")).await;
        }
        world
    }

    fn lead(&self, index: usize, leads: bool) {
        let belief = if leads { Duration::MAX } else { Duration::ZERO };
        self.terms[index].expire_after(belief);
    }

    async fn create(&self, name: &str) {
        let api = Api::default_namespaced(self.bare());
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        api.create(&PostParams::default(), &map).await.unwrap();
    }

    fn bare(&self) -> Client {
        Client::new(self.server.service("bare"), "default")
    }

    /// The client under test, whose queries are recorded.
    fn sharded(&self, resource: &str) -> Client {
        let (inner, queries) = (
            Client::new(self.server.service("me"), "default"),
            Arc::clone(&self.queries),
        );
        let recording = service_fn(move |request: Request<Body>| {
            let (inner, query) = (inner.clone(), request.uri().query().unwrap_or_default());
            queries.lock().unwrap().push(query.replace("%27", "'"));
            async move { inner.send(request).await }
        });
        kube5::sharded(&Client::new(recording, "default"), &self.group, &[resource])
    }

    /// The names of the objects in those ranges.
    async fn objects(&self, ranges: &[u16]) -> BTreeSet<String> {
        let api = Api::<ConfigMap>::default_namespaced(self.bare());
        let list = api.list(&ListParams::default()).await.unwrap();
        let is_in = |map: &&ConfigMap| {
            let hash = shard_hash(&map.uid().unwrap());
            ranges.contains(&layout().index_of(hash))
        };
        list.iter()
            .filter(is_in)
            .map(ResourceExt::name_any)
            .collect()
    }

    fn lists(&self) -> usize {
        let queries = self.queries.lock().unwrap();
        let is_list = |query: &&String| !query.contains("watch=");
        queries.iter().filter(is_list).count()
    }
}

/// A watcher as controllers have one, with pages of that size.
fn cached(client: Client, page: u32) -> Store<ConfigMap> {
    let config = watcher::Config::default().page_size(page);
    let (store, writer) = reflector::store();
    let api = Api::default_namespaced(client);
    let events = watcher(api, config).default_backoff().reflect(writer);
    tokio::spawn(events.for_each(|_| std::future::ready(())));
    store
}

fn names(store: &Store<ConfigMap>) -> BTreeSet<String> {
    store.state().iter().map(|map| map.name_any()).collect()
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// An event of a watch, or its error.
async fn first_event(client: Client, version: &str) -> WatchEvent<ConfigMap> {
    let api = Api::<ConfigMap>::default_namespaced(client);
    let watch = api.watch(&WatchParams::default(), version).await.unwrap();
    Box::pin(watch).next().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cache_holds_the_objects_of_the_ranges_that_are_led() {
    for page in [3, 500] {
        let world = ReadsWorld::new(true).await;
        world.lead(1, true);
        let store = cached(world.sharded("configmaps"), page);
        pass(5).await;
        let first = world.objects(&[1]).await;
        assert!(!first.is_empty() && first.len() < OBJECTS / 2);
        assert_eq!(names(&store), first);
        // Changes in the range come by the watch, and no others do.
        for number in 0..20 {
            world.create(&format!("new-{number}")).await;
        }
        pass(1).await;
        assert_eq!(names(&store), world.objects(&[1]).await);
        // Two that are gained at once cost one list.
        let (lists, pages) = (world.lists(), world.objects(&[1, 2, 3]).await.len());
        world.lead(2, true);
        world.lead(3, true);
        pass(5).await;
        assert_eq!(names(&store), world.objects(&[1, 2, 3]).await);
        let pages = pages.div_ceil(usize::try_from(page).unwrap());
        assert!(world.lists() - lists <= pages + 1);
        // One that is lost goes too.
        world.lead(1, false);
        pass(5).await;
        assert_eq!(names(&store), world.objects(&[2, 3]).await);
        let lists = world.lists();
        pass(3600).await;
        assert_eq!(world.lists(), lists, "watches that end are opened again");
        world.create("late").await;
        pass(1).await;
        assert_eq!(names(&store), world.objects(&[2, 3]).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_leads_nothing_caches_nothing() {
    let world = ReadsWorld::new(true).await;
    let store = cached(world.sharded("configmaps"), 500);
    pass(5).await;
    assert_eq!(names(&store), BTreeSet::new());
    world.lead(0, true);
    pass(5).await;
    assert_eq!(names(&store), world.objects(&[0]).await);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_of_one_selector_whatever_changes_between_its_pages() {
    let world = ReadsWorld::new(true).await;
    world.lead(0, true);
    let client = world.sharded("configmaps");
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let mut params = ListParams::default().limit(2);
    let (mut listed, mut version) = (BTreeSet::new(), String::new());
    loop {
        let page = api.list(&params).await.unwrap();
        listed.extend(page.iter().map(ResourceExt::name_any));
        version = page.metadata.resource_version.unwrap_or(version);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            break;
        }
        world.lead(3, true);
        pass(1).await;
    }
    assert_eq!(listed, world.objects(&[0]).await);
    // A watch from there would lack the objects of the other range.
    let WatchEvent::Error(error) = first_event(client, &version).await else {
        panic!("the watch goes on from a list of other ranges");
    };
    assert_eq!((error.code, error.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_what_this_client_has_listed_alone() {
    let world = ReadsWorld::new(true).await;
    world.lead(0, true);
    let version = world.server.revision().to_string();
    let event = first_event(world.sharded("configmaps"), &version).await;
    assert!(matches!(event, WatchEvent::Error(error) if error.code == 410));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_select_is_reported_once_and_sends_everything() {
    let log = CapturedLog::capture();
    let world = ReadsWorld::new(false).await;
    world.lead(0, true);
    let client = world.sharded("configmaps");
    let (store, other) = (cached(client.clone(), 3), cached(client, 500));
    pass(5).await;
    assert_eq!(names(&store).len(), OBJECTS);
    let lists = world.lists();
    world.lead(1, true);
    world.lead(0, false);
    pass(5).await;
    // Everything is there already.
    assert_eq!(world.lists(), lists);
    world.create("late").await;
    pass(1).await;
    let expected = (OBJECTS + 1, OBJECTS + 1);
    assert_eq!((names(&store).len(), names(&other).len()), expected);
    let lines = log.lines("does not select by ranges");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("/configmaps"), "{lines:?}");
}

/// An answer as Kubernetes gives it to a selector that it cannot read: 500, and the text of the error.
#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_the_selector_is_asked_without() {
    let log = CapturedLog::capture();
    let world = ReadsWorld::new(false).await;
    world.lead(0, true);
    let inner = Client::new(world.server.service("me"), "default");
    let refusing = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            if !query.contains("shardSelector") {
                return inner.send(request).await;
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                "message": "invalid shard selector: CEL parse error: Syntax error",
            });
            let mut response = Response::new(Body::from(status.to_string().into_bytes()));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            Ok(response)
        }
    });
    let client = Client::new(refusing, "default");
    let store = cached(kube5::sharded(&client, &world.group, &["configmaps"]), 7);
    pass(5).await;
    assert_eq!(names(&store).len(), OBJECTS);
    assert_eq!(log.lines("it refuses the selector").len(), 1);
}

/// Lists of custom resources are selected in silence.
#[tokio::test(start_paused = true)]
async fn custom_resources_are_of_the_ranges_too() {
    let world = ReadsWorld::new(true).await;
    world.lead(0, true);
    let kind = kube::core::GroupVersionKind::gvk("example.com", "v1", "Widget");
    let resource = kube::api::ApiResource::from_gvk_with_plural(&kind, "widgets");
    let api = |client| Api::<kube::api::DynamicObject>::default_namespaced_with(client, &resource);
    for number in 0..OBJECTS {
        let widget = kube::api::DynamicObject::new(&format!("widget-{number}"), &resource);
        let bare = api(world.bare());
        bare.create(&PostParams::default(), &widget).await.unwrap();
    }
    let log = CapturedLog::capture();
    let count = |client| {
        let api = api(client);
        async move { api.list(&ListParams::default()).await.unwrap().items.len() }
    };
    let selected = count(world.sharded("widgets.example.com")).await;
    assert!(0 < selected && selected < OBJECTS, "{selected}");
    assert_eq!(count(world.sharded("widgets.example.org")).await, OBJECTS);
    assert_eq!(log.lines("does not select").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn other_requests_pass_as_they_are() {
    let world = ReadsWorld::new(true).await;
    let client = world.sharded("configmaps");
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    api.get("map-1").await.unwrap();
    let one = ListParams::default().fields("metadata.name=map-1");
    assert_eq!(api.list(&one).await.unwrap().items.len(), 1);
    world.create("new").await;
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client);
    let all = namespaces.list(&ListParams::default()).await.unwrap();
    assert!(!all.items.is_empty());
    let queries = world.queries.lock().unwrap().join(" ");
    assert!(!queries.contains("shardSelector"), "{queries}");
}

/// A body in pieces, as a network brings it: the event that was begun comes whole before the one that ends the watch.
#[tokio::test(start_paused = true)]
async fn an_event_in_two_pieces_is_not_torn_apart() {
    let world = ReadsWorld::new(true).await;
    world.lead(0, true);
    let (pieces, body) = tokio::sync::mpsc::channel::<String>(8);
    let body = Arc::new(Mutex::new(Some(body)));
    let server = service_fn(move |request: Request<Body>| {
        let watched = request.uri().query().unwrap_or_default().contains("watch=");
        let body = body.lock().unwrap().take_if(|_| watched);
        async move {
            let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": []});
            let frames = futures::stream::unfold(body, |body| async move {
                let mut body = body?;
                let piece = body.recv().await?;
                let frame = http_body::Frame::data(bytes::Bytes::from(piece));
                Some((Ok(frame), Some(body)))
            });
            let frames = match watched {
                true => frames.boxed(),
                false => {
                    let frame = http_body::Frame::data(bytes::Bytes::from(list.to_string()));
                    futures::stream::iter([Ok(frame)]).boxed()
                }
            };
            Ok::<_, Infallible>(Response::new(super::FrameBody::of(frames)))
        }
    });
    let client = Client::new(server, "default");
    let client = kube5::sharded(&client, &world.group, &["configmaps"]);
    let api = Api::<ConfigMap>::default_namespaced(client);
    api.list(&ListParams::default()).await.unwrap();
    let watch = api.watch(&WatchParams::default(), "5").await.unwrap();
    let mut watch = Box::pin(watch);
    let event =
        json!({"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "6"}}});
    let event = event.to_string();
    let (begin, end) = event.split_at(20);
    pieces.send(begin.to_owned()).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_secs(1), watch.next());
    assert!(waiting.await.is_err());
    world.lead(2, true);
    let waiting = tokio::time::timeout(Duration::from_secs(1), watch.next());
    assert!(waiting.await.is_err());
    pieces.send(format!("{end}\n")).await.unwrap();
    let added = watch.next().await.unwrap().unwrap();
    assert!(matches!(added, WatchEvent::Added(map) if map.name_any() == "a"));
    let error = watch.next().await.unwrap().unwrap();
    assert!(matches!(error, WatchEvent::Error(error) if error.code == 410));
    assert!(watch.next().await.is_none());
}
