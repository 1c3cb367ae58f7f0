//! An embedded API server that listens, and the plugin that asks it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use elector_api::Rfc3339;
use elector_apiserver::{ApiServer, Config};
use elector_protocol::Timestamp;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

/// The server, listening until the test ends.
pub(crate) struct TestServer {
    pub(crate) api: ApiServer,
    recorded: Arc<RecordedAnswers>,
    folder: TempDir,
}

/// The answers to requests for what the embedded server has no kind for, by their paths without queries: Pods, roles,
/// reviews of rights.
#[derive(Default)]
struct RecordedAnswers(Mutex<BTreeMap<String, RecordedAnswer>>);

/// The answer to a body.
type RecordedAnswer = Box<dyn Fn(&Value) -> (StatusCode, Value) + Send>;

/// The longest wait for anything before the test fails: many times what it takes.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl TestServer ===

impl TestServer {
    pub(crate) fn start(config: Config) -> Self {
        let api = ApiServer::new(config);
        // Without its Namespace nothing in it can be patched.
        api.put("namespaces", ("", "shop"), |fields| {
            let metadata = fields["metadata"].as_object_mut();
            metadata.unwrap().remove("namespace");
        });
        let recorded = Arc::default();
        let address = listen(&api, &recorded);
        let context = |name: &str, namespace: &str| {
            let context = json!({"cluster": "c", "user": "u", "namespace": namespace});
            json!({"name": name, "context": context})
        };
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [context("c", "default"), context("shop", "shop")],
            "users": [{"name": "u", "user": {}}],
        });
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
        Self {
            api,
            recorded,
            folder,
        }
    }

    /// Answers requests for a path with this from now on.
    pub(crate) fn record(&self, path: &str, answer: Value) {
        self.answer(path, move |_| (StatusCode::OK, answer.clone()));
    }

    /// Answers requests for a path by their bodies from now on.
    pub(crate) fn answer(
        &self,
        path: &str,
        answer: impl Fn(&Value) -> (StatusCode, Value) + Send + 'static,
    ) {
        let mut recorded = self.recorded.0.lock().unwrap();
        recorded.insert(path.to_owned(), Box::new(answer));
    }

    /// The folder of the kubeconfig, for files of a test.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Writes a Lease, past every rule. `spec` is merged over that of a leader that renewed a second ago.
    pub(crate) fn lease(&self, key: (&str, &str), spec: &Value) {
        let mut all = json!({
            "holderIdentity": "a", "leaseDurationSeconds": 600, "leaseTransitions": 3,
            "acquireTime": ago(3 * 3600 + 10), "renewTime": ago(1),
        });
        for (name, value) in spec.as_object().unwrap() {
            all[name] = value.clone();
        }
        self.api.put("leases", key, |fields| {
            fields.insert("spec".to_owned(), all);
        });
    }

    /// Writes a candidate for a lease of its namespace. Its ack lies ahead, which counts as one of this moment for as long
    /// as a test takes.
    pub(crate) fn candidate(&self, (namespace, name): (&str, &str), lease: &str, version: &str) {
        self.api
            .put("leasecandidates", (namespace, name), |fields| {
                fields["metadata"]["annotations"] = json!({"elector.dev/protocol": "1"});
                fields["spec"] = json!({
                    "leaseName": lease, "binaryVersion": version, "emulationVersion": version,
                    "strategy": "OldestEmulationVersion", "renewTime": ago(-600),
                });
            });
    }

    /// Runs the plugin to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The output of the plugin when all is well.
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        text(&output.stdout)
    }

    /// Starts the plugin.
    pub(crate) fn start_plugin(&self, arguments: &[&str]) -> RunningPlugin {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (say, coming) = sync_channel(100);
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        RunningPlugin { child, coming }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-elector"));
        command
            .args(arguments)
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }
}

/// A plugin that goes on. Killed when it is dropped.
pub(crate) struct RunningPlugin {
    child: Child,
    coming: Receiver<String>,
}

// === impl RunningPlugin ===

impl RunningPlugin {
    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        self.coming.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for RunningPlugin {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The time so many seconds ago, as it stands in objects.
pub(crate) fn ago(seconds: i64) -> String {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let micros = i64::try_from(now.as_micros()).unwrap();
    Rfc3339(Timestamp::from_micros(micros - seconds * 1_000_000).unwrap()).to_string()
}

/// The words of a command that fails.
#[track_caller]
pub(crate) fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// Expects a text within another one.
#[track_caller]
pub(crate) fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in {text}");
}

/// The words of each line of a table.
pub(crate) fn words(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().map(str::split_whitespace);
    lines.map(Iterator::collect).collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Serves the recorded answers, and all else from the embedded server, in a thread of its own until this process ends.
fn listen(api: &ApiServer, recorded: &Arc<RecordedAnswers>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let (api, recorded) = (api.clone(), Arc::clone(recorded));
    let router = Router::new().fallback(move |request: Request| {
        let (api, recorded) = (api.clone(), Arc::clone(&recorded));
        async move {
            let (parts, body) = request.into_parts();
            let bytes = to_bytes(body, usize::MAX).await.unwrap();
            if let Some(answer) = recorded.of(parts.uri.path(), &bytes) {
                return answer;
            }
            let request = Request::from_parts(parts, Body::from(bytes));
            let embedded = api.service("system:anonymous");
            embedded.oneshot(request).await.unwrap()
        }
    });
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await
        })
    });
    address
}

// === impl RecordedAnswers ===

impl RecordedAnswers {
    fn of(&self, path: &str, body: &[u8]) -> Option<Response> {
        let recorded = self.0.lock().unwrap();
        let body = serde_json::from_slice(body).unwrap_or_default();
        let (code, answer) = recorded.get(path)?(&body);
        Some(match answer {
            Value::String(text) => (code, text).into_response(),
            answer => {
                let json = [(CONTENT_TYPE, "application/json")];
                (code, json, answer.to_string()).into_response()
            }
        })
    }
}
