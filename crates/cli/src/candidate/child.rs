//! The command as the work of a term: started, told to stop by SIGTERM, killed with its whole process group when it
//! does not, and gone before the lease is given up.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, waitid};
use tokio::sync::oneshot;

use super::shim;

/// A command to run once per term.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The command and its arguments; never empty.
    pub(super) command: Vec<OsString>,
    /// Whether its standard output goes to standard error, so that ours stays readable by machines.
    pub(super) output_to_stderr: bool,
}

/// Starts commands from one thread that lives as long as the process.
///
/// The kernel sends the parent-death signal when the *thread* that started a child ends, so a thread of a pool, which
/// may end at any time, must not start it.
#[derive(Clone, Debug)]
pub(super) struct Spawner {
    jobs: SyncSender<Job>,
}

/// A running command. Dropping it kills the process group.
#[derive(Debug)]
pub(super) struct Running {
    group: Group,
    exit: oneshot::Receiver<std::io::Result<ExitStatus>>,
}

/// The process group of a command, as long as it can be signalled without meeting somebody else's.
#[derive(Clone, Debug, Default)]
struct Group(Arc<Mutex<Option<Pid>>>);

struct Job {
    program: Program,
    environment: Vec<(&'static str, String)>,
    started: oneshot::Sender<std::io::Result<Running>>,
}

// === impl Spawner ===

impl Spawner {
    /// Starts the thread.
    pub(super) fn start() -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(1);
        std::thread::Builder::new()
            .name("commands".into())
            .spawn(move || serve(&queue))?;
        Ok(Self { jobs })
    }

    /// Starts the command, with these variables on top of the own environment.
    pub(super) async fn run(
        &self,
        program: Program,
        environment: Vec<(&'static str, String)>,
    ) -> std::io::Result<Running> {
        let (started, answer) = oneshot::channel();
        let job = Job {
            program,
            environment,
            started,
        };
        let gone = || std::io::Error::other("the thread that starts commands has ended");
        self.jobs.try_send(job).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

// === impl Running ===

impl Running {
    /// Waits until the command has exited and its group is gone.
    pub(super) async fn exit(&mut self) -> std::io::Result<ExitStatus> {
        let gone = |_| std::io::Error::other("the thread that waits for commands has ended");
        (&mut self.exit).await.map_err(gone)?
    }

    /// Stops the command: SIGTERM, and after `patience` SIGKILL, each to the whole group.
    pub(super) async fn stop(&mut self, patience: Duration) -> std::io::Result<ExitStatus> {
        self.group.signal(Signal::TERM);
        if let Ok(exit) = tokio::time::timeout(patience, self.exit()).await {
            return exit;
        }
        tracing::warn!("the command ignored SIGTERM for {patience:?}: killing it");
        self.group.signal(Signal::KILL);
        self.exit().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

// === impl Group ===

impl Group {
    fn signal(&self, signal: Signal) {
        let pid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *pid {
            // It fails where the group is already gone, which is as good.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// After this, the process id may belong to somebody else.
    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The exit code to pass on: the command's own, or 128 and the number of the signal that ended it, as shells have it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let signalled = || status.signal().map(|signal| 128 + signal);
    let code = status.code().or_else(signalled).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn serve(queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        let mut command = job.program.command(job.environment);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let _ = job.started.send(Err(error));
                continue;
            }
        };
        let group = Group(Arc::new(Mutex::new(pid(&child))));
        let (exited, exit) = oneshot::channel();
        let running = Running {
            group: group.clone(),
            exit,
        };
        // Where nobody waits any more, the group is killed by the drop of what comes back.
        let _ = job.started.send(Ok(running));
        let _ = exited.send(reap(child, &group));
    }
}

/// Waits for the command, kills what it leaves behind in its group, and only then lets go of its process id.
fn reap(mut child: Child, group: &Group) -> std::io::Result<ExitStatus> {
    if let Some(pid) = pid(&child) {
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), exited) {}
    }
    group.signal(Signal::KILL);
    group.forget();
    child.wait()
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

// === impl Program ===

impl Program {
    fn command(self, environment: Vec<(&'static str, String)>) -> Command {
        // The very file that runs, even where another has been installed in its place.
        let mut command = Command::new(own_program());
        command
            .arg(shim::NAME)
            .arg(getpid().as_raw_nonzero().to_string())
            .arg("--")
            .args(self.command)
            .envs(environment)
            // A group in the background may not read the terminal.
            .stdin(Stdio::null())
            .process_group(0);
        if self.output_to_stderr {
            command.stdout(std::io::stderr());
        }
        command
    }
}

#[cfg(target_os = "linux")]
fn own_program() -> std::path::PathBuf {
    "/proc/self/exe".into()
}

#[cfg(not(target_os = "linux"))]
fn own_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "elector".into())
}
