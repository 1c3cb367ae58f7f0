//! The crates that come with `elector-candidate`: each feature brings what it is named for, and nothing else does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The belongings of a feature: crates or, after a slash, features of one. No other set of features may bring them.
const BELONGINGS: [(&str, &str); 4] = [
    ("clap4", "clap clap_derive"),
    (
        "connect",
        "hyper-rustls hyper-util/client-proxy ipnet ring rustls",
    ),
    ("events", "kube-runtime"),
    ("metrics", "prometheus-client"),
];

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The crates that no feature may bring: the choice is the program's.
const NEVER: &str = "aws-lc-rs native-tls openssl openssl-sys tracing-subscriber";

/// The most crates that a candidate without features may add to a program with a client of kube, those of this workspace
/// among them.
const MOST_ADDED: usize = 14;

#[test]
fn a_candidate_adds_few_crates_to_a_program_with_a_client_of_kube() {
    let candidate = Path::new(WORKSPACE).join("crates/candidate");
    let candidate = format!("elector-candidate = {{ path = {candidate:?} }}");
    let (bare, with) = (crates_of_program(""), crates_of_program(&candidate));
    let added: Vec<_> = with.difference(&bare).collect();
    let holds = added.iter().any(|it| it.starts_with("elector-candidate "));
    assert!(holds, "{added:?}");
    assert!(
        added.len() <= MOST_ADDED,
        "{} crates: {added:#?}",
        added.len()
    );
}

#[test]
fn each_feature_brings_what_it_is_named_for_and_nothing_else_does() {
    for features in ",clap4,connect,events,kube5,metrics,supervise,test-util".split(',') {
        let brought = brought_by("elector-candidate", features);
        assert!(brought.contains_key("kube-client"), "{brought:?}");
        for (feature, belongings) in BELONGINGS {
            for belonging in belongings.split(' ') {
                let is_there = has(&brought, belonging);
                let expected = feature == features;
                assert_eq!(is_there, expected, "{belonging} with {features:?}");
            }
        }
    }
}

#[test]
fn no_feature_chooses_for_the_program() {
    let brought = brought_by(
        "elector-candidate",
        "clap4,connect,events,kube5,metrics,supervise,tokio-util-0-7",
    );
    for never in NEVER.split(' ') {
        assert!(!has(&brought, never), "{never}");
    }
}

/// The guard that no election has given is for tests.
#[test]
fn no_program_that_ships_can_make_a_guard() {
    let brought = brought_by("elector-cli", "");
    assert!(brought.contains_key("elector-candidate"), "{brought:?}");
    assert!(!has(&brought, "elector-candidate/test-util"), "{brought:?}");
    let brought = brought_by("elector-testing", "");
    assert!(has(&brought, "elector-candidate/test-util"), "{brought:?}");
    // A user of the kit does not get what only the tests here ask for.
    assert!(!has(&brought, "tracing-subscriber"), "{brought:?}");
}

/// The crates of a program with a client of kube and this line among its dependencies, itself left out. Their versions are
/// those of the workspace.
fn crates_of_program(dependency: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!(
        r#"
            [package]
            name = "program"
            edition = "2024"
            [workspace]
            [dependencies]
            k8s-openapi = {{ version = "*", features = ["latest"] }}
            kube = {{ version = "5", default-features = false, features = ["client", "rustls-tls", "ring"] }}
            tokio = {{ version = "1", features = ["macros", "rt"] }}
            {dependency}
        "#
    );
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    let lock = Path::new(WORKSPACE).join("Cargo.lock");
    fs::copy(lock, folder.path().join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal"])
        .args(["--prefix", "none", "--no-dedupe", "--format", "{p}"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().skip(1).map(str::to_owned).collect()
}

/// The crates that are built with this one of the workspace and these features of it, and their own features.
fn brought_by(package: &str, features: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", package])
        .args(["--edges", "normal", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p}|{f}", "--features", features])
        .current_dir(WORKSPACE)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates = tree.lines().map(|line| {
        let (package, features) = line.split_once('|').unwrap();
        let name = package.split(' ').next().unwrap();
        let features = features.split(',').map(str::to_owned);
        (name.to_owned(), features.collect())
    });
    crates.collect()
}

fn has(brought: &BTreeMap<String, Vec<String>>, belonging: &str) -> bool {
    match belonging.split_once('/') {
        Some((name, feature)) => {
            (brought.get(name)).is_some_and(|features| features.iter().any(|one| one == feature))
        }
        None => brought.contains_key(belonging),
    }
}
