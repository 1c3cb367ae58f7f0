//! Runs test programs side by side, and tells apart what they say.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use crate::test::count::TestCount;

/// A test program to be run.
#[derive(Debug)]
pub(super) struct ProgramRun {
    /// What it is called.
    pub(super) name: String,
    pub(super) command: Command,
}

/// What came of a test program.
#[derive(Debug)]
pub(super) struct ProgramResult {
    pub(super) name: String,
    pub(super) tally: TestCount,
    pub(super) took: Duration,
    /// Why it counts as failed, whatever it counted itself.
    pub(super) failure: Option<String>,
}

/// Runs the lanes side by side, and the programs of a lane one after the other. A program that fails keeps no other
/// from running.
pub(super) fn run(lanes: Vec<Vec<ProgramRun>>) -> Vec<ProgramResult> {
    // One program speaks at a time.
    let speech = Mutex::new(());
    thread::scope(|scope| {
        let lanes: Vec<_> = lanes
            .into_iter()
            .map(|lane| {
                let speech = &speech;
                let run_one = move |program| one(program, speech);
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
fn one(mut program: ProgramRun, speech: &Mutex<()>) -> ProgramResult {
    let start = Instant::now();
    let mut ended = ProgramResult {
        name: program.name,
        tally: TestCount::default(),
        took: Duration::ZERO,
        failure: None,
    };
    let child = program
        .command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            ended.failure = Some(format!("it cannot be started: {error}"));
            return ended;
        }
    };
    let (lines, received) = mpsc::sync_channel(64);
    let stdout = child.stdout.take().map(|pipe| read(pipe, lines.clone()));
    let stderr = child.stderr.take().map(|pipe| read(pipe, lines));
    let mut held = Vec::new();
    for line in received {
        if let Some(tally) = TestCount::of_line(&line) {
            ended.tally += tally;
        }
        if line.starts_with("test ") && !line.starts_with("test result: ") {
            let _speech = speech.lock();
            println!("{}: {line}", ended.name);
        } else {
            held.push(line);
        }
    }
    for reader in [stdout, stderr].into_iter().flatten() {
        // It ended with its pipe, which is why there are no more lines.
        let _ = reader.join();
    }
    ended.failure = match child.wait() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(format!("it cannot be waited for: {error}")),
    };
    ended.took = start.elapsed();
    let _speech = speech.lock();
    println!("\n== {}", ended.line());
    println!("{}\n", held.join("\n").trim_matches('\n'));
    ended
}

/// Sends every line until the pipe is closed.
fn read(pipe: impl Read + Send + 'static, lines: SyncSender<String>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            // What a test prints may be no text.
            let line = String::from_utf8_lossy(&line).into_owned();
            if lines.send(line).is_err() {
                break;
            }
        }
    })
}

// === impl Ended ===

impl ProgramResult {
    /// What came of it, in a line.
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
        let ended = run(vec![vec![fails, dies, missing, after], vec![beside]]);
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
        for ended in run(lanes) {
            assert_eq!(ended.failure, None, "{}", ended.name);
        }
    }
}
