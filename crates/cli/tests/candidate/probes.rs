//! The answers of `elector candidate` to the probes of a kubelet.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use elector_testing::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{elector, runs};

/// A cluster whose API server is away.
const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "away",
    "contexts": [{"name": "away", "context": {"cluster": "away"}}],
    "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}]}"#;

/// A candidate that is killed with the test.
struct ServingCandidate {
    child: Child,
    address: String,
}

// === impl ServingCandidate ===

impl ServingCandidate {
    /// Starts it, and waits until it serves.
    fn start(kubeconfig: &str, flags: &[&str]) -> Self {
        let mut child = candidate(kubeconfig, "127.0.0.1:0")
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let serves = line["msg"] == "serving health";
            serves.then(|| line["address"].as_str().unwrap().to_owned())
        });
        // The rest of the lines must have a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address: address.unwrap(),
        }
    }

    /// The status and the body.
    #[track_caller]
    fn answers(&self, path: &str, (status, text): (u16, &str)) {
        assert_eq!(self.probe(path), (status, text.to_owned()), "{path}");
    }

    fn probe(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let patience = Some(Duration::from_secs(10));
        stream.set_read_timeout(patience).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }
}

impl Drop for ServingCandidate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kubeconfig(folder: &TempDir) -> String {
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, KUBECONFIG).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Waits until the condition is met.
fn until(what: &str, condition: impl Fn() -> bool) {
    wait_until(what, || condition().then_some(()));
}

fn candidate(kubeconfig: &str, address: &str) -> Command {
    let mut command = elector();
    command
        .args(["candidate", "--mode=plain", "--lease=web", "--namespace=ns"])
        .args(["--logging-format=json", "--kubeconfig", kubeconfig])
        .env("ELECTOR_HEALTH_PROBE_BIND_ADDRESS", address);
    command
}

/// Neither check asks who leads, nor whether the API server answers: a restart would mend neither.
#[test]
fn a_candidate_that_waits_is_live_and_ready_although_its_server_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = &kubeconfig(&folder);
    let mut candidate = ServingCandidate::start(kubeconfig, &[]);
    candidate.answers(
        "/livez?verbose",
        (200, "[+]ping ok\n[+]work ok\nlivez check passed\n"),
    );
    candidate.answers(
        "/readyz?verbose",
        (
            200,
            "[+]ping ok\n[+]health ok\n[+]shutdown ok\nreadyz check passed\n",
        ),
    );
    candidate.answers("/livez/work", (200, "ok"));
    candidate.answers("/healthz", (200, "ok"));
    assert_eq!(candidate.probe("/metrics").0, 404);

    let second = self::candidate(kubeconfig, &candidate.address)
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8(second.stderr).unwrap();
    let expected = format!(
        "error: failed to listen where --health-probe-bind-address says, on {}: Address already in use",
        candidate.address
    );
    assert!(said.contains(&expected), "{said}");

    kill_process(Pid::from_child(&candidate.child), Signal::TERM).unwrap();
    assert!(candidate.child.wait().unwrap().success());
}

/// It is ready when its health command exits with 0, and says what that wrote when it does not.
#[test]
fn a_candidate_is_ready_while_its_health_command_passes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let command = format!(
        "test -e {} || {{ echo no disk for $ELECTOR_LEASE$ELECTOR_TERM >&2; exit 3; }}",
        disk.display()
    );
    let flags = [
        &format!("--health-command={command}"),
        "--health-period=100ms",
        "--health-failure-threshold=2",
    ];
    let candidate = ServingCandidate::start(&kubeconfig(&folder), &flags);
    until("it is not ready", || candidate.probe("/readyz").0 == 500);
    candidate.answers(
        "/readyz/health",
        (
            500,
            "internal server error: unwell: exit status: 3: no disk for ns/web\n",
        ),
    );
    assert_eq!(candidate.probe("/livez").0, 200, "a restart brings no disk");
    std::fs::write(&disk, "").unwrap();
    until("it is ready", || candidate.probe("/readyz").0 == 200);
    std::fs::remove_file(&disk).unwrap();
    until("it is not ready", || candidate.probe("/readyz").0 == 500);
}

/// With all that it has started.
#[test]
fn a_health_command_that_takes_too_long_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! >> {}; wait", pid.display());
    let command = serde_json::json!(["sh", "-c", script]);
    let flags = [
        &format!("--health-command={command}"),
        "--health-period=100ms",
        "--health-timeout=500ms",
    ];
    let candidate = ServingCandidate::start(&kubeconfig(&folder), &flags);
    let started = || std::fs::read_to_string(&pid).unwrap_or_default();
    until("two are started", || started().lines().count() >= 2);
    let first = started().lines().next().unwrap().to_owned();
    until("the first is killed", || !runs(&first));
    let (_, said) = candidate.probe("/readyz/health");
    assert!(said.contains("unwell: no answer within 500ms"), "{said}");
}
