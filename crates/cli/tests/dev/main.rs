//! `elector dev` as a process: its transcript, its end, and kubectl on its server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod kubectl;
mod process;
mod stalled;

use std::fs;
use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;

use self::process::Dev;

/// The terms that are reported, as (name, term).
fn terms(lines: &[String]) -> Vec<(String, i32)> {
    let leads = |line: &String| {
        let (name, term) = line[9..].split_once(" leads, term ")?;
        Some((name.to_owned(), term.parse().unwrap()))
    };
    lines.iter().filter_map(leads).collect()
}

#[test]
fn the_story_is_told_once_and_nothing_is_left() {
    let mut dev = Dev::start(&["--once"]);
    let url = dev.url();
    let kubeconfig = dev.kubeconfig();
    let text = fs::read_to_string(&kubeconfig).unwrap();
    assert!(text.contains(&format!("server: {url}\n")), "{text}");
    assert_eq!(dev.end(), Some(0), "{:#?}", dev.lines());

    let lines = dev.lines();
    let told = lines.join("\n");
    let holds = told.is_ascii() && !told.contains('\u{1b}');
    assert!(holds, "a pipe gets plain text: {told}");
    // On a busy machine there may be more terms than the three that the scenario needs.
    let led = terms(lines);
    assert!(led.len() >= 3, "{told}");
    assert!(led.is_sorted_by(|a, b| a.1 < b.1), "{told}");
    assert_eq!(led.last().unwrap().0, "violet", "{told}");
    let reasons = lines.iter().filter(|line| line[9..].starts_with("why: "));
    assert_eq!(reasons.count(), led.len(), "{told}");
    let crash = lines.iter().position(|line| line.contains(" crashes: "));
    let crashed = lines[crash.unwrap()][9..].split(' ').next().unwrap();
    let after = terms(&lines[crash.unwrap()..]);
    assert!(!after.iter().any(|(name, _)| name == crashed), "{told}");
    for part in [
        &format!(" after {crashed} crashed"),
        "is asked to make room: violet has the older emulation version 1.31.0",
        "stops its work and makes room for violet",
        "hand-over in ",
        "at no time have two been at work",
    ] {
        assert!(told.contains(part), "{part:?} is missing in {told}");
    }
    assert_eq!(dev.stderr(), "", "nothing went wrong");
    assert!(!kubeconfig.parent().unwrap().exists());
    assert!(TcpStream::connect(url.trim_start_matches("http://")).is_err());
}

#[test]
fn the_server_alone_ends_when_it_is_told_to() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let out = format!("--kubeconfig-out={}", file.display());
        let mut dev = Dev::start(&["--serve-only", &out]);
        assert_eq!(dev.kubeconfig(), file);
        let address = dev.url().trim_start_matches("http://").to_owned();
        // An open connection does not hold it up.
        let _connection = TcpStream::connect(&address).unwrap();
        dev.signal(signal);
        assert_eq!(dev.end(), Some(0));
        assert!(!file.exists());
        assert_eq!(dev.lines().len(), 3, "{:?}", dev.lines());
        assert_eq!(dev.stderr(), "");
    }
}

#[test]
fn a_story_that_is_cut_short_is_no_success() {
    let mut dev = Dev::start(&["--once"]);
    let kubeconfig = dev.kubeconfig();
    dev.wait_for("leads, term 1");
    dev.signal(Signal::INT);
    assert_eq!(dev.end(), Some(130));
    assert!(!kubeconfig.exists());
    assert_eq!(dev.stderr(), "");
}

#[test]
fn bad_flags_are_one_line_each() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut dev = Dev::start(&["--serve-only", &format!("--port={port}")]);
    assert_eq!(dev.end(), Some(1));
    let stderr = dev.stderr();
    let line = format!("error: failed to listen on 127.0.0.1:{port}: ");
    let holds = stderr.starts_with(&line) && stderr.lines().count() == 1;
    assert!(holds, "{stderr}");

    let mut dev = Dev::start(&["--serve-only", "--once"]);
    assert_eq!(dev.end(), Some(2));
}

#[test]
fn a_listener_who_leaves_ends_it_quietly() {
    let mut dev = Dev::start(&["--once"]);
    let kubeconfig = dev.kubeconfig();
    dev.wait_for("leads, term 1");
    dev.close_output();
    assert_eq!(dev.end(), Some(0));
    assert!(!kubeconfig.exists());
    assert_eq!(dev.stderr(), "");
}
