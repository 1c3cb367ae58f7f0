//! Replays the kept corpus: what once failed, and what leads deep.

use std::fs;
use std::path::{Path, PathBuf};

use elector_fuzz::{drive_candidate, drive_history, drive_objects};

/// The scripts of one driver, by name.
fn scripts(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(folder);
    let entries = fs::read_dir(&folder).expect("the corpus is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let script = fs::read(&path).expect("readable");
        (path, script)
    };
    paths.into_iter().map(read).collect()
}

fn replay(folder: &str, drive: fn(&[u8])) {
    let scripts = scripts(folder);
    assert!(scripts.len() > 3, "an empty corpus proves nothing");
    for (path, script) in scripts {
        eprintln!("{}", path.display());
        drive(&script);
    }
}

#[test]
fn every_script_of_objects_holds() {
    replay("objects", drive_objects);
}

#[test]
fn every_script_of_a_candidate_holds() {
    replay("candidate", drive_candidate);
}

#[test]
fn every_recording_holds() {
    replay("history", drive_history);
}
