//! The recording, what tampering makes of it, and what `elector verify` says of that.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verify");

/// The grant to the next after the crash, and the accept that follows it.
pub(crate) const GRANT_AFTER_CRASH: u64 = 231;

pub(crate) fn run(arguments: &[&str], input: &str) -> Output {
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

pub(crate) fn text(bytes: &[u8]) -> String {
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

pub(crate) fn lines(documents: &[Value]) -> String {
    documents
        .iter()
        .map(|document| format!("{document}\n"))
        .collect()
}

pub(crate) fn version(document: &Value) -> u64 {
    let version = document.pointer("/object/metadata/resourceVersion");
    version
        .and_then(Value::as_str)
        .map_or(0, |version| version.parse().unwrap())
}

/// The watch after it was tampered with.
pub(crate) fn tampered(with: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut documents = kept("watch.json");
    with(&mut documents);
    lines(&documents)
}

/// The watch as it would be, had the elector not waited after the crash.
pub(crate) fn spoilt() -> String {
    tampered(|documents| {
        for document in documents.iter_mut() {
            if version(document) >= GRANT_AFTER_CRASH {
                document["at"] = json!(document["at"].as_f64().unwrap() - 4.0);
            }
        }
    })
}
