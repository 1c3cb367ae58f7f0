//! The writes, on an API server in memory, by leaders of terms that the test gives.

use elector_apiserver::{ApiServer, Config as ServerConfig, OtherKinds};
use elector_candidate::{Config, StopReason};
use elector_runtime::{ClientArgs, connect};
use elector_testing::{TestTerm, listen};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;

/// A Service without a selector, and Pods that lead its lease `default/web`.
struct RoutedCluster {
    server: ApiServer,
    folder: TempDir,
}

/// A term of a Pod, and what it routes.
struct RoutedTerm {
    term: TestTerm,
    routing: LeaderRouting,
}

const SLICE: (&str, &str) = ("default", "web-leader-ipv4");

// === impl RoutedCluster ===

impl RoutedCluster {
    fn new() -> Self {
        let server = ApiServer::new(ServerConfig {
            other_kinds: OtherKinds::Defined,
            ..ServerConfig::default()
        });
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default", "uid": "u-1"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "targetPort": 8080}]}});
        server.store(&service, "services");
        for pod in ["web-0", "web-1"] {
            let pod = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": pod, "namespace": "default", "labels": {"app": "web"}}});
            server.store(&pod, "pods");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("kubeconfig"),
            listen(&server).to_string(),
        )
        .unwrap();
        Self { server, folder }
    }

    /// A term of the Pod of that number, whose address ends in it.
    async fn term(&self, pod: u8, token: u64) -> RoutedTerm {
        let args = ClientArgs::of_kubeconfig(self.folder.path().join("kubeconfig"));
        let name = format!("web-{pod}");
        let config = Config::plain("web").namespace("default").identity(&name);
        let term = TestTerm::of(config).unwrap().with_token(token);
        let label = PodLabel::new(term.leadership().lease(), Some(&name));
        let routing = LeaderRouting {
            cluster: connect(&args).await.unwrap(),
            service: Some("web".to_owned()),
            addresses: vec![[10, 0, 1, pod].into()],
            pod: Some(name),
            label: Some(label.unwrap()),
        };
        RoutedTerm { term, routing }
    }

    /// The addresses to which traffic goes.
    fn served_by(&self) -> Vec<String> {
        let slice = self
            .server
            .stored("endpointslices", SLICE)
            .unwrap_or_default();
        addresses(&slice)
    }

    fn labelled(&self) -> Vec<&'static str> {
        let is_labelled = |pod: &&str| {
            let pod = self.server.stored("pods", ("default", pod)).unwrap();
            pod["metadata"]["labels"][pod_label::LABEL] == "web"
        };
        ["web-0", "web-1"].into_iter().filter(is_labelled).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !holds(self) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.served_by());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl RoutedTerm {
    /// Routes, until the work ends that is kept.
    fn start(&self) -> (oneshot::Sender<Infallible>, JoinHandle<()>) {
        let (kept, work_ended) = oneshot::channel();
        let (routing, leadership) = (self.routing.clone(), self.term.leadership());
        let running = tokio::spawn(routing.route(leadership, work_ended));
        (kept, running)
    }
}

fn addresses(slice: &Value) -> Vec<String> {
    let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
    let addresses = endpoints.iter().flat_map(|it| it["addresses"].as_array());
    let addresses = addresses.flatten().filter_map(Value::as_str);
    addresses.map(str::to_owned).collect()
}

/// A dead leader is replaced in one write, one that stops is gone before its work has ended, and a late one changes nothing.
#[tokio::test]
async fn traffic_goes_to_the_newest_leader_and_to_none_that_stops() {
    let cluster = RoutedCluster::new();
    let dead = cluster.term(0, 7).await;
    let (kept, running) = dead.start();
    cluster
        .until("the first is served", |it| it.served_by() == ["10.0.1.0"])
        .await;
    cluster
        .until("the first is labelled", |it| it.labelled() == ["web-0"])
        .await;
    // Killed: neither the slice nor the label is taken back.
    running.abort();
    drop(kept);

    let next = cluster.term(1, 8).await;
    let (_kept, running) = next.start();
    cluster
        .until("the second is served", |it| it.served_by() == ["10.0.1.1"])
        .await;
    cluster
        .until("the second is labelled", |it| it.labelled() == ["web-1"])
        .await;
    let over = dead.term.leadership();
    for serves in [true, false] {
        let late = dead.routing.write_slices("web", &over, serves).await;
        late.unwrap();
        assert_eq!(cluster.served_by(), ["10.0.1.1"]);
    }
    next.term.stop(StopReason::ShutDown);
    running.await.unwrap();
    assert_eq!(
        cluster.served_by(),
        [""; 0],
        "before the lease is given away"
    );
    assert_eq!(cluster.labelled(), [""; 0]);

    let slices = cluster.server.changes().into_iter();
    let slices = slices.filter(|it| it.resource.starts_with("endpointslices"));
    let served: Vec<_> = slices.map(|it| addresses(&it.object)).collect();
    assert_eq!(
        served,
        [
            vec!["10.0.1.0".to_owned()],
            vec!["10.0.1.1".to_owned()],
            vec![]
        ],
        "one write each"
    );
}

/// Others have written in between: what they left is looked at again, and what is not ours is left alone.
#[tokio::test]
async fn a_write_is_on_the_revision_that_was_looked_at() {
    let cluster = RoutedCluster::new();
    let term = cluster.term(0, 7).await;
    let leadership = term.term.leadership();
    let write = || term.routing.write_slices("web", &leadership, true);
    write().await.unwrap();
    cluster.server.put("endpointslices", SLICE, |slice| {
        slice["endpoints"] = json!([]);
    });
    write().await.unwrap();
    assert_eq!(cluster.served_by(), ["10.0.1.0"]);
    cluster.server.put("endpointslices", SLICE, |slice| {
        slice["metadata"]["labels"] = json!({});
    });
    let error = write().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "use the EndpointSlice default/web-leader-ipv4: it is managed by nobody that it names"
    );
    cluster
        .server
        .put("services", ("default", "web"), |service| {
            service["spec"]["selector"] = json!({"app": "web"});
        });
    let error = write().await.unwrap_err().to_string();
    let holds = error.starts_with("use the Service default/web: it has a selector");
    assert!(holds, "{error}");
}

/// A leader that is none any more sends no traffic to itself, whatever its work still does.
#[tokio::test]
async fn a_term_that_is_over_announces_nothing() {
    let cluster = RoutedCluster::new();
    let term = cluster.term(0, 7).await;
    let leadership = term.term.leadership();
    term.term.expire_after(Duration::ZERO);
    term.routing
        .write_slices("web", &leadership, true)
        .await
        .unwrap();
    assert_eq!(cluster.server.stored("endpointslices", SLICE), None);
}
