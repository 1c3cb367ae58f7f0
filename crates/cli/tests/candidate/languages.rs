//! Programs in other languages beside a candidate: those of the manifests, and samples of clients that know nothing of
//! Elector, as their documentation has them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use elector_apiserver::{ApiServer, Config};
use elector_testing::{listen, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::elector;

/// A cluster, and the Pods on it.
struct ProgramHost {
    server: ApiServer,
    folder: TempDir,
}

/// A process that is killed with the test, and the lines that it wrote.
struct ContainerProcess {
    child: Child,
    lines: Arc<Mutex<Vec<(Instant, String)>>>,
}

/// The renew deadline of the sidecars.
const DEADLINE: Duration = Duration::from_secs(2);

// === impl ProgramHost ===

impl ProgramHost {
    fn new() -> Self {
        let server = ApiServer::new(Config::default());
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = listen(&server).to_string();
        fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        Self { server, folder }
    }

    fn sidecar(&self, pod: &str, port: u16) -> ContainerProcess {
        ContainerProcess::start(&mut self.candidate(pod, port))
    }

    fn candidate(&self, pod: &str, port: u16) -> Command {
        let token = self.token(pod);
        let mut command = elector();
        command
            .args(["candidate", "--mode=as-client-go", "--lease=web"])
            .args(["--namespace=default", "--kubeconfig=kubeconfig"])
            .args(["--lease-duration=4s", "--renew-deadline=2s"])
            .arg(format!("--http=127.0.0.1:{port}"))
            .arg(format!("--http-token-file={}", token.display()))
            .env("POD_NAME", pod)
            .current_dir(self.folder.path());
        command
    }

    /// A candidate whose command is started at once: it writes its process id, and then runs that line.
    fn warm(&self, pod: &str, port: u16, line: &str) -> ContainerProcess {
        let script = format!("echo $$ >{pod}.pid; echo begun; {line}");
        let mut command = self.candidate(pod, port);
        let command = command.args(["--grace-period=1500ms", "--warm", "--"]);
        ContainerProcess::start(command.args(["bash", "-c", &script]))
    }

    /// True while the command of that Pod runs.
    fn runs(&self, pod: &str) -> bool {
        let file = self.folder.path().join(format!("{pod}.pid"));
        crate::runs(fs::read_to_string(file).unwrap().trim())
    }

    /// A word to the candidate of that Pod.
    fn post(&self, (pod, port): (&str, u16), word: &str) {
        let token = fs::read_to_string(self.token(pod)).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let token = token.trim();
        let request = format!(
            "POST /{word} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn token(&self, pod: &str) -> PathBuf {
        self.folder.path().join(format!("{pod}.token"))
    }

    fn holder(&self) -> String {
        let lease = self.server.object("leases", ("default", "web"));
        let lease = lease.unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.unwrap_or_default().to_owned()
    }
}

// === impl ContainerProcess ===

impl ContainerProcess {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = Arc::<Mutex<Vec<_>>>::default();
        let (written, stdout) = (Arc::clone(&lines), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                written.lock().unwrap().push((Instant::now(), line));
            }
        });
        Self { child, lines }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// When it first wrote that line at that time or later.
    fn wrote(&self, line: &str, since: Instant) -> Instant {
        wait_until(line, || {
            let lines = self.lines.lock().unwrap();
            let found = lines
                .iter()
                .find(|(at, written)| *at >= since && written == line);
            found.map(|(at, _)| *at)
        })
    }

    /// When it last wrote that line.
    fn wrote_last(&self, line: &str) -> Instant {
        let lines = self.lines.lock().unwrap();
        let found = lines.iter().rev().find(|(_, written)| written == line);
        found.unwrap().0
    }
}

impl Drop for ContainerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn program(file: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.join("manifests/examples/programs").join(file)
}

