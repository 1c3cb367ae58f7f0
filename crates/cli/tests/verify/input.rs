//! Input that is read, or left out: leases of others, strangers' writes, bad input, filters.

use serde_json::{Value, json};

use crate::recording::{FOLDER, lines, run, spoilt, tampered, text};

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
    let holds = report.contains(r"\u{1b}[2J\u{9b}A\n  held: all");
    assert!(holds, "{report}");
    let holds = report.lines().chain(errors.lines()).all(is_line);
    assert!(holds, "{report:?} {errors:?}");
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
    let expected = "No lease of this history is named by a candidate or carries a token.\n";
    assert_eq!(text(&nothing.stderr), expected);
    let missing = run(&["-f", "nowhere.json"], "");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).starts_with("error: failed to read nowhere.json: "));
    let usage = run(&[], "");
    assert_eq!(usage.status.code(), Some(2));
    let usage = run(&["-f", "-", "--elector-lock", "web"], "");
    assert!(text(&usage.stderr).contains("not of the form namespace/name"));

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
