//! The command as the work of a term: started, told to stop by SIGTERM, killed with its whole process group when it
//! does not, and gone before the lease is given up.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
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
    jobs: SyncSender<SpawnJob>,
}

/// A running command. Dropping it kills the process group.
#[derive(Debug)]
pub(super) struct RunningCommand {
    group: ProcessGroup,
    exit: oneshot::Receiver<std::io::Result<ExitStatus>>,
}

/// The process group of a command, as long as it can be signalled without meeting another one.
#[derive(Clone, Debug, Default)]
struct ProcessGroup(Arc<Mutex<Option<Pid>>>);

struct SpawnJob {
    program: Program,
    environment: Vec<(&'static str, String)>,
    started: oneshot::Sender<std::io::Result<RunningCommand>>,
}

// === impl Spawner ===

impl Spawner {
    /// Starts the thread. Its commands die with it.
    pub(super) fn start() -> std::io::Result<Self> {
        Self::with_launcher(Some(own_program()))
    }

    /// Starts the thread. `launcher` runs the shim; without one, commands are started directly.
    fn with_launcher(launcher: Option<PathBuf>) -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(1);
        std::thread::Builder::new()
            .name("commands".into())
            .spawn(move || serve(&queue, launcher.as_deref()))?;
        Ok(Self { jobs })
    }

    /// Starts the command, with these variables on top of the own environment.
    pub(super) async fn run(
        &self,
        program: Program,
        environment: Vec<(&'static str, String)>,
    ) -> std::io::Result<RunningCommand> {
        let (started, answer) = oneshot::channel();
        let job = SpawnJob {
            program,
            environment,
            started,
        };
        let gone = || std::io::Error::other("the thread that starts commands has ended");
        self.jobs.try_send(job).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

// === impl RunningCommand ===

impl RunningCommand {
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
        // First the signal: a line may take as long as the reader of standard error likes.
        self.group.signal(Signal::KILL);
        tracing::warn!("the command ignored SIGTERM for {patience:?} and was killed");
        self.exit().await
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

// === impl ProcessGroup ===

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        let pid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *pid {
            // It fails where the group is already gone, which is as good.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// After this, the process id may belong to another process.
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

fn serve(queue: &Receiver<SpawnJob>, launcher: Option<&Path>) {
    while let Ok(job) = queue.recv() {
        let mut command = job.program.command(launcher, job.environment);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let _ = job.started.send(Err(error));
                continue;
            }
        };
        let group = ProcessGroup(Arc::new(Mutex::new(pid(&child))));
        let (exited, exit) = oneshot::channel();
        let running = RunningCommand {
            group: group.clone(),
            exit,
        };
        // Where the receiver is gone, the group is killed by the drop of what comes back.
        let _ = job.started.send(Ok(running));
        let _ = exited.send(reap(child, &group));
    }
}

/// Waits for the command, kills what it leaves behind in its group, and only then lets go of its process id.
fn reap(mut child: Child, group: &ProcessGroup) -> std::io::Result<ExitStatus> {
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
    fn command(self, launcher: Option<&Path>, environment: Vec<(&'static str, String)>) -> Command {
        let mut words = self.command.into_iter();
        let mut command = match launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                let parent = getpid().as_raw_nonzero().to_string();
                command.args([shim::NAME, &parent, "--"]);
                command
            }
            None => Command::new(words.next().unwrap_or_default()),
        };
        command
            .args(words)
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

/// The very file that runs, even where another has been installed in its place.
#[cfg(target_os = "linux")]
fn own_program() -> PathBuf {
    "/proc/self/exe".into()
}

#[cfg(not(target_os = "linux"))]
fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "elector".into())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    async fn run(script: &str) -> RunningCommand {
        let program = Program {
            command: ["sh", "-c", script].map(OsString::from).to_vec(),
            output_to_stderr: true,
        };
        let spawner = Spawner::with_launcher(None).unwrap();
        let environment = vec![("ELECTOR_TOKEN", "7".to_owned())];
        spawner.run(program, environment).await.unwrap()
    }

    fn group(running: &RunningCommand) -> Pid {
        running.group.0.lock().unwrap().unwrap()
    }

    /// How much of a group runs. A zombie does not run.
    fn members(group: Pid) -> usize {
        let group = group.as_raw_nonzero().to_string();
        let is_member = |process: &std::fs::DirEntry| {
            let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            let (state, _parent, of) = (fields.next(), fields.next(), fields.next());
            state != Some("Z") && of == Some(group.as_str())
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter(is_member).count()
    }

    async fn eventually(condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "waited for ten seconds");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn its_exit_code_and_its_environment_are_its_own() {
        let status = run("exit $ELECTOR_TOKEN").await.exit().await.unwrap();
        assert_eq!(exit_code(status), 7);
        let status = run("kill -KILL $$").await.exit().await.unwrap();
        assert_eq!(exit_code(status), 137);
    }

    #[tokio::test]
    async fn a_command_that_obeys_is_not_killed() {
        let mut running = run("trap 'exit 3' TERM; sleep 30 & wait").await;
        let group = group(&running);
        // The trap is set before the second process starts.
        eventually(|| members(group) == 2).await;
        let status = running.stop(Duration::from_secs(60)).await.unwrap();
        assert_eq!(exit_code(status), 3);
    }

    #[tokio::test]
    async fn a_command_that_ignores_sigterm_is_killed_with_its_group() {
        let mut running = run("trap '' TERM; sleep 30 & wait").await;
        let group = group(&running);
        eventually(|| members(group) == 2).await;
        let status = running.stop(Duration::from_millis(200)).await.unwrap();
        assert_eq!(exit_code(status), 137);
        eventually(|| members(group) == 0).await;
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_is_killed_when_it_exits() {
        // A shell that is told right before it waits for the long sleep would notice it only afterwards. A shell cannot
        // trap what its parent ignores, as nohup does with SIGHUP.
        let mut running = run("trap 'exit 0' USR1; sleep 30 & while :; do sleep 0.05; done").await;
        let group = group(&running);
        eventually(|| members(group) >= 2).await;
        rustix::process::kill_process(group, Signal::USR1).unwrap();
        assert_eq!(exit_code(running.exit().await.unwrap()), 0);
        eventually(|| members(group) == 0).await;
    }

    #[tokio::test]
    async fn a_command_that_is_dropped_is_killed() {
        let running = run("exec sleep 30").await;
        let group = group(&running);
        assert_eq!(members(group), 1);
        drop(running);
        eventually(|| members(group) == 0).await;
    }
}
