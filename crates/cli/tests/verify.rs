//! `elector verify`: what it says of a recording of a real cluster, and of the same one after it was tampered with.
//!
//! The recording: one elector, three candidates with a lease of 6 s. web-0 leads, hands over to web-2, which is older
//! and gets killed; web-0 follows after its lease has expired, and releases.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verify");

/// The grant to the next after the crash, and the accept that follows it.
const GRANT_AFTER_CRASH: u64 = 231;

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_elector"))
        .arg("verify")
        .args(arguments)
        .current_dir(FOLDER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may have ended before it read anything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The documents of a kept file.
fn kept(name: &str) -> Vec<Value> {
    let lines = std::fs::read_to_string(format!("{FOLDER}/{name}")).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn lines(documents: &[Value]) -> String {
    documents
        .iter()
        .map(|document| format!("{document}\n"))
        .collect()
}

fn version(document: &Value) -> u64 {
    let version = document.pointer("/object/metadata/resourceVersion");
    version
        .and_then(Value::as_str)
        .map_or(0, |version| version.parse().unwrap())
}

/// The watch after it was tampered with.
fn tampered(with: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut documents = kept("watch.json");
    with(&mut documents);
    lines(&documents)
}

/// The watch as it would be, had the elector not waited after the crash.
fn spoilt() -> String {
    tampered(|documents| {
        for document in documents.iter_mut() {
            if version(document) >= GRANT_AFTER_CRASH {
                document["at"] = json!(document["at"].as_f64().unwrap() - 4.0);
            }
        }
    })
}

/// The revision of the Lease with this version, to be changed.
fn revision(documents: &mut [Value], wanted: u64) -> &mut Value {
    documents
        .iter_mut()
        .find(|document| version(document) == wanted)
        .unwrap()
}

/// The verdict on this watch, with the work trace: exit status, and the findings as "S3 @231".
fn findings(watch: &str, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = run(&[&["-f", "-", "-o", "json"], arguments].concat(), watch);
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = reports[0]["findings"].as_array().unwrap();
    let words = found.iter().map(|finding| {
        let invariant = finding["invariant"].as_str().unwrap();
        match finding["after"].as_u64() {
            Some(version) => format!("{invariant} @{version}"),
            None => invariant.to_owned(),
        }
    });
    (output.status.code(), words.collect())
}

#[test]
fn a_recording_is_proven() {
    let output = run(&["-f", "watch.json", "-f", "work.json"], "");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        text(&output.stdout),
        std::fs::read_to_string(format!("{FOLDER}/proven.txt")).unwrap()
    );
    assert_eq!(output.status.code(), Some(0));
}

/// client-go's go-0 was stopped by SIGSTOP until web-1 led, and then went on: it led on for 1.1 s beside web-1, and until
/// it was elected again it led without a lease.
#[test]
fn a_client_go_leader_that_was_paused_refutes_it() {
    let output = run(&["-f", "client-go.json"], "");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        text(&output.stdout),
        std::fs::read_to_string(format!("{FOLDER}/client-go.txt")).unwrap()
    );
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
fn what_kubectl_prints_is_enough() {
    let mut documents = kept("watch.json");
    for document in &mut documents {
        document.as_object_mut().unwrap().remove("at");
    }
    let pretty: String = documents
        .iter()
        .map(|document| format!("{document:#}\n"))
        .collect();
    let output = run(&["-f", "-"], &pretty);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        text(&output.stdout),
        std::fs::read_to_string(format!("{FOLDER}/kubectl.txt")).unwrap()
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_violation_is_shown_with_both_revisions() {
    let early = spoilt();
    let output = run(&["-f", "-", "-f", "work.json"], &early);
    assert_eq!(
        text(&output.stdout),
        std::fs::read_to_string(format!("{FOLDER}/refuted.txt")).unwrap()
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn each_way_to_tamper_is_found() {
    let accept = {
        let documents = kept("watch.json");
        let later = documents
            .iter()
            .filter(|document| document.pointer("/object/kind") == Some(&json!("Lease")));
        later
            .map(version)
            .find(|version| *version > GRANT_AFTER_CRASH)
            .unwrap()
    };
    let spec = |version: u64, field: &'static str, value: Value| {
        tampered(move |documents| revision(documents, version)["object"]["spec"][field] = value)
    };
    let trace = ["-f", "work.json"];
    let of = |words: &[&str]| {
        (
            Some(1),
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(findings(&tampered(|_| {}), &trace), (Some(0), vec![]));

    // The grant kept the number of the term, as the built-in controller does.
    let found = findings(
        &spec(GRANT_AFTER_CRASH, "leaseTransitions", json!(2)),
        &trace,
    );
    assert!(
        found.1.contains(&format!("S3 @{GRANT_AFTER_CRASH}")),
        "{found:?}"
    );

    // A renewal shortened the lease.
    let renewal = 224;
    let found = findings(&spec(renewal, "leaseDurationSeconds", json!(3)), &trace);
    assert_eq!(found.1[0], format!("S10 @{renewal}"));

    // The accept wrote another token.
    let found = tampered(|documents| {
        revision(documents, accept)["object"]["metadata"]["annotations"]["elector.dev/token"] =
            json!("1");
    });
    let found = findings(&found, &trace);
    assert!(found.1.contains(&format!("S5 @{accept}")), "{found:?}");

    // A holder that was never a candidate.
    let found = tampered(|documents| {
        let stays =
            |document: &Value| document.pointer("/object/metadata/name") != Some(&json!("web-0"));
        documents.retain(stays);
    });
    let found = findings(&found, &trace);
    assert!(
        found.1.contains(&format!("S7 @{GRANT_AFTER_CRASH}")),
        "{found:?}"
    );

    // Its grant was lost from the recording.
    let found =
        tampered(|documents| documents.retain(|document| version(document) != GRANT_AFTER_CRASH));
    let found = findings(&found, &trace);
    assert!(!found.1.is_empty());

    // web-2 was not killed, and worked on beside web-0.
    let mut work = kept("work.json");
    let leading = work
        .iter()
        .find(|line| line["name"] == "web-2" && line["event"] == "leading")
        .unwrap();
    let mut stopped = leading.clone();
    stopped["event"] = "work-stopped".into();
    stopped["time"] = "2026-11-20T08:25:14.5Z".into();
    work.push(stopped);
    let both = lines(&kept("watch.json")) + &lines(&work);
    assert_eq!(findings(&both, &[]), of(&["S1", "S2"]));
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
    assert_eq!(
        (&report["verdict"], &report["oneLeader"]),
        (&json!("proven"), &json!("held"))
    );
    assert_eq!(
        (
            &report["revisions"],
            &report["termsLed"],
            &report["leaders"]
        ),
        (&json!(18), &json!(3), &json!(2))
    );
    assert_eq!(report["moves"][0], json!({"kind": "create", "count": 1}));
    assert_eq!(
        report["invariants"][0],
        json!({"id": "S1", "says": "at most one leader at a time", "verdict": "held"})
    );
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
    assert_eq!(
        keys(&reports[0]["findings"][0]),
        "after before invariant promised sentence time"
    );
}

#[test]
fn leases_of_others_are_left_out_and_counted() {
    let plain = |name: &str| {
        json!({
            "type": "ADDED",
            "object": {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"},
                "spec": {"holderIdentity": "somebody"},
            },
        })
    };
    let others =
        tampered(|documents| documents.extend([plain("one"), plain("other"), plain("other")]));
    let output = run(&["-f", "-", "-f", "work.json"], &others);
    let text = text(&output.stdout);
    assert!(
        text.contains(
            "\n2 other leases, which no candidate names and no token marks, are left out.\n"
        ),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_a_stranger_wrote_can_be_declared() {
    let seized = tampered(|documents| {
        let spec = &mut revision(documents, GRANT_AFTER_CRASH)["object"]["spec"];
        spec["leaseTransitions"] = json!(7);
        for document in documents.iter_mut() {
            if version(document) > GRANT_AFTER_CRASH
                && document.pointer("/object/kind") == Some(&json!("Lease"))
            {
                document["object"]["spec"]["leaseTransitions"] = json!(7);
                document["object"]["metadata"]["annotations"]["elector.dev/token-term"] =
                    json!("7");
            }
        }
        let last = documents
            .iter_mut()
            .rfind(|document| document.pointer("/object/spec/holderIdentity") == Some(&json!("")));
        last.unwrap()["object"]["metadata"]["annotations"]
            .as_object_mut()
            .unwrap()
            .remove("elector.dev/token-term");
    });
    assert_eq!(
        findings(&seized, &[]),
        (Some(1), vec![format!("S3 @{GRANT_AFTER_CRASH}")])
    );
    let declared = GRANT_AFTER_CRASH.to_string();
    assert_eq!(
        findings(&seized, &["--foreign", &declared]),
        (Some(0), vec![])
    );
}

#[test]
fn bad_input_is_named_and_the_rest_judged() {
    let watch = std::fs::read_to_string(format!("{FOLDER}/watch.json")).unwrap();
    let output = run(
        &["-f", "-", "-f", "work.json"],
        &format!("Warning: deprecated\n{watch}{{\"type\": \"ADDED\""),
    );
    assert_eq!(
        text(&output.stderr),
        format!(
            "error: standard input: line 1: neither a JSON object nor a part of one\n\
             error: standard input: document {}, line {}: ends in the midst of the document\n",
            watch.lines().count() + 1,
            watch.lines().count() + 2,
        )
    );
    assert!(text(&output.stdout).contains("proven for 3 terms"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_a_stranger_wrote_into_objects_neither_breaks_a_line_nor_reaches_the_terminal() {
    let hostile = "\u{1b}[2J\u{9b}A\n  held: all\u{202e}\u{2028}";
    let renamed = |documents: &mut Vec<Value>| {
        for document in documents.iter_mut() {
            let holder = document.pointer_mut("/object/spec/holderIdentity");
            if let Some(holder) = holder.filter(|holder| *holder != "") {
                *holder = format!("{}{hostile}", holder.as_str().unwrap()).into();
            }
        }
    };
    let mut documents: Vec<Value> = serde_json::Deserializer::from_str(&spoilt())
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    renamed(&mut documents);
    let bad = json!({"type": hostile, "object": {"kind": hostile}});
    let watch = format!("{bad}\n{}", lines(&documents));
    let is_line = |line: &str| {
        line.chars()
            .all(|c| c.escape_debug().eq([c]) || "\"'\\".contains(c))
    };
    let output = run(&["-f", "-"], &watch);
    let (report, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(
        report.contains(r"\u{1b}[2J\u{9b}A\n  held: all"),
        "{report}"
    );
    assert!(
        report.lines().chain(errors.lines()).all(is_line),
        "{report:?} {errors:?}"
    );
    let held = |line: &&str| line.trim_start().starts_with("held: ");
    assert_eq!(report.lines().filter(held).count(), 1, "{report}");
    let output = run(&["-f", "-", "-o", "json"], &watch);
    let document = text(&output.stdout);
    assert!(document.lines().all(is_line), "{document:?}");
    let reports: Value = serde_json::from_str(&document).unwrap();
    let leader = reports[0]["terms"][0]["leader"].as_str().unwrap();
    assert!(leader.ends_with(hostile), "JSON keeps exact values");
}

#[test]
fn what_cannot_be_told_is_said() {
    let nothing = run(&["-f", "-"], "");
    assert_eq!(nothing.status.code(), Some(2));
    assert_eq!(
        text(&nothing.stderr),
        "No lease of this history is named by a candidate or carries a token.\n"
    );
    let missing = run(&["-f", "nowhere.json"], "");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).starts_with("error: failed to read nowhere.json: "));
    let usage = run(&[], "");
    assert_eq!(usage.status.code(), Some(2));

    // A candidate alone proves nothing about its lease.
    let candidates = tampered(|documents| {
        documents
            .retain(|document| document.pointer("/object/kind") == Some(&json!("LeaseCandidate")));
    });
    let output = run(&["-f", "-"], &candidates);
    assert!(
        text(&output.stdout).contains("at most one leader at a time: not proven"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn filters_leave_others_out() {
    let of = |arguments: &[&str]| {
        let arguments = [&["-f", "watch.json", "-o", "json"], arguments].concat();
        let output = run(&arguments, "");
        let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
        reports.as_array().unwrap().len()
    };
    assert_eq!(of(&["-n", "shop", "--lease", "web"]), 1);
    assert_eq!(of(&["-n", "elsewhere"]), 0);
    assert_eq!(of(&["--lease", "other"]), 0);
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
