//! `elector explain -f`: what it prints for objects at hand, and how it takes bad input.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod bad_input;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const NOW: &str = "2026-11-20T05:30:02Z";
const MIXED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explain/mixed.yaml");

fn explain(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_elector"))
        .arg("explain")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn rows(arguments: &[&str], input: &str) -> Value {
    let arguments = [&["-f", "-", "--now", NOW, "-o", "json"], arguments].concat();
    serde_json::from_slice(&explain(&arguments, input).stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn candidate(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"leaseName": "web", "binaryVersion": version, "emulationVersion": version,
                 "strategy": "OldestEmulationVersion", "renewTime": "2026-11-20T05:30:01.000000Z"},
    })
}

#[test]
fn a_list_of_mixed_kinds_is_explained_and_bad_objects_are_named() {
    let output = explain(&["-f", MIXED, "--now", NOW], "");
    assert_eq!(output.status.code(), Some(1), "something was malformed");
    let fault = "error: Lease default/bad: spec.leaseDurationSeconds: Invalid value: \"x\": must be a 32-bit integer\n";
    assert_eq!(text(&output.stderr), fault);
    assert_eq!(text(&output.stdout), include_str!("mixed.txt"));
}

#[test]
fn the_json_form_is_stable() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [candidate("b", "1.2.0"), candidate("a", "1.1.0")]});
    assert_eq!(
        rows(&[], &list.to_string()),
        json!([{
            "namespace": "default", "lease": "web", "action": "grant", "holder": "a", "preferredHolder": "",
            "strategy": "OldestEmulationVersion", "ping": [],
            "reason": "the lease is unheld and no former holder can still lead; a has the older emulation version 1.1.0 \
                       (not 1.2.0)",
            "heldBack": null, "operator": {"freeze": null, "prefer": null, "ignored": []}, "wake": {"afterSeconds": 899.0, "reason": "a quiet candidate is pinged"},
            "candidates": [
                {"name": "a", "eligible": true, "rank": 1,
                 "reason": "has the older emulation version 1.1.0 (not 1.2.0)"},
                {"name": "b", "eligible": true, "rank": 2,
                 "reason": "a has the older emulation version 1.1.0 (not 1.2.0)"},
            ],
        }])
    );
}

#[test]
fn typed_lists_single_objects_and_streams_are_read_alike() {
    let mut bare = candidate("a", "1.1.0");
    let single = bare.to_string();
    let stream = format!("{}\n{}", candidate("a", "1.1.0"), candidate("b", "1.2.0"));
    for key in ["apiVersion", "kind"] {
        bare.as_object_mut().unwrap().remove(key);
    }
    let typed = json!({"apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidateList", "items": [bare]});
    for input in [single, typed.to_string(), stream] {
        assert_eq!(rows(&[], &input)[0]["holder"], "a", "{input}");
    }
}

#[test]
fn a_leader_that_cannot_be_asked_to_make_room_is_explained() {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "web", "namespace": "default",
                     "annotations": {"elector.dev/strategy": "OldestEmulationVersion"}},
        "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15, "leaseTransitions": 3,
                 "acquireTime": "2026-11-20T05:00:00.000000Z", "renewTime": "2026-11-20T05:30:00.000000Z"},
    });
    let two = format!("{}\n{}", candidate("a", "1.1.0"), candidate("b", "1.2.0"));
    let row = &rows(&[], &format!("{two}\n{lease}"))[0];
    assert_eq!(row["action"], "none");
    assert_eq!(row["holder"], "b");
    let reason = "a is better, but b cannot be asked to yield: the server drops spec.preferredHolder and b does not read \
                  the annotation";
    assert_eq!(row["reason"], reason);
}

/// (R16) What counts, and what is ignored for which reason.
#[test]
fn an_operators_word_is_shown_whether_it_counts_or_not() {
    let said = |freeze: &str, prefer: &str| {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7",
                         "annotations": {"elector.dev/freeze": freeze, "elector.dev/prefer": prefer}},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                     "acquireTime": "2026-11-20T05:00:00.000000Z", "renewTime": "2026-11-20T05:30:01.000000Z"},
        });
        let candidates = format!("{}\n{}", candidate("a", "1.1.0"), candidate("b", "1.2.0"));
        let mut annotated = candidate("c", "1.3.0");
        annotated["metadata"]["annotations"] = json!({"elector.dev/stand-down": "maybe"});
        let input = format!("{candidates}\n{annotated}\n{lease}");
        let table = explain(&["-f", "-", "--now", NOW], &input).stdout;
        (rows(&[], &input)[0].clone(), text(&table))
    };
    let note = "candidate c: metadata.annotations[elector.dev/stand-down]: Invalid value: \"maybe\": must be an RFC 3339 \
                time, or \"true\"";
    let (row, table) = said("2026-11-20T06:00:00Z", "b until 2026-11-20T05:40:00+00:00");
    let operator = json!({
        "freeze": "2026-11-20T06:00:00.000000Z",
        "prefer": {"candidate": "b", "until": "2026-11-20T05:40:00.000000Z"},
        "ignored": [note],
    });
    assert_eq!(row["operator"], operator);
    let frozen =
        "b is better, but a is not asked to make room: the lease is frozen for another 1798.0s";
    assert_eq!(row["reason"], frozen);
    let best = &row["candidates"][0];
    assert_eq!(best["name"], "b");
    assert_eq!(best["reason"], "is preferred by an operator");
    for line in [
        "no leader is asked to make room until 2026-11-20T06:00:00.000000Z\n",
        "b goes before all others until 2026-11-20T05:40:00.000000Z\n",
    ] {
        assert!(table.contains(line), "{table}");
    }
    let ignored = |freeze, prefer| {
        let (row, _) = said(freeze, prefer);
        assert_eq!(row["reason"], "a leads and no candidate is better");
        row["operator"]["ignored"].clone()
    };
    let expected = json!([
        "elector.dev/freeze until 2026-11-20T05:30:02.000000Z is over",
        "elector.dev/prefer until 2026-11-20T06:00:00.000000Z: no eligible candidate has the name x",
        note,
    ]);
    assert_eq!(ignored(NOW, "x until 2026-11-20T06:00:00Z"), expected);
}

