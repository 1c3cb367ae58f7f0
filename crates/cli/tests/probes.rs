//! What `elector candidate` says to the probes of a kubelet.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A cluster whose API server is away.
const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "away",
    "contexts": [{"name": "away", "context": {"cluster": "away"}}],
    "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}]}"#;

/// A candidate that is killed with the test.
struct ProbedCandidate {
    child: Child,
    address: String,
}

// === impl ProbedCandidate ===

impl ProbedCandidate {
    /// Starts it, and waits until it serves.
    fn start(kubeconfig: &str) -> Self {
        let mut child = candidate(kubeconfig, "127.0.0.1:0")
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

impl Drop for ProbedCandidate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn candidate(kubeconfig: &str, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_elector"));
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
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, KUBECONFIG).unwrap();
    let kubeconfig = file.to_str().unwrap();
    let mut candidate = ProbedCandidate::start(kubeconfig);
    assert_eq!(
        candidate.probe("/livez?verbose"),
        (
            200,
            "[+]ping ok\n[+]work ok\nlivez check passed\n".to_owned()
        )
    );
    assert_eq!(
        candidate.probe("/readyz?verbose"),
        (
            200,
            "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n".to_owned()
        )
    );
    let ok = (200, "ok".to_owned());
    assert_eq!(
        [candidate.probe("/livez/work"), candidate.probe("/healthz")],
        [ok.clone(), ok]
    );
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

    let pid = Pid::from_raw(candidate.child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(candidate.child.wait().unwrap().success());
}
