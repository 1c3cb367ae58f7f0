//! `kubectl elector history` and `timeline`.

use std::env;
use std::fs;
use std::path::Path;

use elector_apiserver::Config;
use serde_json::{Value, json};

use crate::server::{TestServer, ago, assert_has, failure, text, words};

/// A lease whose leader changed twice within the last hour, and whose present leader no Event tells.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    let told = "\
3010 Elected Normal: a leads in term 1: a is the only candidate
2410 PreferenceHeldBack Warning: until then a is not asked
1810 Expired Warning: b leads in term 2: a has not renewed for 15s
1210 Released Normal: no leader: b released it";
    for (number, line) in told.lines().enumerate() {
        let (words, note) = line.split_once(": ").unwrap();
        let words: Vec<_> = words.split(' ').collect();
        let (name, seconds) = (format!("web.{number}"), words[0].parse().unwrap());
        event(&server, &name, seconds, [words[1], words[2], note]);
    }
    let present = json!({"holderIdentity": "c", "leaseTransitions": 3, "acquireTime": ago(610)});
    server.lease(("default", "web"), &present);
    server
}

fn event(server: &TestServer, name: &str, seconds: i64, [reason, severity, note]: [&str; 3]) {
    server.api.put("events", ("default", name), |fields| {
        let about = json!({"kind": "Lease", "namespace": "default", "name": "web"});
        for (field, value) in [
            ("involvedObject", about),
            ("eventTime", ago(seconds).into()),
            ("reportingComponent", "elector.dev/elector".into()),
            ("reason", reason.into()),
            ("type", severity.into()),
            ("message", note.into()),
        ] {
            fields.insert(field.to_owned(), value);
        }
    });
}

/// The lines of a table without their time, each with single blanks.
fn table(said: &[u8]) -> Vec<String> {
    let said = text(said);
    let lines = words(&said).into_iter();
    lines.map(|words| words[1..].join(" ")).collect()
}

#[test]
fn each_event_is_a_line_and_the_end_says_how_far_back_they_reach() {
    let server = server();
    let output = server.run(&["history", "web"]);
    let expected = [
        "AGE REASON LEADER TERM MESSAGE",
        "50m Elected a 1 a leads in term 1: a is the only candidate",
        "40m PreferenceHeldBack <none> <none> until then a is not asked",
        "30m Expired b 2 b leads in term 2: a has not renewed for 15s",
        "20m Released <none> <none> no leader: b released it",
        "10m Lease c 3 leads according to its Lease (acquireTime); no Event says why",
    ];
    assert_eq!(table(&output.stdout), expected);
    let reach = text(&output.stderr);
    assert!(reach.starts_with("This reaches back to "), "{reach}");
    assert_has(&reach, ", 50m ago: Events ");
    assert_eq!(output.status.code(), Some(0));
    let output = server.run(&["history", "web", "-o", "json"]);
    assert_eq!(text(&output.stderr), "");
    let lines: Value = serde_json::from_slice(&output.stdout).unwrap();
    let event = server.api.object("events", ("default", "web.2")).unwrap();
    let expected = json!({
        "at": event["eventTime"], "reason": "Expired", "leader": "b", "term": 2, "isWarning": true, "isChange": true,
        "count": 1, "note": "b leads in term 2: a has not renewed for 15s",
    });
    assert_eq!(lines[2], expected);
}

/// Where no elector chose, no rank of a candidate says why it leads (R20, R21).
#[test]
fn the_status_of_a_lease_tells_that_its_term_was_rejoined() {
    let server = server();
    for (seconds, reason, told) in [
        (605, "HandedOver", ""),
        (
            604,
            "Rejoined",
            "; rejoined: c leads on after b, which is dead",
        ),
    ] {
        let note = "c leads in term 3: c leads on after b, which is dead";
        event(&server, reason, seconds, [reason, "Normal", note]);
        let said = server.says(&["status", "web"]);
        let why = format!("0/0          no candidate names this lease{told}\n");
        assert!(said.ends_with(&why), "{said}");
    }
}

#[test]
fn the_present_term_is_told_once_and_repetitions_are_counted() {
    let server = server();
    let told = ["HandedOver", "Normal", "c leads in term 3: b handed over"];
    event(&server, "web.4", 605, told);
    server.api.put("events", ("default", "web.1"), |fields| {
        let series = json!({"count": 4, "lastObservedTime": ago(70)});
        fields.insert("series".to_owned(), series);
    });
    let lines = table(&server.run(&["history", "web"]).stdout);
    let held_back =
        "40m PreferenceHeldBack <none> <none> until then a is not asked (x4, last 70s ago)";
    assert_eq!(lines[2], held_back);
    let handed_over = "10m HandedOver c 3 c leads in term 3: b handed over";
    assert_eq!(lines[5..], [handed_over]);
}

