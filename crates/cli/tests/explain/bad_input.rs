//! Input of which a part is bad: that part is named, and the rest explained.

use serde_json::Value;

use super::{NOW, candidate, explain, rows, text};

#[test]
fn bad_input_gets_one_clear_line() {
    for (arguments, input, expected) in [
        (
            ["-f", "-"],
            "{",
            "error: failed to read standard input as JSON or YAML: EOF while parsing an object",
        ),
        (
            ["-f", "/nonexistent"],
            "",
            "error: failed to read /nonexistent: No such file or directory",
        ),
        (
            ["-f", "-"],
            "[1]",
            "error: standard input: document 1: not a Kubernetes object, it has no kind",
        ),
    ] {
        let output = explain(&arguments, input);
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(expected), "{stderr}");
        let errors = stderr.lines().filter(|line| line.starts_with("error"));
        assert_eq!(errors.count(), 1, "{stderr}");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// The candidates of each row: name, whether eligible, reason.
fn candidates(rows: &Value) -> Vec<(String, String, bool, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of_row = |row: &Value| {
        let lease = text(&row["lease"]);
        let of_row = row["candidates"].as_array().unwrap().clone();
        of_row.into_iter().map(move |candidate| {
            let eligible = candidate["eligible"].as_bool().unwrap();
            let (name, reason) = (text(&candidate["name"]), text(&candidate["reason"]));
            (lease.clone(), name, eligible, reason)
        })
    };
    rows.as_array().unwrap().iter().flat_map(of_row).collect()
}

/// Nobody has judged what stands in a file. What a server would refuse is shown beside what it would take, with the
/// server's reason.
#[test]
fn a_candidate_that_no_server_takes_is_shown_as_rejected() {
    let bad = |field: &str, value: &str| {
        let mut object = candidate("bad", "1.1.0");
        *object.pointer_mut(field).unwrap() = value.into();
        object
    };
    let long = "a".repeat(300);
    let lease_rule =
        "must be the name of a Lease: a lowercase RFC 1123 subdomain of at most 253 characters";
    for (object, lease, name, why) in [
        (
            bad("/metadata/name", "No Name"),
            "web",
            "No Name",
            "metadata.name: Invalid value: \"No Name\": ".to_owned(),
        ),
        (
            bad("/spec/leaseName", &long),
            &long[..253],
            "bad",
            format!(
                "spec.leaseName: Invalid value: \"{}…: {lease_rule}",
                &long[..63]
            ),
        ),
        (
            bad("/spec/binaryVersion", "1.1"),
            "web",
            "bad",
            "spec.binaryVersion is not a semantic version MAJOR.MINOR.PATCH".to_owned(),
        ),
    ] {
        let input = format!("{object}\n{}", candidate("good", "1.1.0"));
        let told = candidates(&rows(&[], &input));
        assert_eq!(told.len(), 2, "{told:?}");
        let rejected = told.iter().find(|(_, _, eligible, _)| !eligible).unwrap();
        assert_eq!((&*rejected.0, &*rejected.1), (lease, name));
        assert!(rejected.3.starts_with(&why), "{rejected:?}");
        let taken = told.iter().find(|(_, _, eligible, _)| *eligible).unwrap();
        assert_eq!((&*taken.0, &*taken.1), ("web", "good"));
    }
}

/// A document that is none hides no other, save those that follow it in a stream of JSON.
#[test]
fn a_document_that_cannot_be_read_is_named_and_the_others_are_explained() {
    let good = |name| candidate(name, "1.1.0").to_string();
    let yaml = format!(
        "# first\n---\n{}\n---\n{{a: [}}\n---\n{{kind: Other, text: \"no end\n---of it\"}}\n--- # last\n{}\n",
        good("a"),
        good("b")
    );
    let stream = format!("{}\n{}\n{{]\n", good("a"), good("b"));
    for (input, place) in [(yaml, "document 2"), (stream, "document 3")] {
        let output = explain(&["-f", "-", "--now", NOW, "-o", "json"], &input);
        let told = candidates(&serde_json::from_slice(&output.stdout).unwrap());
        let names: Vec<_> = told.iter().map(|(_, name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let stderr = text(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let expected = format!("error: standard input: {place}: ");
        assert!(stderr.starts_with(&expected), "{stderr}");
        assert_eq!(output.status.code(), Some(1));
    }
}
