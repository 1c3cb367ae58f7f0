//! The hidden sub-commands between `elector candidate` and its command, and above it as process 1.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use elector_runtime::{Clock as _, SystemClock};
use elector_testing::wait_until;
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{runs, state};

/// A supervisor and the socket to it.
struct SupervisedScript {
    process: Child,
    socket: UnixStream,
    /// The end of the supervisor.
    other_end: UnixStream,
    folder: tempfile::TempDir,
}

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3600);

/// A command that counts how often it is asked to stop, and goes on.
const STUBBORN: &str =
    "trap 'echo told >> told' TERM; echo $$ > command; while :; do sleep 0.02; done";

/// A process that leaves its session, its group and its parent, and stays.
const DAEMON: &str = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; sleep 300 & wait' &)";

fn elector(arguments: &[&str], folder: &Path) -> Command {
    let mut command = crate::elector();
    command.args(arguments).current_dir(folder);
    command
}

/// The order that holds a command to these limits, counted from now.
fn limits(deadline: Duration, lease_limit: Duration) -> String {
    let clock = SystemClock::start();
    let after = |wait| clock.share(clock.holder().after(wait));
    let limits = json!({ "deadline": after(deadline), "lease_limit": after(lease_limit) });
    json!({ "limits": limits }).to_string()
}

/// The process id in a file, once its line is complete.
fn written(file: &Path) -> Pid {
    wait_until("a process id is written", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        let id = text.strip_suffix('\n')?.parse().unwrap();
        Pid::from_raw(id)
    })
}

/// The end of a process, without any more being done to it.
fn end(process: &mut Child) -> ExitStatus {
    wait_until("it ends", || process.try_wait().unwrap())
}

// === impl SupervisedScript ===

impl SupervisedScript {
    fn start(script: &str) -> Self {
        Self::start_command(&["sh", "-c", script], Stdio::inherit())
    }

