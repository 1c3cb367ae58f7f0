//! Each network condition, through a real connection with TLS, before a server of a few lines.

use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::*;

/// A server that answers with the credentials that it was shown, and what it has been asked.
struct ProxyFixture {
    port: ProxyPort,
    client: Client,
    asked: watch::Receiver<Vec<String>>,
    events: mpsc::Sender<&'static str>,
    _folder: tempfile::TempDir,
}

/// For what must come, however busy the machine is.
const ARRIVES_WITHIN: Duration = Duration::from_secs(20);

/// For what must not come. A busy machine cannot make it come because this is short.
const STAYS_AWAY: Duration = Duration::from_millis(100);

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/n/leases/work";
const WATCH: &str = "/leases?watch=true";

// === impl ProxyFixture ===

impl ProxyFixture {
    async fn start() -> Self {
        let (ask, asked) = watch::channel(Vec::new());
        let (events, received) = mpsc::channel(8);
        let received = Arc::new(Mutex::new(Some(received)));
        let upstream = Upstream::new(move |request: Request<Full<Bytes>>| {
            let path = request.uri().path_and_query().unwrap().to_string();
            ask.send_modify(|asked| asked.push(path.clone()));
            let events = received.lock().take_if(|_| path.contains("watch"));
            async move {
                let body = match events {
                    Some(received) => {
                        let events = stream::unfold(received, |mut received| async {
                            let event = received.recv().await?;
                            Some((Ok(Frame::data(Bytes::from(event))), received))
                        });
                        StreamBody::new(events).boxed_unsync()
                    }
                    None => {
                        let shown = request.headers()["authorization"].as_bytes().to_vec();
                        let body = Full::new(Bytes::from(shown));
                        body.map_err(|never| match never {}).boxed_unsync()
                    }
                };
                Ok(Response::new(body))
            }
            .boxed()
        });
        let folder = tempfile::tempdir().unwrap();
        let proxy = Proxy::with(upstream, "secret".to_owned().into(), folder.path()).unwrap();
        let port = proxy.open("me").await.unwrap();
        let kubeconfig = Kubeconfig::read_from(port.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.unwrap();
        config.default_retry = false;
        Self {
            port,
            client: Client::try_from(config).unwrap(),
            asked,
            events,
            _folder: folder,
        }
    }

    async fn ask(&self, method: Method, path: &str) -> kube::Result<Response<Body>> {
        let request = Request::builder().method(method).uri(path);
        self.client.send(request.body(Body::empty()).unwrap()).await
    }

    async fn get(&self) -> kube::Result<Response<Body>> {
        arrives(self.ask(Method::GET, "/version")).await
    }

    /// Waits until the server has been asked so often.
    async fn asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        let wait = asked.wait_for(|asked| asked.len() >= times);
        arrives(wait).await.unwrap();
    }

    fn times_asked(&self) -> usize {
        self.asked.borrow().len()
    }
}

/// Waits for what must come.
async fn arrives<T>(what: impl Future<Output = T>) -> T {
    timeout(ARRIVES_WITHIN, what).await.unwrap()
}

