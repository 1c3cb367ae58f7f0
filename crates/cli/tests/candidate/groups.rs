//! A command for each part of a group, in one process.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use elector_testing::wait_until;
use rustix::process::{Pid, Signal, kill_process};

use crate::{elector, runs};

/// A file of each part holds the words of its environment; the command of `b` exits, and is started again.
const SCRIPT: &str =
    "echo $$ $ELECTOR_LEASE >> $ELECTOR_PART; [ $ELECTOR_PART = b ] || exec sleep 1000; exit 3";

/// One that exits costs the others nothing, and a signal ends them all.
#[test]
fn each_part_has_a_command_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = elector()
        .args(["candidate", "--mode=disabled", "--namespace=ns"])
        .args("--group=web --part=a --part=b --part=c --events".split(' '))
        .args(["--", "sh", "-c", SCRIPT])
        .current_dir(folder.path())
        .env_remove("POD_NAME")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = |part: &str| {
        let text = fs::read_to_string(folder.path().join(part)).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let starts = wait_until("b is tried again", || {
        let all = ["a", "b", "c"].map(lines);
        (all[1].len() > 1 && all.iter().all(|lines| !lines.is_empty())).then_some(all)
    });
    assert_eq!((starts[0].len(), starts[2].len()), (1, 1), "{starts:?}");
    let pids = ["a", "c"].map(|part| {
        let line = lines(part)[0].clone();
        let (pid, lease) = line.split_once(' ').unwrap();
        assert_eq!(lease, format!("ns/web-{part}"));
        assert!(runs(pid), "{line}");
        pid.to_owned()
    });
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(pids.iter().all(|pid| !runs(pid)));
    let events = output.lines().map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        (event["event"].to_string(), event["lease"].to_string())
    });
    let events: BTreeSet<_> = events.collect();
    for lease in ["\"ns/web-a\"", "\"ns/web-b\"", "\"ns/web-c\""] {
        for event in ["\"start\"", "\"leading\"", "\"work-stopped\"", "\"lost\""] {
            let holds = events.contains(&(event.to_owned(), lease.to_owned()));
            assert!(holds, "{output}");
        }
    }
}

#[test]
fn a_group_that_cannot_be_is_wrong_usage() {
    for (flags, text) in [
        (&["--group=web"][..], "--part <PART>"),
        (&["--part=a"], "--group <NAME>"),
        (
            &["--group=web", "--part=a", "--lease=web"],
            "--lease <NAME>",
        ),
        (&[], "--lease <NAME>"),
        (
            &["--group=Web", "--part=a"],
            "--group is refused: it is the name of a group",
        ),
        (
            &["--group=web", "--part=a,b,a"],
            "--part is refused: the name \"a\" stands twice",
        ),
        (
            &["--group=web", "--part=a", "--after-term=return"],
            "--after-term return is set, but",
        ),
    ] {
        let output = elector()
            .args(["candidate", "--mode=plain"])
            .args(flags)
            .env_clear()
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(text), "{flags:?}: {said}");
    }
}
