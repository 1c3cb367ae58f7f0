use serde_json::json;

use super::*;

fn lease(version: u64, spec: &Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "web", "namespace": "ns", "uid": "u", "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    })
}

fn candidate(version: u64, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate",
        "metadata": {"name": "a", "namespace": "ns", "uid": "c", "resourceVersion": version.to_string()},
        "spec": {"leaseName": "web", "renewTime": renewed},
    })
}

fn read(text: &str) -> (History, Vec<String>) {
    let mut reader = RecordingReader::default();
    reader.read("f", text);
    let (history, errors) = reader.finish();
    (history, errors.iter().map(ToString::to_string).collect())
}

fn micros(text: &str) -> i64 {
    parse_time(text).unwrap().as_micros()
}

fn times(history: &History) -> Vec<(u64, i64)> {
    let start = micros("2026-01-01T00:00:00Z");
    let time = |entry: &HistoryEntry| {
        let version = entry.content.version().map_or(0, |version| version.0);
        (version, entry.at.as_micros() - start)
    };
    history.entries().iter().map(time).collect()
}

#[test]
fn every_form_of_a_recording_is_read() {
    let seen =
        json!({"at": "2026-01-01T00:00:01Z", "type": "ADDED", "object": lease(5, &json!({}))});
    let from_jq =
        json!({"at": 1_767_225_602.5, "type": "MODIFIED", "object": lease(6, &json!({}))});
    let gone =
        json!({"at": "2026-01-01T00:00:03Z", "type": "DELETED", "object": lease(7, &json!({}))});
    let event = json!({"event": "leading", "name": "a", "time": "2026-01-01T00:00:02.75Z", "lease": "ns/web"});
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}});
    let text = format!("{seen}\n{bookmark}\n{gone:#}\n{from_jq}{event}\n");
    let (history, errors) = read(&text);
    assert_eq!(errors, [""; 0]);
    assert_eq!(history.times(), Times::Seen);
    assert_eq!(
        times(&history),
        [
            (5, 1_000_000),
            (6, 2_500_000),
            (0, 2_750_000),
            (7, 3_000_000)
        ]
    );
    assert!(matches!(
        history.entries()[3].content,
        EntryContent::LeaseGone(..)
    ));
}

#[test]
fn what_is_written_reads_back() {
    let document = |kind: &str, object: Value| {
        json!({"at": "2026-01-01T00:00:01.000001Z", "type": kind, "object": object}).to_string()
    };
    let lines = [
        document("MODIFIED", lease(5, &json!({"holderIdentity": "a"}))),
        document("DELETED", lease(6, &json!({"holderIdentity": "a"}))),
        document("MODIFIED", candidate(7, "2026-01-01T00:00:01.000000Z")),
        document("DELETED", candidate(8, "2026-01-01T00:00:01.000000Z")),
        json!({
            "event": "work-stopped", "name": "a", "time": "2026-01-01T00:00:02.000000Z",
            "lease": "ns/web", "term": 3, "token": 7,
        })
        .to_string(),
        json!({"event": "killed", "name": "a", "time": "2026-01-01T00:00:03.000000Z"}).to_string(),
    ];
    let text = lines.join("\n") + "\n";
    let (read, errors) = read(&text);
    assert_eq!(errors, [""; 0]);
    let mut history = History::default();
    for entry in read.entries() {
        history.record(entry.at, EntryContent::Note("a remark".to_owned()));
        history.record(entry.at, entry.content.clone());
    }
    assert_eq!(history.recording(), text);
}

#[test]
fn without_times_of_receipt_those_that_were_written_count() {
    let renewed = |time: &str| json!({"holderIdentity": "a", "renewTime": time});
    let documents = [
        lease(5, &json!({"holderIdentity": ""})),
        lease(6, &renewed("2026-01-01T00:00:02Z")),
        // A signal: nothing new was written.
        lease(7, &renewed("2026-01-01T00:00:02Z")),
        candidate(8, "2026-01-01T00:00:03Z"),
        // A clock that is behind, and one that is no clock.
        lease(9, &renewed("2026-01-01T00:00:01Z")),
        lease(10, &renewed("9999-01-01T00:00:01Z")),
    ];
    let list = json!({"kind": "List", "apiVersion": "v1", "items": documents});
    let (history, errors) = read(&list.to_string());
    assert_eq!(errors, [""; 0]);
    assert_eq!(history.times(), Times::Written);
    let second = 1_000_000;
    assert_eq!(
        times(&history),
        [
            (5, 0),
            (6, 2 * second),
            (7, 2 * second),
            (8, 3 * second),
            (9, 3 * second),
            (10, 3 * second)
        ]
    );
}

#[test]
fn a_watch_that_begins_anew_leaves_a_gap() {
    let event = |kind: &str, version| {
        json!({"type": kind, "object": lease(version, &json!({}))}).to_string() + "\n"
    };
    let gaps = |text: &str| {
        let (history, _) = read(text);
        let versions = history.gaps().iter().map(|version| version.0);
        versions.collect::<Vec<_>>()
    };
    let first = event("ADDED", 5) + &event("MODIFIED", 6);
    assert_eq!(gaps(&first), [0; 0]);
    assert_eq!(
        gaps(&(first.clone() + &event("ADDED", 6) + &event("MODIFIED", 7))),
        [0; 0]
    );
    assert_eq!(
        gaps(&(first.clone() + &event("ADDED", 8) + &event("MODIFIED", 9))),
        [8]
    );
    // Another recording saw what happened meanwhile.
    let other = (5..9).fold(event("ADDED", 4), |text, version| {
        text + &event("MODIFIED", version)
    });
    assert_eq!(gaps(&(first + &event("ADDED", 8) + &other)), [0; 0]);
    let list = |version| json!({"kind": "List", "items": [lease(version, &json!({}))]}).to_string();
    assert_eq!(gaps(&(list(5) + &list(9))), [9]);
}