async fn text(answer: Response<Body>) -> String {
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn credentials_pass_through_and_renewals_are_counted() {
    let fixture = ProxyFixture::start().await;
    assert_eq!(text(fixture.get().await.unwrap()).await, "Bearer secret");
    let begun = Traffic {
        begun: true,
        ..Traffic::default()
    };
    assert_eq!(*fixture.port.traffic().borrow(), begun);
    for renewals in 1..=2 {
        fixture.ask(Method::PUT, LEASE).await.unwrap();
        assert_eq!(fixture.port.traffic().borrow().taken, renewals);
    }
    assert!(fixture.port.traffic().borrow().interval.is_some());
    assert_eq!(*fixture.asked.borrow(), ["/version", LEASE, LEASE]);
}

#[tokio::test]
async fn a_late_reply_is_of_a_request_served_at_once() {
    let fixture = ProxyFixture::start().await;
    let delay = Duration::from_millis(300);
    fixture.port.set(NetworkCondition::LateReplies(delay));
    let start = Instant::now();
    let mut answer = std::pin::pin!(fixture.get());
    tokio::select! {
        biased;
        _ = &mut answer => panic!("the reply came first"),
        () = fixture.asked(1) => {}
    }
    answer.await.unwrap();
    assert!(start.elapsed() >= delay);
}

#[tokio::test]
async fn a_late_request_arrives_although_its_client_has_given_up() {
    let fixture = ProxyFixture::start().await;
    fixture.get().await.unwrap();
    let delay = 3 * STAYS_AWAY;
    fixture.port.set(NetworkCondition::LateRequests(delay));
    let start = Instant::now();
    let given_up = timeout(STAYS_AWAY, fixture.ask(Method::PUT, LEASE)).await;
    given_up.unwrap_err();
    fixture.asked(2).await;
    assert!(start.elapsed() >= delay);
}

#[tokio::test]
async fn a_lost_reply_is_of_a_request_that_was_served() {
    let fixture = ProxyFixture::start().await;
    fixture.port.set(NetworkCondition::LostReplies);
    tokio::select! {
        biased;
        _ = fixture.get() => panic!("a reply came"),
        () = fixture.asked(1) => {}
    }
    // The condition changes for new requests alone.
    fixture.port.set(NetworkCondition::Normal);
    fixture.get().await.unwrap();
}

#[tokio::test]
async fn held_renewals_come_when_the_condition_ends_and_nothing_else_waits() {
    let fixture = ProxyFixture::start().await;
    fixture.port.set(NetworkCondition::HeldRenewals);
    fixture.get().await.unwrap();
    let mut answer = std::pin::pin!(fixture.ask(Method::PUT, LEASE));
    let mut taken = fixture.port.traffic();
    tokio::select! {
        biased;
        _ = &mut answer => panic!("the reply came first"),
        found = taken.wait_for(|traffic| traffic.taken == 1) => drop(found.unwrap()),
    }
    fixture.port.set(NetworkCondition::Normal);
    arrives(answer).await.unwrap();
}

#[tokio::test]
async fn what_is_sent_in_a_partition_arrives_when_it_heals() {
    let fixture = ProxyFixture::start().await;
    fixture.get().await.unwrap();
    fixture.port.set(NetworkCondition::Partition);
    let request = fixture.ask(Method::PUT, LEASE);
    timeout(STAYS_AWAY, request).await.unwrap_err();
    assert_eq!(fixture.times_asked(), 1);
    fixture.port.set(NetworkCondition::Normal);
    fixture.asked(2).await;
    fixture.get().await.unwrap();
}

#[tokio::test]
async fn what_is_sent_into_a_black_hole_never_arrives() {
    let fixture = ProxyFixture::start().await;
    fixture.get().await.unwrap();
    fixture.port.set(NetworkCondition::BlackHole);
    let request = tokio::spawn({
        let client = fixture.client.clone();
        let request = Request::put(LEASE).body(Body::empty()).unwrap();
        async move { client.send(request).await }
    });
    tokio::time::sleep(STAYS_AWAY).await;
    assert!(!request.is_finished());
    fixture.port.set(NetworkCondition::Normal);
    arrives(request).await.unwrap().unwrap_err();
    fixture.get().await.unwrap();
    assert_eq!(*fixture.asked.borrow(), ["/version", "/version"]);
}

#[tokio::test]
async fn refused_connections_fail_at_once() {
    let fixture = ProxyFixture::start().await;
    fixture.get().await.unwrap();
    fixture.port.set(NetworkCondition::Reject);
    fixture.get().await.unwrap_err();
    assert_eq!(fixture.times_asked(), 1);
    fixture.port.set(NetworkCondition::Normal);
    fixture.get().await.unwrap();
}

#[tokio::test]
async fn error_storms_are_sent_and_nothing_is_served() {
    let fixture = ProxyFixture::start().await;
    fixture.port.set(NetworkCondition::TooManyRequests(7));
    let answer = fixture.get().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    fixture.port.set(NetworkCondition::ServerErrors);
    assert_eq!(fixture.get().await.unwrap().status().as_u16(), 500);
    assert_eq!(fixture.times_asked(), 0);
}

#[tokio::test]
async fn frozen_watches_thaw_and_broken_ones_end() {
    let fixture = ProxyFixture::start().await;
    let answer = fixture.ask(Method::GET, WATCH).await;
    let mut watch = answer.unwrap().into_body();
    fixture.events.send("one").await.unwrap();
    let event = arrives(watch.frame()).await.unwrap().unwrap();
    assert_eq!(event.into_data().unwrap(), "one");
    fixture.port.set(NetworkCondition::FrozenWatches);
    fixture.events.send("two").await.unwrap();
    timeout(STAYS_AWAY, watch.frame()).await.unwrap_err();
    fixture.port.set(NetworkCondition::Normal);
    let event = arrives(watch.frame()).await.unwrap().unwrap();
    assert_eq!(event.into_data().unwrap(), "two");
    fixture.port.set(NetworkCondition::BrokenWatches);
    let last = arrives(watch.frame()).await;
    assert!(last.is_none_or(|event| event.is_err()));
    let again = fixture.ask(Method::GET, WATCH).await.unwrap();
    assert_eq!(again.status().as_u16(), 500);
}

#[tokio::test]
async fn one_way_a_request_is_served_and_its_reply_comes_afterwards() {
    let fixture = ProxyFixture::start().await;
    fixture.get().await.unwrap();
    fixture.port.set(NetworkCondition::OneWay);
    let mut answer = std::pin::pin!(fixture.ask(Method::PUT, LEASE));
    tokio::select! {
        biased;
        _ = &mut answer => panic!("a reply came"),
        () = fixture.asked(2) => {}
    }
    timeout(STAYS_AWAY, &mut answer).await.unwrap_err();
    fixture.port.set(NetworkCondition::Normal);
    arrives(answer).await.unwrap();
}
