//! `elector explain` on objects of every quality: the scripts that the fuzzers keep.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn explain_says_something_of_whatever_it_is_given() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/model/corpus/objects");
    let (mut scripts, mut explained) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let output = Command::new(env!("CARGO_BIN_EXE_elector"))
            .args(["explain", "--now", "2026-01-01T00:00:10Z", "-o", "json"])
            .args([Path::new("-f"), &path])
            .output()
            .unwrap();
        let told = format!(
            "{}: {}",
            path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(matches!(output.status.code(), Some(0 | 1)), "{told}");
        assert!(told.lines().all(|line| line.len() < 2_000), "{told}");
        scripts += 1;
        if output.stdout.is_empty() {
            // It could not be read at all, which is said.
            assert!(told.contains(": error: failed to "), "{told}");
        } else {
            let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            explained += rows.as_array().unwrap().len();
        }
    }
    let holds = scripts > 50 && explained > 20;
    assert!(holds, "{scripts} scripts, {explained} leases");
}
