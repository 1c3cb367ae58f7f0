//! Runs test programs side by side, and tells apart what they say.

use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use crate::child_guard::ChildGuard;
use crate::test::count::TestCount;

/// A test program to be run.
#[derive(Debug)]
pub(super) struct ProgramRun {
    /// Its name.
    pub(super) name: String,
    pub(super) command: Command,
}

/// The result of a test program.
#[derive(Debug)]
pub(super) struct ProgramResult {
    pub(super) name: String,
    pub(super) tally: TestCount,
    pub(super) took: Duration,
    /// Why it counts as failed, whatever it counted itself.
    pub(super) failure: Option<String>,
}

type Pipe = Box<dyn Read + Send>;

/// The time for which a killed program's output is still read.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Runs the lanes side by side, and the programs of a lane one after the other. A program that fails, or has not ended
/// after `limit`, keeps no other from running.
pub(super) fn run(lanes: Vec<Vec<ProgramRun>>, limit: Duration) -> Vec<ProgramResult> {
    // One program speaks at a time.
    let speech = Mutex::new(());
    thread::scope(|scope| {
        let lanes: Vec<_> = lanes
            .into_iter()
            .map(|lane| {
                let speech = &speech;
                let run_one = move |program| run_one(program, limit, speech);
                scope.spawn(move || lane.into_iter().map(run_one).collect::<Vec<_>>())
            })
            .collect();
        lanes
            .into_iter()
            .flat_map(|lane| lane.join().expect("a lane does not panic"))
            .collect()
    })
}

/// Runs one. What it says of each test is shown at once; what else it says, when it has ended, in one piece.
fn run_one(program: ProgramRun, limit: Duration, speech: &Mutex<()>) -> ProgramResult {
    let mut result = ProgramResult {
        name: program.name,
        tally: TestCount::default(),
        took: Duration::ZERO,
        failure: None,
    };
    let start = Instant::now();
    match run_to_end(program.command, limit, &mut result, speech) {
        Ok(held) => {
            result.took = start.elapsed();
            let _speech = speech.lock();
            println!("\n== {}", result.line());
            println!("{}\n", held.join("\n").trim_matches('\n'));
        }
        Err(error) => result.failure = Some(format!("it cannot be started: {error}")),
    }
    result
}

/// Runs a command until it ends, or kills it after `limit`. The lines that are not shown yet.
fn run_to_end(
    mut command: Command,
    limit: Duration,
    result: &mut ProgramResult,
    speech: &Mutex<()>,
) -> io::Result<Vec<String>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut deadline = Instant::now() + limit;
    let mut guard = ChildGuard::spawn(&mut command)?;
    let (lines, received) = mpsc::sync_channel(64);
    let child = guard.child_mut();
    // Each thread ends with its pipe.
    for pipe in [
        child.stdout.take().map(|pipe| Box::new(pipe) as Pipe),
        child.stderr.take().map(|pipe| Box::new(pipe) as Pipe),
    ] {
        let (pipe, lines) = (pipe.expect("it is piped"), lines.clone());
        thread::spawn(move || send_lines(pipe, &lines));
    }
    drop(lines);
    let mut held = Vec::new();
    let mut is_killed = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match received.recv_timeout(left) {
            Ok(line) => {
                if let Some(tally) = TestCount::of_line(&line) {
                    result.tally += tally;
                }
                if line.starts_with("test ") && !line.starts_with("test result: ") {
                    let _speech = speech.lock();
                    println!("{}: {line}", result.name);
                } else {
                    held.push(line);
                }
            }
            // Something that left the group may hold the pipe for ever.
            Err(RecvTimeoutError::Timeout) if is_killed => break,
            Err(RecvTimeoutError::Timeout) => {
                guard.kill_group()?;
                is_killed = true;
                deadline = Instant::now() + LAST_WORDS;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    result.failure = if is_killed {
        result.tally.timed_out = 1;
        let limit = limit.as_secs_f64();
        Some(format!("killed: it had not ended after {limit} s"))
    } else {
        match guard.child_mut().wait() {
            Ok(status) if status.success() => None,
            Ok(status) => Some(status.to_string()),
            Err(error) => Some(format!("it cannot be waited for: {error}")),
        }
    };
    Ok(held)
}

/// Sends every line until the pipe is closed.
fn send_lines(pipe: Pipe, lines: &SyncSender<String>) {
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        // The output of a test may be no text.
        let line = String::from_utf8_lossy(&line).into_owned();
        if lines.send(line).is_err() {
            break;
        }
    }
}