/// The command lives on from term to term, unless its candidate hangs: then it is killed before another Pod can lead.
#[test]
fn a_warm_command_that_says_when_it_has_stopped_lives_on() {
    let node = ProgramHost::new();
    let (began, ports) = (Instant::now(), [free_port(), free_port()]);
    let line = format!("exec python3 -u {}", program("work.py").display());
    let first = node.warm("web-0", ports[0], &line);
    first.wrote("step", began);
    let second = node.warm("web-1", ports[1], &line);
    second.wrote("begun", began);

    let asked = Instant::now();
    node.post(("web-0", ports[0]), "unwell");
    let stopped = first.wrote("stopped", asked);
    let started = second.wrote("started", asked);
    assert!(first.wrote_last("step") < started && stopped < started);
    assert!(node.runs("web-0"), "it has said that it has stopped");

    node.post(("web-0", ports[0]), "well");
    let hangs = Instant::now();
    second.signal(Signal::STOP);
    let started = first.wrote("started", hangs);
    assert!(!node.runs("web-1"), "its supervisor did not kill it");
    assert!(second.wrote_last("step") < started);
    second.signal(Signal::CONT);
    first.signal(Signal::TERM);
    wait_until("it ends", || (!node.runs("web-0")).then_some(()));
}

#[test]
fn a_warm_command_that_says_nothing_is_killed_and_its_candidate_ends_with_it() {
    let node = ProgramHost::new();
    let ports = [free_port(), free_port()];
    let mut first = node.warm("web-0", ports[0], "sleep 600");
    let leads = |pod: &'static str| {
        wait_until("it leads", || node.holder().starts_with(pod).then_some(()));
    };
    leads("web-0-");
    let _second = node.warm("web-1", ports[1], "sleep 600");
    node.post(("web-0", ports[0]), "unwell");
    leads("web-1-");
    assert!(!node.runs("web-0"), "two commands at work");
    let ended = wait_until("it ends", || first.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(137));
    let mut third = node.warm("web-2", free_port(), "exit 7");
    let ended = wait_until("it ends", || third.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(7), "of a standby too");
}

/// The simple API of nais/elector, with what its documentation leaves to the reader: here a host name that is the Pod's.
const PYTHON_SAMPLE: &str = r#"
import os
import sys
import types
import json
import urllib.request

# Stand for the library of that name, and for the host name of a Pod.
requests = types.SimpleNamespace(get=lambda url: types.SimpleNamespace(json=lambda: json.load(urllib.request.urlopen(url))))
socket = types.SimpleNamespace(gethostname=lambda: sys.argv[1])

def is_leader():
    elector_url = os.getenv("ELECTOR_GET_URL")
    resp = requests.get(elector_url)
    leader = resp.json()["name"]
    return socket.gethostname() == leader

print(str(is_leader()).lower())
"#;

const JAVASCRIPT_SAMPLE: &str = r#"
const os = { hostname: () => process.argv[2] }

async function isLeader() {
    const hostname = os.hostname()
    const electorUrl = process.env.ELECTOR_GET_URL

    const electorResponse = await fetch(electorUrl)
    if (!electorResponse.ok) {
        throw new Error(
            `Failed to fetch leader from ${electorUrl}, response: ${electorResponse.status} ${electorResponse.statusText}`,
        )
    }
    const result = await electorResponse.json()

    return result.name === hostname
}

isLeader().then((leads) => console.log(leads))
"#;

