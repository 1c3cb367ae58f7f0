//! An `elector dev` that runs, and what it says.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use elector_testing::wait_until;
use rustix::process::{Pid, Signal, kill_process};

/// Killed when it is dropped.
pub(crate) struct Dev {
    child: Child,
    /// Lines as they come; gone once no test is to listen.
    coming: Option<Receiver<String>>,
    lines: Vec<String>,
    stderr: Option<ChildStderr>,
}

/// The longest wait for anything before the test fails: many times what it takes.
const PATIENCE: Duration = Duration::from_secs(120);

// === impl Dev ===

impl Dev {
    /// Starts it with these flags.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_elector"))
            .arg("dev")
            .args(flags)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        // Room for one line: a test that stops listening breaks the pipe soon.
        let (say, coming) = sync_channel(1);
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stderr: child.stderr.take(),
            child,
            coming: Some(coming),
            lines: Vec::new(),
        }
    }

    /// Waits for a line that holds this text.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(line) = self.next(deadline) else {
                panic!("it ended without saying {part:?}: {:#?}", self.lines);
            };
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Where the server is, said in the first line.
    pub(crate) fn url(&mut self) -> String {
        let line = self.line(0);
        line.split(" is up at ").nth(1).unwrap().to_owned()
    }

    /// The kubeconfig, said in the second line.
    pub(crate) fn kubeconfig(&mut self) -> PathBuf {
        let line = self.line(1);
        let rest = line.split("--kubeconfig ").nth(1).unwrap();
        rest.split(' ').next().unwrap().into()
    }

    fn line(&mut self, index: usize) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.lines.len() <= index {
            assert!(self.next(deadline).is_some(), "it ended: {}", self.stderr());
        }
        self.lines[index].clone()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops listening.
    pub(crate) fn close_output(&mut self) {
        self.coming = None;
    }

    /// Waits for its end, and hears what is said until then.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        while self.next(deadline).is_some() {}
        wait_until("it ends", || self.child.try_wait().unwrap()).code()
    }

    /// The lines so far.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The complaints until the end.
    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }

    fn next(&mut self, deadline: Instant) -> Option<String> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.coming.as_ref()?.recv_timeout(left) {
            Ok(line) => {
                self.lines.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("it says no more within {PATIENCE:?}: {:#?}", self.lines)
            }
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
