//! An embedded API server that listens, and the plugin that asks it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use elector_api::Rfc3339;
use elector_apiserver::{ApiServer, Config};
use elector_protocol::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The server, listening until the test ends.
pub(crate) struct TestServer {
    pub(crate) api: ApiServer,
    folder: TempDir,
}

/// The longest wait for anything before the test fails: many times what it takes.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl TestServer ===

impl TestServer {
    pub(crate) fn start(config: Config) -> Self {
        let api = ApiServer::new(config);
        let mut kubeconfig = elector_testing::listen(&api);
        let shop =
            json!({"name": "shop", "context": {"cluster": "c", "user": "u", "namespace": "shop"}});
        kubeconfig["contexts"].as_array_mut().unwrap().push(shop);
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = kubeconfig.to_string();
        fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        Self { api, folder }
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

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