#[test]
fn a_timeline_has_a_line_for_each_leader() {
    let said = server().run(&["timeline", "web", "--width", "50"]);
    let said = text(&said.stdout);
    let rows: Vec<_> = said.lines().skip(1).collect();
    // Of 50 minutes, a led 20, b 10, none 10, and c leads.
    let row = |[before, marks, after]: [usize; 3], mark: &str| {
        [".".repeat(before), mark.repeat(marks), ".".repeat(after)].concat()
    };
    let expected = [
        ("a", row([0, 20, 30], "#")),
        ("b", row([20, 10, 20], "#")),
        ("<none>", row([30, 10, 10], "!")),
        ("c", row([40, 10, 0], "#")),
    ];
    // A mark more or less is a matter of how long the test takes.
    assert_eq!(rows.len(), expected.len(), "{said}");
    for (row, (name, marks)) in rows.iter().zip(expected) {
        let (leader, drawn) = row.split_once("   ").unwrap();
        assert_eq!(leader.trim(), name);
        let pairs = drawn.trim().chars().zip(marks.chars());
        let off = pairs.filter(|(a, b)| a != b).count();
        assert!(off <= 2 && drawn.trim().len() == 50, "{said}");
    }
}

#[test]
fn what_nothing_is_known_of_is_an_error() {
    let server = TestServer::start(Config::default());
    for command in ["history", "timeline"] {
        let output = server.run(&[command, "web"]);
        let line = "error: failed to find anything about lease default/web: the server has no Events about it, and it has \
                    no holder\n";
        assert_eq!(failure(&output), line);
        assert_eq!(text(&output.stdout), "");
    }
}

/// A recorded watch of 40 seconds, in which the lease `shop/web` has five terms.
fn recording(folder: &Path) -> String {
    let revision = |version: u32, holder: &str, term: u32, second: u32| {
        json!({"type": "MODIFIED", "object": {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": version.to_string()},
            "spec": {"holderIdentity": holder, "leaseTransitions": term, "leaseDurationSeconds": 15,
                     "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z")},
        }})
    };
    let revisions = [
        revision(1, "a", 1, 0),
        revision(2, "a", 1, 10),
        revision(3, "b", 2, 20),
        revision(4, "b", 2, 30),
        // A term that is shorter than a mark.
        revision(5, "c", 3, 30),
        revision(6, "b", 4, 30),
        revision(7, "a", 5, 40),
    ];
    let file = folder.join("watch.json");
    fs::write(&file, revisions.map(|each| each.to_string()).join("\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The picture of it by `timeline -o svg`.
const PICTURE: &str = include_str!("timeline.svg");

#[test]
fn a_timeline_is_a_picture_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let server = TestServer::start(Config::default());
    let line = ["timeline", "web", "-n", "shop", "-f", &file, "--output=svg"];
    let drawn = text(&server.run(&line).stdout);
    if env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1") {
        fs::write("tests/kubectl/timeline.svg", &drawn).unwrap();
    }
    assert_eq!(drawn, PICTURE);
}