#[test]
fn a_bad_item_does_not_stop_its_list() {
    let mut unnamed = lease(5, &json!({}));
    unnamed["metadata"]["name"] = json!(null);
    let list = json!({"kind": "List", "items": [unnamed, 7, lease(6, &json!({}))]});
    let (history, errors) = read(&list.to_string());
    assert_eq!(history.entries().len(), 1);
    assert_eq!(
        errors,
        [
            "f: document 1, line 1: item 1: Lease ns/: metadata.name: Required value",
            "f: document 1, line 1: item 2: neither a Kubernetes object, nor a watch event, nor an event of a candidate",
        ]
    );
}

#[test]
fn a_typed_list_lends_its_kind() {
    let mut item = candidate(5, "2026-01-01T00:00:00Z");
    for field in ["kind", "apiVersion"] {
        item.as_object_mut().unwrap().remove(field);
    }
    let list = json!({"kind": "LeaseCandidateList", "apiVersion": "coordination.k8s.io/v1beta1", "items": [item]});
    let (history, errors) = read(&list.to_string());
    assert_eq!(errors, [""; 0]);
    assert!(matches!(
        history.entries()[0].content,
        EntryContent::Candidate(..)
    ));
}

#[test]
fn bad_documents_are_named_and_do_not_stop_the_rest() {
    let good = lease(5, &json!({}));
    let mut unnamed = good.clone();
    unnamed["metadata"]["resourceVersion"] = "x".into();
    let mut unidentified = good.clone();
    unidentified["metadata"]["uid"] = "".into();
    let text = format!(
        "a log line\n{unnamed:#}\n{{\"kind\": \"Lease\", oops}}\n{good}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{{\"type\": \"ADDED\",\n",
        json!({"kind": "Lease", "apiVersion": "v9"}),
        json!({"event": "leading", "name": "a"}),
        json!({"type": "ERROR", "object": {"kind": "Status", "message": "too old resource version"}}),
        json!({"at": "noon", "type": "ADDED", "object": good}),
        json!({"at": true, "type": "ADDED", "object": good}),
        json!({"object": good}),
        unidentified,
        json!({"kind": "LeaseCandidate", "apiVersion": "v9"}),
        // Of another kind, which is not Elector's to read.
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}}),
    );
    let (history, errors) = read(&text);
    assert_eq!(history.entries().len(), 1);
    assert_eq!(
        errors,
        [
            "f: line 1: neither a JSON object nor a part of one",
            "f: document 1, line 2: Lease ns/web: metadata.resourceVersion: Invalid value: \"x\": must be an integer",
            "f: document 2, line 14: no JSON: key must be a string in line 14",
            "f: document 4, line 16: Lease of unknown apiVersion \"v9\"",
            "f: document 5, line 17: an event of a candidate needs event (start, leading, work-stopped, lost or \
             killed), name and time",
            "f: document 6, line 18: the watch ended in an error: too old resource version",
            "f: document 7, line 19: at must be an RFC 3339 time, or seconds since 1970",
            "f: document 8, line 20: at must be an RFC 3339 time, or seconds since 1970",
            "f: document 9, line 21: a watch event needs a type: ADDED, MODIFIED or DELETED",
            "f: document 10, line 22: Lease ns/web: metadata.uid: Required value",
            "f: document 11, line 23: LeaseCandidate of unknown apiVersion \"v9\"",
            "f: document 13, line 25: ends in the midst of the document",
        ]
    );
}

#[test]
fn a_flood_of_garbage_is_told_once() {
    let (_, errors) = read(&"nonsense\n".repeat(1000));
    assert_eq!(errors.len(), 6);
    assert_eq!(errors[5], "f: line 6: more of this, which is not repeated");
}

#[test]
fn a_megabyte_that_cannot_be_read_is_not_repeated() {
    let version = "9".repeat(1 << 20);
    let mut lease = lease(5, &json!({}));
    lease["metadata"]["resourceVersion"] = json!(version);
    let mut reader = RecordingReader::default();
    reader.read("it", &lease.to_string());
    let (_, errors) = reader.finish();
    assert_eq!(errors.len(), 1);
    let text = errors[0].to_string();
    assert!(text.ends_with('…') && text.len() < 1000, "{text}");
}

/// A candidate writes them for its parent, and they say nothing of the beginning and the end of work and belief.
#[test]
fn renewals_and_orders_to_stop_are_passed_over() {
    let line = |event: &str| {
        let time = "2026-01-01T00:00:00Z";
        json!({"event": event, "name": "a", "time": time}).to_string() + "\n"
    };
    let lines = ["leading", "renewed", "stopping", "lost"]
        .map(line)
        .concat();
    let (history, errors) = read(&lines);
    assert_eq!(errors, [""; 0]);
    assert_eq!(history.entries().len(), 2);
}
