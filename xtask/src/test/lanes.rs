//! Runs test programs side by side, and counts what they say.

use std::fmt;
use std::io::{self, BufRead as _, BufReader};
use std::iter::Sum;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::child_guard::ChildGuard;

/// Programs that run one after the other.
pub(super) type Lane = Vec<ProgramRun>;

/// A test program to be run.
#[derive(Debug)]
pub(super) struct ProgramRun {
    pub(super) name: String,
    pub(super) command: Command,
}

/// The result of a test program.
#[derive(Debug)]
pub(super) struct ProgramResult {
    name: String,
    pub(super) count: TestCount,
    took: Duration,
    /// The line of each test that failed.
    failed: Vec<String>,
    /// Why it counts as failed, whatever it counted itself.
    pub(super) failure: Option<String>,
}

/// The numbers of tests that passed, failed, and were ignored, and of programs that were killed after their time limit:
/// what these did not say is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TestCount([u64; 4]);

/// The words of libtest for the first of them.
const COUNTED: [&str; 4] = ["passed", "failed", "ignored", "killed"];

/// The time for which a killed program's output is still read.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Runs the lanes side by side. A program that fails, or has not ended after `limit`, keeps no other from running.
pub(super) fn run(lanes: Vec<Lane>, limit: Duration) -> Vec<ProgramResult> {
    // One program speaks at a time.
    let speech = &Mutex::new(());
    thread::scope(|scope| {
        let run_one = move |program| run_one(program, limit, speech);
        let run_lane =
            |lane: Lane| scope.spawn(move || lane.into_iter().map(run_one).collect::<Vec<_>>());
        let lanes: Vec<_> = lanes.into_iter().map(run_lane).collect();
        let ended = lanes
            .into_iter()
            .map(|lane| lane.join().expect("a lane does not panic"));
        ended.flatten().collect()
    })
}

/// Runs one. What it says of each test is shown at once; what else it says, when it has ended, in one piece.
fn run_one(program: ProgramRun, limit: Duration, speech: &Mutex<()>) -> ProgramResult {
    let start = Instant::now();
    let mut result = ProgramResult {
        name: program.name,
        count: TestCount::default(),
        took: Duration::ZERO,
        failed: Vec::new(),
        failure: None,
    };
    match run_to_end(program.command, limit, &mut result, speech) {
        Ok(held) => {
            result.took = start.elapsed();
            let _speech = speech.lock();
            println!(
                "\n== {}\n{}\n",
                result.line(),
                held.join("\n").trim_matches('\n')
            );
        }
        Err(error) => result.failure = Some(format!("it cannot be started: {error}")),
    }
    result
}

/// Runs a command until it ends, or kills it after `limit`. Returns the lines that are not shown yet.
fn run_to_end(
    mut command: Command,
    limit: Duration,
    result: &mut ProgramResult,
    speech: &Mutex<()>,
) -> io::Result<Vec<String>> {
    let (pipe, said) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said);
    let mut guard = ChildGuard::spawn(&mut command)?;
    // The pipe closes with the last process that has it, and this one is none of them.
    drop(command);
    let mut deadline = Instant::now() + limit;
    let (lines, received) = mpsc::sync_channel(64);
    thread::spawn(move || {
        let mut read = BufReader::new(pipe).split(b'\n').map_while(Result::ok);
        // The output of a test may be no text.
        read.try_for_each(|line| lines.send(String::from_utf8_lossy(&line).into_owned()))
    });
    let mut held = Vec::new();
    let mut is_killed = false;
    loop {
        match received.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let count = TestCount::of_line(&line);
                if count.is_none() && line.starts_with("test ") {
                    let _speech = speech.lock();
                    println!("{}: {line}", result.name);
                    if line.contains(" ... FAILED") {
                        result.failed.push(line);
                    }
                } else {
                    held.push(line);
                }
                result.count = [result.count, count.unwrap_or_default()].into_iter().sum();
            }
            Err(RecvTimeoutError::Timeout) if !is_killed => {
                guard.kill_group()?;
                is_killed = true;
                deadline = Instant::now() + LAST_WORDS;
            }
            // Something that left the group may hold the pipe for ever.
            Err(_) => break,
        }
    }
    if is_killed {
        result.count.0[3] = 1;
        result.failure = Some(format!(
            "killed: it had not ended after {} s",
            limit.as_secs_f64()
        ));
    } else if let Err(error) = guard.ends_well() {
        result.failure = Some(error.to_string());
    }
    Ok(held)
}

