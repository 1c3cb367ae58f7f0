//! `elector verify`: what it says of a recording of a real cluster, and of the same one after it was tampered with.
//!
//! The recording: one elector, three candidates with a lease of 6 s. web-0 leads, hands over to web-2, which is older
//! and gets killed; web-0 follows after its lease has expired, and releases.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod input;
mod recording;

use serde_json::{Value, json};

use crate::recording::{FOLDER, GRANT_AFTER_CRASH, run, spoilt, text};

#[test]
fn a_recording_is_proven() {
    let output = run(&["-f", "watch.json", "-f", "work.json"], "");
    assert_eq!(text(&output.stderr), "");
    let expected = std::fs::read_to_string(format!("{FOLDER}/proven.txt")).unwrap();
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
}

/// client-go's go-0 was stopped by SIGSTOP until web-1 led, and then went on: it led on for 1.1 s beside web-1, and until
/// it was elected again it led without a lease.
#[test]
fn a_client_go_leader_that_was_paused_refutes_it() {
    let output = run(&["-f", "client-go.json"], "");
    assert_eq!(text(&output.stderr), "");
    let expected = std::fs::read_to_string(format!("{FOLDER}/client-go.txt")).unwrap();
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(1));
    // Without the work trace, its Lease looks as it should, and tells nothing of how long it led.
    let watch = std::fs::read_to_string(format!("{FOLDER}/client-go.json")).unwrap();
    let watch: Vec<&str> = watch
        .lines()
        .filter(|line| line.contains("\"object\""))
        .collect();
    let output = run(&["-f", "-"], &watch.join("\n"));
    assert!(
        text(&output.stdout)
            .contains("not judged: S1 at most one leader at a time: how long go-0 led")
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_violation_is_shown_with_both_revisions() {
    let early = spoilt();
    let output = run(&["-f", "-", "-f", "work.json"], &early);
    let expected = std::fs::read_to_string(format!("{FOLDER}/refuted.txt")).unwrap();
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_json_form_is_stable() {
    let output = run(&["-f", "watch.json", "-f", "work.json", "-o", "json"], "");
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &reports[0];
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        keys(report),
        "excused findings invariants leaders lease longestGapSeconds moves namespace oneLeader revisions seconds \
         terms termsLed traced verdict"
    );
    let expected = (&json!("proven"), &json!("held"));
    assert_eq!((&report["verdict"], &report["oneLeader"]), expected);
    assert_eq!(
        (
            &report["revisions"],
            &report["termsLed"],
            &report["leaders"]
        ),
        (&json!(18), &json!(3), &json!(2))
    );
    assert_eq!(report["moves"][0], json!({"kind": "create", "count": 1}));
    let expected = json!({"id": "S1", "says": "at most one leader at a time", "verdict": "held"});
    assert_eq!(report["invariants"][0], expected);
    assert_eq!(
        report["terms"][1],
        json!({
            "term": 2, "token": 221, "leader": "web-2", "maker": "elector", "renewals": 3, "end": "expired",
            "granted": {"resourceVersion": 221, "time": "2026-11-20T08:25:01.297141Z"},
            "accepted": {"resourceVersion": 222, "time": "2026-11-20T08:25:01.300034Z"},
            "lastSign": {"resourceVersion": 225, "time": "2026-11-20T08:25:05.305461Z"},
        })
    );
    let early = spoilt();
    let output = run(&["-f", "-", "-o", "json"], &early);
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reports[0]["verdict"], "refuted");
    let expected = "after before invariant promised sentence time";
    assert_eq!(keys(&reports[0]["findings"][0]), expected);
}

#[test]
fn an_excused_overlap_names_the_write_that_excuses_it() {
    let declared = GRANT_AFTER_CRASH.to_string();
    let output = run(&["-f", "-", "--foreign", &declared], &spoilt());
    let text = text(&output.stdout);
    for line in [
        "shop/web: at most one leader at a time: NOT HELD after the write of @231 for 3 terms of 2 leaders",
        "  excused: S1 at most one leader at a time\n",
        "  excused by the write of revision @231: S1 at 2026-11-20T08:25:07.454422Z: two may have believed at once: \
         web-2 could lead for 1.851 s longer when web-0 began\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(output.status.code(), Some(0));
}