// === impl ProgramResult ===

impl ProgramResult {
    /// The result, in a line.
    pub(super) fn line(&self) -> String {
        let seconds = self.took.as_secs_f64();
        let line = format!("{}: {} in {seconds:.1} s", self.name, self.tally);
        match &self.failure {
            None => line,
            Some(failure) => format!("{line}; FAILED ({failure})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    fn shell(name: &str, script: &str) -> ProgramRun {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        ProgramRun {
            name: name.to_owned(),
            command,
        }
    }

    #[test]
    fn a_program_that_fails_hides_none_of_the_others() {
        let fails = shell(
            "fails",
            "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 101",
        );
        let dies = shell("dies", "kill -9 $$");
        let after = shell(
            "after",
            "echo 'test result: ok. 4 passed; 0 failed; 1 ignored'",
        );
        let beside = shell("beside", "echo 'test result: ok. 8 passed; 0 failed'");
        let missing = ProgramRun {
            name: "missing".to_owned(),
            command: Command::new("/nowhere/to/be/found"),
        };
        let ended = run(vec![vec![fails, dies, missing, after], vec![beside]], LIMIT);
        let seen: Vec<_> = ended
            .iter()
            .map(|one| (one.name.as_str(), one.tally.passed, one.failure.is_some()))
            .collect();
        assert_eq!(
            seen,
            [
                ("fails", 1, true),
                ("dies", 0, true),
                ("missing", 0, true),
                ("after", 4, false),
                ("beside", 8, false)
            ]
        );
        let line = ended[0].line();
        assert!(line.starts_with("fails: 1 passed, 2 failed in "), "{line}");
        assert!(line.ends_with("FAILED (exit status: 101)"), "{line}");
    }

    #[test]
    fn programs_of_two_lanes_run_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        // Each waits for what the other does first, for 20 s at most.
        let meet = |mine: &std::path::Path, theirs: &std::path::Path| {
            let (mine, theirs) = (mine.display(), theirs.display());
            format!(
                "touch {mine}; for i in $(seq 400); do [ -e {theirs} ] && exit 0; sleep 0.05; done; exit 1"
            )
        };
        let lanes = vec![
            vec![shell("one", &meet(&one, &other))],
            vec![shell("other", &meet(&other, &one))],
        ];
        for ended in run(lanes, LIMIT) {
            assert_eq!(ended.failure, None, "{}", ended.name);
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        // The child holds the pipe, and works on after its parent.
        let script = format!(
            "echo 'test one ... ok'; (while :; do echo x >>{}; sleep 0.02; done) & echo waiting; wait",
            alive.display()
        );
        let hangs = shell("hangs", &script);
        let after = shell("after", "echo 'test result: ok. 4 passed; 0 failed'");
        let started = Instant::now();
        let results = run(vec![vec![hangs, after]], Duration::from_millis(500));
        assert!(started.elapsed() < LAST_WORDS, "{:?}", started.elapsed());

        let line = results[0].line();
        assert!(
            line.ends_with("1 timed out in 0.5 s; FAILED (killed: it had not ended after 0.5 s)"),
            "{line}"
        );
        assert_eq!((results[1].tally.passed, &results[1].failure), (4, &None));
        let size = || std::fs::metadata(&alive).unwrap().len();
        let at_first = size();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(size(), at_first, "its child still writes");
    }
}