#[test]
fn filters_leave_others_out() {
    let one = candidate("a", "1.1.0").to_string();
    let found = |arguments: &[&str]| rows(arguments, &one).as_array().unwrap().len();
    assert_eq!(found(&["web", "-n", "default"]), 1);
    assert_eq!(found(&["-n", "elsewhere"]), 0);
    assert_eq!(found(&["-n", "elsewhere", "-A"]), 1);
    let output = explain(&["-f", "-", "other"], &one);
    assert_eq!(output.status.code(), Some(1));
    let line = "error: failed to find lease other in any namespace: there is no such Lease, and no candidate names it\n";
    assert_eq!(text(&output.stderr), line);
}

/// (R23) Events that stand in the input say what is held back, in either form and wherever they stand.
#[test]
fn what_electors_told_in_events_is_held_back() {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                 "acquireTime": "2026-11-20T05:00:00.000000Z", "renewTime": "2026-11-20T05:30:01.000000Z"},
    });
    let event = |uid: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "default"},
            "involvedObject": {"kind": "Lease", "namespace": "default", "name": "web", "uid": uid},
            "related": {"kind": "LeaseCandidate", "namespace": "default", "name": "b"},
            "reason": "PreferenceHeldBack", "type": "Warning",
            "message": "until 2026-11-20T05:40:02.000000Z a is not asked to make room for b: the last hand-over was not \
                        accepted",
            "eventTime": "2026-11-20T05:30:00.000000Z", "firstTimestamp": null,
            "reportingComponent": "elector.dev/elector", "reportingInstance": "pod",
        })
    };
    let explained = |event: Value| {
        let candidates = [candidate("a", "1.2.0"), candidate("b", "1.1.0")];
        let items = [vec![event, lease.clone()], candidates.to_vec()].concat();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        rows(&[], &list.to_string()).take()[0].take()
    };
    let row = explained(event("u"));
    assert_eq!(row["action"], "none", "{row:#}");
    assert_eq!(row["preferredHolder"], "");
    let reason = "b is better, but a is not asked to make room for another 600.0s: the last hand-over was not accepted";
    assert_eq!(row["reason"], reason);
    let held_back = json!({
        "candidate": "b", "until": "2026-11-20T05:40:02.000000Z", "reason": "the last hand-over was not accepted",
    });
    assert_eq!(row["heldBack"], held_back);
    // That one is about a Lease that was deleted since.
    let row = explained(event("another"));
    assert_eq!(row["action"], "prefer");
    assert_eq!(row["heldBack"], Value::Null);
}

/// (R16) One process leads both parts of a group, and another one has been there for an hour.
#[test]
fn a_part_of_a_group_says_to_which_candidate_it_is_assigned() {
    let metadata = |name: &str| {
        json!({"name": name, "namespace": "default", "creationTimestamp": "2026-11-20T04:30:00Z",
               "labels": {"elector.dev/group": "web"}})
    };
    let mut items = Vec::new();
    for part in ["web-0", "web-1"] {
        items.push(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata(part),
            "spec": {"holderIdentity": format!("a.{part}"), "leaseDurationSeconds": 15, "leaseTransitions": 3,
                     "acquireTime": "2026-11-20T05:00:00.000000Z", "renewTime": "2026-11-20T05:30:00.000000Z",
                     "strategy": "OldestEmulationVersion"},
        }));
        for member in ["a", "b"] {
            let mut of_member = candidate(&format!("{member}.{part}"), "1.1.0");
            of_member["metadata"] = metadata(&format!("{member}.{part}"));
            of_member["metadata"]["annotations"] = json!({"elector.dev/member": member});
            of_member["spec"]["leaseName"] = part.into();
            items.push(of_member);
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let rows = rows(&[], &list);
    for (part, assigned, action) in [(0, "b.web-0", "prefer"), (1, "a.web-1", "none")] {
        let group = json!({"name": "web", "assigned": assigned});
        assert_eq!(rows[part]["group"], group);
        assert_eq!(rows[part]["action"], action);
    }
    let reason = "a.web-0 is asked to make room: b.web-0 is assigned this part of its group";
    assert_eq!(rows[0]["reason"], reason);
    // One lease is explained as a part of all.
    let output = explain(&["-f", "-", "--now", NOW, "web-1"], &list);
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), 5, "{table}");
    let line = table.lines().nth(2).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    let assigned = "elector.dev/group web this part of the group is assigned to a.web-1";
    assert_eq!(words.join(" "), assigned);
}
