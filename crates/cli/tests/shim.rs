//! The hidden sub-command that ties a command to its parent.

#![cfg(target_os = "linux")]
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

fn shim(parent: u32, command: &[&str]) -> Command {
    let mut shim = Command::new(env!("CARGO_BIN_EXE_elector"));
    shim.args(["exec-with-parent", &parent.to_string(), "--"])
        .args(command)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    shim
}

#[test]
fn it_becomes_the_command_with_its_flags_and_exit_code() {
    let output = shim(
        std::process::id(),
        &["sh", "-c", "echo \"$0 $1\"; exit 9", "--lease", "-n"],
    )
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(9));
    assert_eq!(output.stdout, b"--lease -n\n");
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let output = shim(std::process::id(), &["/no/such/command"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("error: failed to run \"/no/such/command\""),
        "{error}"
    );
}

#[test]
fn nothing_is_run_for_a_parent_that_has_died_already() {
    let output = shim(1, &["echo", "ran"]).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert_eq!(output.stdout, b"");
}

#[test]
fn the_command_dies_with_the_thread_that_started_it() {
    let start = || -> Child {
        let mut child = shim(
            std::process::id(),
            &["sh", "-c", "echo ready; exec sleep 30"],
        )
        .spawn()
        .unwrap();
        // Only once it is the command may its parent go.
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child
    };
    let mut child = std::thread::spawn(start).join().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}
