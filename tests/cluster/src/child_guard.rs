//! Child processes that die with their owner, even when the owner is killed with SIGKILL.
//!
//! Each child has a keeper: a shell in a process group of its own whose standard input is a pipe that only the owner
//! holds. However the owner ends, the kernel closes the pipe; the keeper then kills the child and its process group. Unlike a
//! parent-death signal this does not depend on the thread that spawned the child, and it needs no unsafe code.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// `$1` is a folder to remove at the end of an owner that was killed, or empty. The first line read is the
/// child's process id; any second line says that the child has been reaped in good order.
const KEEPER: &str = r#"
read -r pid || exit 0
if read -r done; then exit 0; fi
kill -KILL "-$pid" "$pid" 2>/dev/null
if [ -n "$1" ]; then rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }; fi
"#;

/// The interval of polls in a wait.
const POLL: Duration = Duration::from_millis(10);

/// A running child, and its keeper. Dropping it kills the child.
#[derive(Debug)]
pub struct ChildGuard {
    child: Child,
    keeper: Child,
}

// === impl ChildGuard ===

impl ChildGuard {
    /// Starts the command, in a process group of its own, so that a Ctrl-C in the terminal reaches the owner alone.
    ///
    /// # Errors
    /// When the command or a shell cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        Self::spawn_with_folder(command, None)
    }

    /// As [`spawn`](Self::spawn); the folder is removed too when the owner dies without reaping the child.
    pub(crate) fn spawn_with_folder(
        command: &mut Command,
        folder: Option<&Path>,
    ) -> io::Result<Self> {
        // The keeper is there first: the child runs only microseconds before its keeper knows it.
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let child = command.process_group(0).spawn().inspect_err(|_| {
            // A closed pipe before any line lets the keeper go.
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        })?;
        let guard = Self { child, keeper };
        let id = guard.child.id();
        guard.tell_keeper(&id.to_string())?;
        Ok(guard)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, to take its pipes.
    pub fn child_mut(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The exit status, if the child has ended.
    ///
    /// # Errors
    /// Those of [`Child::try_wait`].
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the child has ended already.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        // Asked first: a child that has been reaped may have lost its number to another process.
        if self.child.try_wait()?.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the process has ended",
            ));
        }
        kill_process(Pid::from_child(&self.child), signal)?;
        Ok(())
    }

    /// Waits for the end of the child, `None` if it has not come within `patience`.
    ///
    /// # Errors
    /// Those of [`Child::try_wait`].
    pub fn wait_for(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.child.try_wait()?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
    }

    /// Waits for its end, however long that takes.
    ///
    /// # Errors
    /// When it does not succeed.
    pub fn ends_well(&mut self) -> io::Result<()> {
        match self.child.wait()? {
            status if status.success() => Ok(()),
            status => Err(io::Error::other(status.to_string())),
        }
    }

    /// Asks with SIGTERM, waits for `patience`, and then kills.
    ///
    /// # Errors
    /// When the child cannot be signalled or waited for.
    pub fn terminate(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        if self.child.try_wait()?.is_none() {
            self.signal(Signal::TERM)
                .or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()), // it ended just now, which is what was wanted
                    _ => Err(error),
                })?;
        }
        match self.wait_for(patience)? {
            Some(status) => Ok(status),
            None => self.kill(),
        }
    }

    /// Kills with SIGKILL and reaps.
    ///
    /// # Errors
    /// Those of [`Child::kill`] and [`Child::wait`].
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Kills the child and every process of its group with SIGKILL, and reaps the child. Not for a child that has been
    /// waited for: its number may be that of another group.
    ///
    /// # Errors
    /// Those of [`Child::wait`].
    pub fn kill_group(&mut self) -> io::Result<ExitStatus> {
        // A group that has ended needs no signal.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait()
    }

    fn tell_keeper(&self, line: &str) -> io::Result<()> {
        let Some(mut pipe) = self.keeper.stdin.as_ref() else {
            return Ok(());
        };
        writeln!(pipe, "{line}")
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Errors cannot be seen from here; if the kill fails, the keeper sees the pipe close and tries again.
        if self.kill().is_ok() {
            let _ = self.tell_keeper("reaped");
        }
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until no process has this id any more, not even a zombie.
    fn gone(pid: Pid) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if rustix::process::test_kill_process(pid).is_err() {
                return true;
            }
            thread::sleep(POLL);
        }
        false
    }

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    }

    #[test]
    fn a_closed_pipe_ends_the_child_and_removes_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let doomed = folder.path().join("data");
        std::fs::create_dir(&doomed).unwrap();
        let mut guard = ChildGuard::spawn_with_folder(&mut sleeper(), Some(&doomed)).unwrap();
        assert_eq!(guard.try_wait().unwrap(), None);

        // The kernel does the same when the owner dies.
        drop(guard.keeper.stdin.take());
        let status = guard
            .wait_for(Duration::from_secs(10))
            .unwrap()
            .expect("the keeper kills the child");
        assert!(!status.success());
        guard.keeper.wait().unwrap();
        assert!(!doomed.exists());
    }

    #[test]
    fn dropping_ends_the_child_and_leaves_the_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let guard = ChildGuard::spawn_with_folder(&mut sleeper(), Some(folder.path())).unwrap();
        let (child, keeper) = (
            Pid::from_child(&guard.child),
            Pid::from_child(&guard.keeper),
        );
        drop(guard);
        assert!(gone(child) && gone(keeper));
        assert!(folder.path().is_dir());
    }

    #[test]
    fn a_child_that_ignores_sigterm_is_killed_after_the_patience() {
        let mut stubborn = Command::new("/bin/sh");
        stubborn
            .args(["-c", "trap '' TERM; echo ready; while :; do sleep 1; done"])
            .stdout(Stdio::piped());
        let mut guard = ChildGuard::spawn(&mut stubborn).unwrap();
        let mut line = String::new();
        let stdout = guard.child_mut().stdout.take().unwrap();
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line).unwrap();

        let status = guard.terminate(Duration::from_millis(200)).unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
        let expected = io::ErrorKind::NotFound;
        assert_eq!(guard.signal(Signal::TERM).unwrap_err().kind(), expected);
    }

    #[test]
    fn a_command_that_does_not_exist_leaves_no_keeper() {
        let error = ChildGuard::spawn(&mut Command::new("/nonexistent/program")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
