//! A candidate whose standard error is not read.

#![cfg(target_os = "linux")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, PipeWriter, Write as _, pipe};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use elector_testing::wait_until;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::Dev;

/// `O_NONBLOCK` of Linux.
const NONBLOCK: i32 = 0o4000;

/// Fills a pipe to the last byte, by a description of its own: every other writer still waits.
fn fill(pipe: &PipeWriter) {
    let mut own = OpenOptions::new()
        .write(true)
        .custom_flags(NONBLOCK)
        .open(format!("/proc/self/fd/{}", pipe.as_raw_fd()))
        .unwrap();
    for length in [4096, 1] {
        let bytes = vec![b' '; length];
        loop {
            match own.write_all(&bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// True while a process runs. A zombie does not.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn a_command_is_stopped_in_time_although_nobody_reads_standard_error() {
    let mut dev = Dev::start(&[]);
    let (reader, writer) = pipe().unwrap();
    let mut candidate = Command::new(env!("CARGO_BIN_EXE_elector"))
        .arg("candidate")
        .arg("--kubeconfig")
        .arg(dev.kubeconfig())
        .args(["-n", "default", "--lease", "stalled"])
        .args(["--binary-version", "1.0.0", "--grace-period", "300ms"])
        // Only by the signal can the command be stopped in time, not by the end of the belief.
        .args(["--lease-duration", "600s", "--renew-deadline", "480s"])
        .args(["--", "sh", "-c", "trap '' TERM; echo $$; sleep 600 & wait"])
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(writer.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    let mut stdout = BufReader::new(candidate.stdout.take().unwrap());
    stdout.read_line(&mut pid).unwrap();
    let pid = pid.trim();
    assert!(runs(pid));
    fill(&writer);

    kill_process(Pid::from_child(&candidate), Signal::TERM).unwrap();
    wait_until("the command ends", || (!runs(pid)).then_some(()));
    assert_eq!(candidate.try_wait().unwrap(), None, "it waits for a reader");
    drop(reader);
    assert_eq!(candidate.wait().unwrap().code(), Some(0));
}