// === impl ProgramResult ===

impl ProgramResult {
    /// The result, in a line.
    pub(super) fn line(&self) -> String {
        let line = format!(
            "{}: {} in {:.1} s",
            self.name,
            self.count,
            self.took.as_secs_f64()
        );
        match &self.failure {
            None => line,
            Some(failure) => {
                let failed = self.failed.iter().map(|test| format!("\n    {test}"));
                format!("{line}; FAILED ({failure}){}", failed.collect::<String>())
            }
        }
    }
}

// === impl TestCount ===

impl TestCount {
    /// The counts of a libtest line: `test result: ok. 3 passed; 0 failed; 1 ignored; …`. `None` for any other line.
    fn of_line(line: &str) -> Option<Self> {
        let (_, parts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        Some(Self(COUNTED.map(|word| {
            let of_word = |part: &str| part.strip_suffix(word)?.trim().parse().ok();
            parts.split("; ").find_map(of_word).unwrap_or(0)
        })))
    }
}

impl Sum for TestCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, count| {
            Self(std::array::from_fn(|at| sum.0[at] + count.0[at]))
        })
    }
}

impl fmt::Display for TestCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.0[0], self.0[1])?;
        for (count, word) in [(self.0[2], "skipped"), (self.0[3], "timed out")] {
            if count > 0 {
                write!(f, ", {count} {word}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    fn shell(script: &str) -> ProgramRun {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        ProgramRun {
            name: script.to_owned(),
            command,
        }
    }

    #[test]
    fn a_program_that_fails_hides_none_of_the_others_and_all_are_counted() {
        let fails = shell(
            "echo test b ... FAILED; echo 'test result: FAILED. 1 passed; 2 failed; 3 ignored; 0 measured; 7 filtered out'; exit 101",
        );
        let mut missing = shell("");
        missing.command = Command::new("/nowhere/to/be/found");
        let after = shell("echo test a ... ok; echo 'test result: ok. 4 passed; 0 failed'");
        let beside = shell("echo 'test result: ok. 8 passed; 0 failed' >&2");
        let lanes = vec![
            vec![fails, shell("kill -9 $$"), missing, after],
            vec![beside],
        ];
        let ended = run(lanes, LIMIT);
        let failed: Vec<_> = ended.iter().map(|one| one.failure.is_some()).collect();
        assert_eq!(failed, [true, true, true, false, false]);
        let line = ended[0].line();
        let holds = line.contains(": 1 passed, 2 failed, 3 skipped in ");
        assert!(holds, "{line}");
        let holds = line.ends_with("FAILED (exit status: 101)\n    test b ... FAILED");
        assert!(holds, "{line}");
        let sum: TestCount = ended.iter().map(|one| one.count).sum();
        assert_eq!(sum.to_string(), "13 passed, 2 failed, 3 skipped");
    }

    #[test]
    fn programs_of_two_lanes_run_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        // Each waits for what the other does first, for 20 s at most.
        let meet = |mine: &str, theirs: &str| {
            let folder = folder.path().display();
            vec![shell(&format!(
                "cd {folder}; touch {mine}; for i in $(seq 400); do [ -e {theirs} ] && exit 0; sleep 0.05; done; exit 1"
            ))]
        };
        for ended in run(vec![meet("one", "other"), meet("other", "one")], LIMIT) {
            assert_eq!(ended.failure, None, "{}", ended.name);
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        // The child holds the pipe, and works on after its parent.
        let hangs = shell(&format!(
            "(while :; do echo x >>{}; sleep 0.02; done) & echo waiting; wait",
            alive.display()
        ));
        let after = shell("echo 'test result: ok. 4 passed; 0 failed'");
        let started = Instant::now();
        let results = run(vec![vec![hangs, after]], Duration::from_millis(500));
        assert!(started.elapsed() < LAST_WORDS, "{:?}", started.elapsed());
        let line = results[0].line();
        let holds = line.contains("1 timed out in 0.5 s; FAILED (killed: ");
        assert!(holds, "{line}");
        assert_eq!((results[1].count.0[0], &results[1].failure), (4, &None));
        let size = || std::fs::metadata(&alive).unwrap().len();
        let at_first = size();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(size(), at_first, "its child still writes");
    }
}
