//! Each way to tamper with the recording is found.

use serde_json::{Value, json};

use crate::recording::{GRANT_AFTER_CRASH, findings, kept, lines, revision, tampered, version};

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
