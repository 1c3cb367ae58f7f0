//! The hidden sub-commands between `elector candidate` and its command, and above it as process 1.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A supervisor and the pipe to it.
struct SupervisedScript {
    process: Child,
    folder: tempfile::TempDir,
}

/// How long anything may take: a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that leaves its session, its group and its parent, and stays.
const DAEMON: &str = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; sleep 300 & wait' &)";

fn elector(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_elector"));
    command.args(arguments).current_dir(folder);
    command
}

fn eventually<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The process id in a file, once its line is complete.
fn written(file: &Path) -> Pid {
    eventually("a process id is written", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        let id = text.strip_suffix('\n')?.parse().unwrap();
        Pid::from_raw(id)
    })
}

/// The state of a process and its parent, `None` where there is no such process.
fn state(process: Pid) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(") ")?;
    let mut fields = after.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

fn runs(process: Pid) -> bool {
    state(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// How a process ends, without any more being done to it.
fn end(process: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        if Instant::now() >= deadline {
            let _ = process.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

// === impl SupervisedScript ===

impl SupervisedScript {
    fn start(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = elector(&["supervise", "--", "sh", "-c", script], folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self { process, folder }
    }

    /// The id that the script has written to a file.
    fn pid(&self, file: &str) -> Pid {
        written(&self.folder.path().join(file))
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    fn order_to_terminate(&mut self) {
        self.process
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"t")
            .unwrap();
    }

    fn order_to_kill(&mut self) {
        drop(self.process.stdin.take());
    }

    fn code(&mut self) -> i32 {
        end(&mut self.process).code().unwrap()
    }
}

impl Drop for SupervisedScript {
    fn drop(&mut self) {
        self.order_to_kill();
        if !std::thread::panicking() {
            end(&mut self.process);
        }
    }
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    assert_eq!(SupervisedScript::start("exit 7").code(), 7);
    assert_eq!(SupervisedScript::start("kill -KILL $$").code(), 137);
    assert_eq!(SupervisedScript::start("exec /no/such/command").code(), 127);
    let folder = tempfile::tempdir().unwrap();
    let mut missing = elector(&["supervise", "--", "/no/such/command"], folder.path());
    let missing = missing.stdin(Stdio::piped()).stderr(Stdio::null());
    assert_eq!(end(&mut missing.spawn().unwrap()).code(), Some(127));
}

#[test]
fn a_command_that_obeys_is_not_killed() {
    let script = "trap 'exit 3' TERM; echo $$ > command; while :; do sleep 0.05; done";
    let mut supervised = SupervisedScript::start(script);
    supervised.pid("command");
    supervised.order_to_terminate();
    assert_eq!(supervised.code(), 3);
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_with_its_group_when_the_pipe_ends() {
    let script = "trap '' TERM; sleep 300 & echo $! > child; echo $$ > command; wait";
    let mut supervised = SupervisedScript::start(script);
    let (child, command) = (supervised.pid("child"), supervised.pid("command"));
    supervised.order_to_terminate();
    std::thread::sleep(Duration::from_millis(100));
    assert!(runs(command), "it ignores SIGTERM");
    supervised.order_to_kill();
    assert_eq!(supervised.code(), 137);
    assert!(!runs(child) && !runs(command));
}

/// A double fork and a session of its own: the group does not find it, and its parent is gone.
#[test]
fn a_daemon_does_not_outlive_the_command_that_started_it() {
    let script = format!("{DAEMON}; until [ -s daemon ]; do sleep 0.01; done; exit 4");
    let mut supervised = SupervisedScript::start(&script);
    assert_eq!(supervised.code(), 4);
    assert!(!runs(supervised.pid("daemon")));
}

#[test]
fn a_daemon_does_not_outlive_the_kill() {
    let mut supervised = SupervisedScript::start(&format!("trap '' TERM; {DAEMON}; sleep 300"));
    let daemon = supervised.pid("daemon");
    let parent = supervised.process.id();
    eventually("the daemon is adopted", || {
        state(daemon).filter(|(_, adopted)| *adopted == parent)
    });
    supervised.order_to_kill();
    assert_eq!(supervised.code(), 137);
    assert!(!runs(daemon));
}

#[test]
fn many_orphans_are_reaped_while_the_command_runs() {
    let orphans = "for i in 1 2 3 4 5 6 7 8; do (sh -c 'echo $$ > orphan-$0' $i &); done";
    let supervised = SupervisedScript::start(&format!("{orphans}; sleep 300"));
    for orphan in 1..=8 {
        let orphan = supervised.pid(&format!("orphan-{orphan}"));
        eventually("the orphan is reaped", || {
            state(orphan).is_none().then_some(())
        });
    }
}

/// Signals to all processes of a service are answered by the candidate, which gives the orders.
#[test]
fn a_signal_to_the_supervisor_itself_ends_nothing() {
    let mut supervised = SupervisedScript::start("echo $$ > command; exec sleep 300");
    let command = supervised.pid("command");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        supervised.signal(signal);
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(runs(command) && supervised.process.try_wait().unwrap().is_none());
    // The command has not inherited that.
    kill_process(command, Signal::TERM).unwrap();
    assert_eq!(supervised.code(), 143);
}

#[test]
fn the_command_dies_with_a_supervisor_that_is_killed() {
    let mut supervised = SupervisedScript::start("trap '' TERM; echo $$ > command; sleep 300");
    let command = supervised.pid("command");
    supervised.signal(Signal::KILL);
    assert_eq!(end(&mut supervised.process).signal(), Some(9));
    eventually("the command dies", || (!runs(command)).then_some(()));
}

#[test]
fn process_1_passes_signals_on_and_reaps_what_others_leave_behind() {
    let script = "(sh -c 'echo $$ > orphan' &); trap 'exit 5' TERM; echo $$ > child; \
                  while :; do sleep 0.05; done";
    let folder = tempfile::tempdir().unwrap();
    let mut init = elector(&["init", "--", "sh", "-c", script], folder.path())
        .spawn()
        .unwrap();
    let orphan = written(&folder.path().join("orphan"));
    eventually("the orphan is reaped", || {
        state(orphan).is_none().then_some(())
    });
    let child = written(&folder.path().join("child"));
    assert_eq!(state(child).unwrap().1, init.id());
    let id = Pid::from_raw(i32::try_from(init.id()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(end(&mut init).code(), Some(5));
}
