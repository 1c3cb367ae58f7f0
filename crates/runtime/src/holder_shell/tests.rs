//! Scenarios of a holder beside a server that has its Lease.

use std::sync::Mutex;

use elector_api::{CandidateApi, Carrier};
use elector_protocol::holder::{HolderMode, WriteKind};
use elector_protocol::{Identity, LeaseRecord};
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::client::Body;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::clock::TokioClock;
use crate::testing::ForkPermit;

/// A process with its shell, and the Lease as its server has it.
struct ShellTest {
    shell: HolderShell,
    writer: Writer,
    clock: TokioClock,
    stored: Arc<Mutex<Value>>,
    /// The kinds of the writes that it sent.
    sent: Vec<WriteKind>,
}

/// A log that keeps nothing.
struct NoLog;

// === impl NoLog ===

impl HolderLog for NoLog {
    fn log_result(&mut self, _: Instant, _: LeasePath, _: Option<&RequestError>) {}

    fn log_fault(&mut self, _: Instant, _: Option<&Malformed>) {}
}

// === impl ShellTest ===

impl ShellTest {
    /// A process that starts beside a server, which does `look` before each write.
    fn new(
        name: &str,
        instance: Option<Arc<InstanceLock>>,
        stored: Arc<Mutex<Value>>,
        look: impl Fn() + Clone + Send + 'static,
    ) -> Self {
        let server = stored.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, look) = (server.clone(), look.clone());
            async move {
                if request.method() == Method::PUT {
                    look();
                    let body = request.into_body().collect_bytes().await?;
                    let mut lease: Value = serde_json::from_slice(&body)?;
                    let version = &mut lease["metadata"]["resourceVersion"];
                    let number: u64 = version.as_str().unwrap().parse()?;
                    *version = json!((number + 1).to_string());
                    *server.lock().unwrap() = lease;
                }
                let text = server.lock().unwrap().to_string();
                Ok::<_, tower::BoxError>(Response::new(Full::from(text)))
            }
        });
        let cluster = Cluster::from(kube::Client::new(service, "default"));
        let clock = TokioClock::start(Timestamp::MIN);
        let config = HolderConfig {
            identity: Identity::new(name).unwrap(),
            timing: CandidateTiming::default(),
            mode: HolderMode::Elected,
            life: instance.as_ref().map(|lock| lock.life()),
        };
        let shell = HolderShell::new(config, LeaseKey::new("ns", "l"), clock.holder());
        Self {
            shell: shell.with_instance(instance),
            writer: Writer::new(cluster, CandidateApi::V1Beta1),
            clock,
            stored,
            sent: Vec::new(),
        }
    }

    /// Sees the Lease as it stands, and goes on from there.
    async fn watch(&mut self) {
        let lease = Lease::from_value(self.stored.lock().unwrap().clone());
        let now = self.clock.moment();
        let event = WatchEvent::Applied(lease);
        self.shell.handle_event(now, event, &mut NoLog);
        self.go_on().await;
    }

    /// Half a minute later: true if the Lease has been silent for as long, which is looked into.
    async fn is_silent(&mut self) -> bool {
        let silence = Duration::from_secs(30);
        tokio::time::advance(silence).await;
        let (is_silent, _) = self.shell.check_silence(self.clock.holder(), silence);
        self.go_on().await;
        is_silent
    }

    /// Goes on until it asks for nothing more.
    async fn go_on(&mut self) {
        loop {
            let now = self.clock.moment();
            let decision = self.shell.step(now, self.clock.wall());
            for effect in decision.effects {
                if let Effect::Write { kind, .. } = &effect {
                    self.sent.push(kind.clone());
                }
                self.shell.send(effect, now.holder, &self.writer);
            }
            if self.shell.is_idle() {
                return;
            }
            let response = self.shell.response().await;
            let now = self.clock.moment();
            self.shell.handle_response(now, response, &mut NoLog);
        }
    }
}

/// A Lease that is granted to `a`.
fn granted() -> Arc<Mutex<Value>> {
    let electee = Identity::new("a").unwrap();
    let record = LeaseRecord::default().granted(electee, Duration::from_secs(5), Timestamp::MIN);
    let judged = Lease::from_value(json!({
        "metadata": {"namespace": "ns", "name": "l", "uid": "u", "resourceVersion": "7"},
    }));
    let granted = judged.with_record(&record, Carrier::Annotations);
    Arc::new(Mutex::new(serde_json::to_value(granted).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn a_term_is_noted_before_its_write_is_sent_and_the_next_life_leads_on() {
    let (_permit, folder) = (ForkPermit::obtain(), TempDir::new().unwrap());
    let path = folder.path().join("lock");
    let notes = path.clone();
    let is_noted = move || {
        let text = std::fs::read_to_string(&notes).unwrap();
        assert!(text.contains(r#""holder":"a","base":7"#), "{text}");
    };
    let lock = InstanceLock::obtain(&path).await.unwrap();
    let stored = granted();
    let mut first = ShellTest::new("a", Some(lock), stored.clone(), is_noted);
    first.watch().await;
    assert_eq!(first.sent, [WriteKind::Accept]);
    drop(first);
    let lock = InstanceLock::obtain(&path).await.unwrap();
    let mut next = ShellTest::new("a-again", Some(lock), stored, || {});
    assert!(!next.shell.believes(next.clock.holder()));
    next.watch().await;
    assert_eq!(next.sent, [WriteKind::Rejoin]);
    assert!(next.shell.believes(next.clock.holder()));
}

/// The watch may be dead.
#[tokio::test(start_paused = true)]
async fn a_silent_lease_is_read_and_the_watch_lags_where_the_read_brings_news() {
    let stored = granted();
    let mut test = ShellTest::new("b", None, stored.clone(), || {});
    test.watch().await;
    for (version, lags) in [("7", false), ("8", true)] {
        stored.lock().unwrap()["metadata"]["resourceVersion"] = json!(version);
        assert!(test.is_silent().await);
        assert_eq!(test.shell.watch_lags(), lags, "{version}");
    }
    test.watch().await;
    assert!(!test.shell.watch_lags());
    let later = test.clock.holder().after(Duration::from_secs(1));
    test.shell.expect_silence(later);
    assert!(!test.is_silent().await, "it is expected");
    assert!(test.shell.can_accept());
    test.shell.shut_down(test.clock.moment());
    assert!(!test.shell.can_accept());
}
