//! The programs of the manifests in three languages, each beside a sidecar of its own: one Pod works at a time.

use std::ffi::OsStr;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{StartedCandidate, Suite, TestProcess, Testbed, eventually};
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::time::Instant;

use crate::{GATE_OFF, OURS, PROMPTLY, SHORT_DEADLINE};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("program_in_bash", 20, |it| plays(it, "work.sh"));
    shared.add("program_in_python", 20, |it| plays(it, "work.py"));
    shared.add("program_in_go", 20, |it| plays(it, "work.go"));
}

/// The containers of a Pod: a sidecar and a program.
struct ProgramPod {
    sidecar: StartedCandidate,
    program: Option<TestProcess>,
    line: Vec<PathBuf>,
    environment: [(&'static str, String); 2],
    lines: Lines,
}

/// The lines that a program wrote, and when.
type Lines = Arc<Mutex<Vec<(Instant, String)>>>;

/// Through a hand-over, a crash of the program and a sidecar that hangs.
async fn plays(testbed: Arc<Testbed>, file: &'static str) -> Result<()> {
    let line = command_line(file, testbed.folder())?;
    let mut first = ProgramPod::start(&testbed, "web-0", &line).await?;
    let begun = Instant::now();
    first.wrote("step", begun).await?;
    let mut second = ProgramPod::start(&testbed, "web-1", &line).await?;
    second.sidecar.begins().await?;

    // A sidecar that is asked to end gives its program the time to stop, and the next begins after that.
    let asked = Instant::now();
    first.sidecar.terminate()?;
    let stopped = first.wrote("stopped", asked).await?;
    let started = second.wrote("started", asked).await?;
    ensure!(first.wrote_last("step") < Some(started), "both worked");
    let holds = stopped < started;
    ensure!(holds, "the next began before the last had stopped");
    first.sidecar.ends_well().await?;
    let took = started - asked;
    let holds = took < Duration::from_secs(8);
    ensure!(holds, "its word was not heard: {took:?}");

    // The program alone crashes, and is restarted as its container is: it goes on in the same term.
    let crashed = Instant::now();
    second.run(&testbed)?;
    second.wrote("step", crashed).await?;
    testbed.stays("web-1", 1).await?;

    // A sidecar that hangs answers nothing, so that the program stops by itself at its deadline; it may wait for an answer.
    let hangs = Instant::now();
    second.sidecar.process.signal(Signal::STOP)?;
    second.wrote("stopped", hangs).await?;
    let worked = second.wrote_last("step").map(|last| last - hangs);
    second.sidecar.process.signal(Signal::CONT)?;
    let step = Duration::from_secs(1);
    let holds = worked < Some(SHORT_DEADLINE + step);
    ensure!(holds, "it worked for {worked:?}");
    Ok(())
}

/// The command line of a program; one in Go is compiled first.
fn command_line(file: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/examples/programs");
    let source = programs.join(file);
    match source.extension().and_then(OsStr::to_str) {
        Some("sh") => return Ok(vec!["bash".into(), source]),
        Some("py") => return Ok(vec!["python3".into(), "-u".into(), source]),
        _ => {}
    }
    let program = folder.join("work");
    let mut build = Command::new("go");
    build.env("GO111MODULE", "off").args(["build", "-o"]);
    let status = build.arg(&program).arg(&source).status();
    ensure!(status?.success(), "go build {file} failed");
    Ok(vec![program])
}

// === impl ProgramPod ===

impl ProgramPod {
    async fn start(testbed: &Testbed, name: &str, line: &[PathBuf]) -> Result<Self> {
        let (candidate, address, token) = testbed.candidate(name).short().sidecar()?;
        let sidecar = candidate.start()?;
        eventually(PROMPTLY, || async { Ok(TcpStream::connect(address)?) }).await?;
        let mut pod = Self {
            sidecar,
            program: None,
            line: line.to_vec(),
            environment: [
                ("ELECTOR_GET_URL", format!("http://{address}/")),
                ("ELECTOR_HTTP_TOKEN_FILE", token.display().to_string()),
            ],
            lines: Lines::default(),
        };
        pod.run(testbed)?;
        Ok(pod)
    }

    /// Starts the program; one that runs is killed first.
    fn run(&mut self, testbed: &Testbed) -> Result<()> {
        self.program = None;
        let mut command = Command::new(&self.line[0]);
        command.args(&self.line[1..]).envs(self.environment.clone());
        let lines = Arc::clone(&self.lines);
        let note = move |line: &str| lines.lock().push((Instant::now(), line.to_owned()));
        self.program = Some(TestProcess::spawn(
            "program",
            command,
            testbed.folder(),
            note,
        )?);
        Ok(())
    }

    /// When it first wrote that line after that moment.
    async fn wrote(&self, line: &str, since: Instant) -> Result<Instant> {
        let find = || async {
            let lines = self.lines.lock();
            let mut found = lines.iter().filter(|(at, it)| *at >= since && it == line);
            let (at, _) = found.next().with_context(|| format!("no {line:?}"))?;
            Ok(*at)
        };
        eventually(PROMPTLY, find).await
    }

    /// When it last wrote that line.
    fn wrote_last(&self, line: &str) -> Option<Instant> {
        let lines = self.lines.lock();
        let last = lines.iter().rfind(|(_, it)| it == line)?;
        Some(last.0)
    }
}