/// A recorded watch of 40 seconds of a group `web` with three parts: the member `a` leads all of them, `b` takes one over, and
/// another lease is no part of the group.
fn group_recording(folder: &Path) -> String {
    let revision = |version: u32, lease: &str, member: &str, term: u32, second: u32| {
        let labels = match lease {
            "other" => json!({}),
            _ => json!({"elector.dev/group": "web"}),
        };
        let holder = match member {
            "" => String::new(),
            member => format!("{member}.{lease}"),
        };
        json!({"type": "MODIFIED", "object": {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": lease, "namespace": "shop", "uid": lease, "resourceVersion": version.to_string(),
                         "labels": labels},
            "spec": {"holderIdentity": holder, "leaseTransitions": term, "leaseDurationSeconds": 15,
                     "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z")},
        }})
    };
    let revisions = [
        revision(1, "web-certs", "a", 1, 0),
        revision(2, "web-routes", "a", 1, 0),
        revision(3, "other", "a", 1, 0),
        revision(4, "web-pages", "a", 1, 10),
        revision(5, "web-routes", "b", 2, 20),
        revision(6, "web-pages", "", 1, 30),
        revision(7, "web-certs", "a", 1, 40),
    ];
    let file = folder.join("group.json");
    fs::write(&file, revisions.map(|each| each.to_string()).join("\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The picture of it by `timeline --group web -o svg`.
const GROUP_PICTURE: &str = include_str!("timeline-group.svg");

#[test]
fn a_timeline_of_a_group_has_a_line_for_each_part_and_a_mark_for_each_member() {
    let folder = tempfile::tempdir().unwrap();
    let file = group_recording(folder.path());
    let server = TestServer::start(Config::default());
    let line = ["timeline", "--group=web", "-n", "shop", "-f", &file];
    let said = server.run(&[&line[..], &["--width=40"]].concat());
    assert_eq!(
        text(&said.stdout),
        "\
LEASE        2026-01-01T00:00:00Z2026-01-01T00:00:40Z
web-certs    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
web-pages    ..........AAAAAAAAAAAAAAAAAAAA!!!!!!!!!!
web-routes   AAAAAAAAAAAAAAAAAAAABBBBBBBBBBBBBBBBBBBB

A a
B b
"
        .replace("Z2026", "Z 2026")
    );
    let reach = text(&said.stderr);
    let start = "This reaches back to 2026-01-01T00:00:00Z, 40s ago: the recording.";
    assert!(reach.starts_with(start), "{reach}");
    let drawn = text(&server.run(&[&line[..], &["--output=svg"]].concat()).stdout);
    if env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1") {
        fs::write("tests/kubectl/timeline-group.svg", &drawn).unwrap();
    }
    assert_eq!(drawn, GROUP_PICTURE);
}

#[test]
fn a_group_is_found_by_the_label_of_its_leases() {
    let server = server();
    for (lease, holder) in [("web", "c.web"), ("web-2", "d.web-2")] {
        let spec =
            json!({"holderIdentity": holder, "leaseTransitions": 3, "acquireTime": ago(610)});
        server.lease(("default", lease), &spec);
        server.api.put("leases", ("default", lease), |fields| {
            fields["metadata"]["labels"] = json!({"elector.dev/group": "pair"});
        });
    }
    server.lease(("default", "stranger"), &json!({}));
    let drawn = server.run(&["timeline", "--group", "pair", "--width=50"]);
    let said = text(&drawn.stdout);
    let rows: Vec<_> = said.lines().skip(1).collect();
    let starts = ["web     AAAA", "web-2   ...."];
    for ((row, start), end) in rows.iter().zip(starts).zip(["CCCC", "DDDD"]) {
        let has_both = row.starts_with(start) && row.trim_end().ends_with(end);
        assert!(has_both, "{said}");
    }
    assert_eq!(rows[2..], ["", "A a", "B b", "C c", "D d"], "{said}");

    let none = server.run(&["timeline", "--group", "other"]);
    let line = "error: failed to find anything about group default/other: no Lease on the server has its label \
                elector.dev/group\n";
    assert_eq!(failure(&none), line);
    for (refused, why) in [
        (["web", "--group=other"].as_slice(), "cannot be used with"),
        (&["--group=a/b"], "is the value of a label"),
    ] {
        let output = server.run(&[&["timeline"], refused].concat());
        assert!(text(&output.stderr).contains(why), "{output:?}");
    }
}

#[test]
fn a_recording_is_read_without_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let server = TestServer::start(Config::default());
    let file = file.as_str();
    let said = server.run(&["timeline", "web", "-n", "shop", "-f", file, "--width=40"]);
    assert_eq!(
        text(&said.stdout),
        "\
LEADER   2026-01-01T00:00:00Z2026-01-01T00:00:40Z
a        ####################...................#
b        ....................###################.
c        ..............................#.........
"
        .replace("Z2026", "Z 2026")
    );
    let said = server.run(&["history", "web", "-n", "shop", "-f", file]);
    let lines = text(&said.stdout);
    assert_eq!(lines.lines().count(), 6, "{lines}");
    let third = lines.lines().nth(2).unwrap();
    let end = " Held     b        2      b holds the Lease in term 2";
    assert!(third.starts_with("2026-01-01T00:00:20Z "), "{lines}");
    assert!(third.ends_with(end), "{lines}");
    let missing = server.run(&["history", "other", "-n", "shop", "-f", file]);
    let line =
        "error: failed to find anything about lease shop/other: it is not in the recording\n";
    assert_eq!(failure(&missing), line);
}

#[test]
fn what_others_write_into_events_stays_in_its_line() {
    let server = server();
    let note = format!("\u{1b}[2J\nx leads in term 9: {}", "y".repeat(100_000));
    event(&server, "web.9", 100, ["Elected", "Normal", &note]);
    let picture = text(&server.run(&["timeline", "web", "-o", "svg"]).stdout);
    assert_has(&picture, r"\u{1b}[2J\nx");
    assert!(picture.len() < 5_000, "{picture}");
    let note = "</text><script> leads in term 10: & so on";
    event(&server, "web.10", 90, ["Elected", "Normal", note]);
    let picture = text(&server.run(&["timeline", "web", "-o", "svg"]).stdout);
    assert!(!picture.contains("<script"), "{picture}");
    assert_has(&picture, "&lt;script&gt; leads in term 10: &amp; so on");
}