/// A client of nais/elector gets a yes on the Pod that leads, and on no other one.
#[test]
fn samples_of_clients_of_nais_elector_get_their_answers() {
    let node = ProgramHost::new();
    let ports = [free_port(), free_port()];
    let _first = node.sidecar("web-0", ports[0]);
    wait_until("it leads", || {
        node.holder().starts_with("web-0-").then_some(())
    });
    let _second = node.sidecar("web-1", ports[1]);
    for port in ports {
        let is_first = || (leader(port)? == "web-0").then_some(());
        wait_until("it is heard of", is_first);
    }
    for (interpreter, file, sample) in [
        ("python3", "sample.py", PYTHON_SAMPLE),
        ("node", "sample.js", JAVASCRIPT_SAMPLE),
    ] {
        let path = node.folder.path().join(file);
        fs::write(&path, sample).unwrap();
        for (pod, port, answer) in [("web-0", ports[0], "true"), ("web-1", ports[1], "false")] {
            let output = Command::new(interpreter)
                .arg(&path)
                .arg(pod)
                .env("ELECTOR_GET_URL", format!("http://127.0.0.1:{port}/"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(said.trim(), answer, "{interpreter} on {pod}: {output:?}");
        }
    }
}

/// A command has the variables of nais/elector, and hears there of the term that it has in its environment.
#[test]
fn a_command_finds_the_answers_by_its_environment() {
    let node = ProgramHost::new();
    let script = "curl -s ${ELECTOR_GET_URL}leader; echo; curl -s http://$ELECTOR_PATH/; curl -sN --max-time 1 $ELECTOR_SSE_URL
        echo; echo $ELECTOR_TOKEN; cat $ELECTOR_HTTP_TOKEN_FILE; sleep 600";
    let mut command = node.candidate("web-0", 0);
    let candidate = ContainerProcess::start(command.args(["--", "bash", "-c", script]));
    let lines = wait_until("the command has written", || {
        let lines = candidate.lines.lock().unwrap();
        let lines: Vec<_> = lines.iter().map(|(_, line)| line.clone()).collect();
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        (lines.len() >= 5).then_some(lines)
    });
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let asked = json(&lines[0]);
    let expected = [&json!(true), &json!("web-0")];
    assert_eq!([&asked["is_leader"], &asked["name"]], expected);
    assert_eq!(json(&lines[1])["name"], "web-0");
    let event = lines[2].strip_prefix("data: ").unwrap();
    assert_eq!(json(event)["name"], "web-0");
    assert_eq!(asked["token"].to_string(), lines[3]);
    let token = fs::read_to_string(node.token("web-0")).unwrap();
    assert_eq!(token.trim(), lines[4]);
}

fn leader(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body).ok()?;
    Some(body["name"].as_str()?.to_owned())
}

/// The first code of that language on the page.
fn code_of_the_page(language: &str) -> String {
    let page = include_str!("../../../../docs/languages.md");
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// They lead while their child does, and no longer than it said when it hangs.
#[test]
fn the_readers_of_the_page_follow_the_events_of_a_child() {
    let python =
        "\nwhile True:\n    print('yes' if leads() else 'no', flush=True)\n    time.sleep(0.05)\n";
    let javascript = "\nsetInterval(() => console.log(leads() ? 'yes' : 'no'), 50)\n";
    let bash = "\nwhile true; do leads && echo yes || echo no; sleep 0.05; done\n";
    let loops = [
        ("python3", "python", python),
        ("node", "javascript", javascript),
        ("bash", "bash", bash),
    ];
    for (interpreter, language, rest) in loops {
        let node = ProgramHost::new();
        let file = node.folder.path().join("reader");
        fs::write(&file, code_of_the_page(language) + rest).unwrap();
        // The name that the page has for our program, which tells its process.
        let name = node.folder.path().join("elector");
        let script = format!(
            "#!/bin/sh\necho $$ >{0}/pid\nexec {1} \"$@\"\n",
            node.folder.path().display(),
            elector().get_program().display()
        );
        fs::write(&name, script).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&name, executable).unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", node.folder.path().display());
        let began = Instant::now();
        let reader = ContainerProcess::start(
            Command::new(interpreter)
                .arg(&file)
                .env("PATH", path)
                .env("ELECTOR_NAMESPACE", "default")
                .env("ELECTOR_KUBECONFIG", "kubeconfig")
                .env("ELECTOR_ABSENT_LEASE_GRACE", "0s")
                .env("ELECTOR_LEASE_DURATION", "4s")
                .env("ELECTOR_RENEW_DEADLINE", "2s")
                .current_dir(node.folder.path()),
        );
        reader.wrote("yes", began);
        // Renewals carry it on.
        std::thread::sleep(2 * DEADLINE);
        reader.wrote("yes", Instant::now());
        let child = fs::read_to_string(node.folder.path().join("pid")).unwrap();
        let child = Pid::from_raw(child.trim().parse().unwrap()).unwrap();
        let hangs = Instant::now();
        kill_process(child, Signal::STOP).unwrap();
        std::thread::sleep(DEADLINE + Duration::from_millis(1_500));
        kill_process(child, Signal::KILL).unwrap();
        let last = reader.wrote_last("yes");
        let took = last.saturating_duration_since(hangs);
        let holds = took < DEADLINE + Duration::from_millis(500);
        assert!(holds, "{language}: {took:?}");
    }
}