    fn start_command(command: &[&str], stderr: Stdio) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (socket, other_end) = UnixStream::pair().unwrap();
        let process = elector(&["supervise", "--grace-period", "1h", "--"], folder.path())
            .args(command)
            .stdin(OwnedFd::from(other_end.try_clone().unwrap()))
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut supervised = Self {
            process,
            socket,
            other_end,
            folder,
        };
        supervised.order(&limits(HOUR, HOUR));
        supervised
    }

    /// The id that the script has written to a file.
    fn pid(&self, file: &str) -> Pid {
        written(&self.folder.path().join(file))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    fn order(&mut self, order: &str) {
        let order = format!("{order}\n");
        self.socket.write_all(order.as_bytes()).unwrap();
    }

    fn order_to_terminate(&mut self) {
        self.order("\"terminate\"");
    }

    fn order_to_kill(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// True where the command got one order to stop, and no more.
    fn is_told_once(&self) -> bool {
        let told = fs::read_to_string(self.folder.path().join("told"));
        told.unwrap_or_default() == "told\n"
    }

    /// Says when the supervisor has read all orders.
    fn has_read(&self) -> Option<()> {
        let left = ioctl_fionread(&self.other_end).unwrap();
        (left == 0).then_some(())
    }

    fn code(&mut self) -> i32 {
        end(&mut self.process).code().unwrap()
    }

    /// The new reports of the supervisor: `s` that it stops the command by itself, `k` that nothing acts any more.
    fn reports(&mut self) -> String {
        let mut reports = vec![0; usize::try_from(ioctl_fionread(&self.socket).unwrap()).unwrap()];
        self.socket.read_exact(&mut reports).unwrap();
        String::from_utf8(reports).unwrap()
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
    let mut missing = SupervisedScript::start_command(&["/no/such/command"], Stdio::null());
    assert_eq!(missing.code(), 127);
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_with_its_group_when_the_orders_end() {
    let script =
        format!("(trap '' TERM; echo x > ready; exec sleep 300) & echo $! > child; {STUBBORN}");
    let mut supervised = SupervisedScript::start(&script);
    let (child, command) = (supervised.pid("child"), supervised.pid("command"));
    let ready = supervised.folder.path().join("ready");
    wait_until("the child ignores SIGTERM", || ready.exists().then_some(()));
    supervised.order_to_terminate();
    wait_until("it is told", || supervised.is_told_once().then_some(()));
    assert!(runs(command) && runs(child), "they go on");
    supervised.order_to_kill();
    assert_eq!(supervised.code(), 137);
    assert!(!runs(child) && !runs(command));
}

/// By an order, or at the deadline: the process that holds the lease may be stopped, and then no order comes.
#[test]
fn a_command_that_obeys_is_not_killed() {
    for (order, is_stopped) in [
        ("\"terminate\"".to_owned(), false),
        (limits(Duration::ZERO, HOUR), true),
    ] {
        let script = "trap 'exit 3' TERM; echo $$ > command; while :; do sleep 0.05; done";
        let mut supervised = SupervisedScript::start(script);
        supervised.pid("command");
        supervised.order(&order);
        assert_eq!(supervised.code(), 3);
        assert_eq!(supervised.reports().contains('s'), is_stopped);
    }
}

#[test]
fn a_command_that_goes_on_is_killed_when_the_lease_leaves_nothing_more() {
    let mut supervised = SupervisedScript::start(&format!("{DAEMON}; {STUBBORN}"));
    let (command, daemon) = (supervised.pid("command"), supervised.pid("daemon"));
    supervised.order(&limits(Duration::ZERO, Duration::from_millis(500)));
    assert_eq!(supervised.code(), 137);
    assert!(supervised.is_told_once());
    assert!(!runs(command) && !runs(daemon));
}

#[test]
fn a_command_that_was_paused_for_longer_than_its_lease_is_killed_at_once() {
    let mut supervised = SupervisedScript::start(STUBBORN);
    supervised.pid("command");
    supervised.order(&limits(Duration::ZERO, Duration::ZERO));
    assert_eq!(supervised.code(), 137);
    assert!(supervised.reports().contains('s'));
    assert!(!supervised.folder.path().join("told").exists());
}

#[test]
fn a_command_that_was_killed_and_is_still_there_is_reported() {
    let mut supervised = SupervisedScript::start(&format!("{DAEMON}; {STUBBORN}"));
    let command = crate::trace(supervised.pid("command"));
    let daemon = supervised.pid("daemon");
    assert_eq!(supervised.reports(), "");
    supervised.order_to_kill();
    wait_until("all are reported to be killed", || {
        supervised.reports().contains('k').then_some(())
    });
    // The signal has reached it, and it takes the kernel a moment.
    wait_until("the daemon has ended", || (!runs(daemon)).then_some(()));
    assert!(supervised.process.try_wait().unwrap().is_none());
    nix::sys::wait::waitpid(command, None).unwrap();
    assert_eq!(supervised.code(), 137);
}

/// The kernel may take longer than a second for the end of the supervisor, too.
#[test]
fn the_end_of_a_command_is_reported_before_that_of_its_supervisor() {
    let mut supervised = SupervisedScript::start("exit 7");
    assert_eq!((supervised.code(), &*supervised.reports()), (7, "k"));
}

/// A supervisor that was stopped may wake up after a deadline that was moved meanwhile.
#[test]
fn a_renewal_that_came_while_the_supervisor_was_stopped_counts() {
    let mut supervised = SupervisedScript::start(STUBBORN);
    supervised.pid("command");
    let wait = Duration::from_millis(200);
    supervised.order(&limits(wait, HOUR));
    wait_until("the order is read", || supervised.has_read());
    supervised.signal(Signal::STOP);
    let passed = Instant::now() + wait;
    supervised.order(&limits(HOUR, HOUR));
    wait_until("it passes", || (Instant::now() > passed).then_some(()));
    supervised.signal(Signal::CONT);
    wait_until("the order is read", || supervised.has_read());
    std::thread::sleep(Duration::from_millis(200));
    assert!(!supervised.folder.path().join("told").exists());
    supervised.order_to_terminate();
    wait_until("it is told", || supervised.is_told_once().then_some(()));
}

#[test]
fn nothing_is_started_without_limits() {
    let folder = tempfile::tempdir().unwrap();
    let script = [
        "supervise",
        "--grace-period",
        "1s",
        "--",
        "touch",
        "started",
    ];
    let mut supervisor = elector(&script, folder.path());
    let (socket, other_end) = UnixStream::pair().unwrap();
    drop(socket);
    let supervisor = supervisor.stdin(OwnedFd::from(other_end));
    let mut supervisor = supervisor.stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(end(&mut supervisor).code(), Some(1));
    assert!(!folder.path().join("started").exists());
}

/// A double fork and a session of its own: the group does not find it, and its parent is gone.
#[test]
fn a_daemon_does_not_outlive_the_command_that_started_it() {
    let script = format!("{DAEMON}; until [ -s daemon ]; do sleep 0.01; done; exit 4");
    let mut supervised = SupervisedScript::start(&script);
    assert_eq!(supervised.code(), 4);
    assert!(!runs(supervised.pid("daemon")));
}

/// Signals to all processes of a service are answered by the candidate, which gives the orders.
#[test]
fn a_signal_to_the_supervisor_itself_ends_nothing() {
    let mut supervised = SupervisedScript::start("echo $$ > command; exec sleep 300");
    let command = supervised.pid("command");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        supervised.signal(signal);
    }
    // A process that reads has taken what signals were sent to it before.
    supervised.order(&limits(HOUR, HOUR));
    wait_until("the order is read", || supervised.has_read());
    assert!(runs(command) && supervised.process.try_wait().unwrap().is_none());
    // The command has not inherited that.
    kill_process(command, Signal::TERM).unwrap();
    assert_eq!(supervised.code(), 143);
}

#[test]
fn the_command_dies_with_a_supervisor_that_is_killed() {
    let mut supervised = SupervisedScript::start("trap '' TERM; echo $$ > command; exec sleep 300");
    let command = supervised.pid("command");
    supervised.signal(Signal::KILL);
    assert_eq!(end(&mut supervised.process).signal(), Some(9));
    wait_until("the command dies", || (!runs(command)).then_some(()));
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
    wait_until("it is reaped", || state(orphan).is_none().then_some(()));
    let child = written(&folder.path().join("child"));
    assert_eq!(state(child).unwrap().1, init.id());
    kill_process(Pid::from_child(&init), Signal::TERM).unwrap();
    assert_eq!(end(&mut init).code(), Some(5));
}

#[test]
fn nothing_is_run_for_a_parent_that_has_died_already() {
    let folder = tempfile::tempdir().unwrap();
    let orphan = ["exec-with-parent", "1", "--", "echo", "ran"];
    let output = elector(&orphan, folder.path()).output().unwrap();
    let expected = (Some(126), &b""[..]);
    assert_eq!((output.status.code(), &*output.stdout), expected);
}
