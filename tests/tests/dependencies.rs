//! The crates that come with `elector-candidate`: each feature brings what it is named for, and nothing else does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::BTreeMap;
use std::process::Command;

/// The belongings of a feature: crates or, after a slash, features of one. No other set of features may bring them.
const BELONGINGS: [(&str, &[&str]); 3] = [
    ("clap4", &["clap", "clap_derive"]),
    (
        "connect",
        &[
            "hyper-rustls",
            "hyper-util/client-proxy",
            "ipnet",
            "ring",
            "rustls",
        ],
    ),
    ("metrics", &["prometheus-client"]),
];

/// The crates that no feature may bring: the choice is the program's.
const NEVER: [&str; 5] = [
    "aws-lc-rs",
    "native-tls",
    "openssl",
    "openssl-sys",
    "tracing-subscriber",
];

#[test]
fn each_feature_brings_what_it_is_named_for_and_nothing_else_does() {
    for features in [
        "",
        "clap4",
        "connect",
        "events",
        "kube5",
        "metrics",
        "supervise",
        "test-util",
    ] {
        let brought = brought_by("elector-candidate", features);
        assert!(brought.contains_key("kube-client"), "{brought:?}");
        for (feature, belongings) in BELONGINGS {
            for belonging in belongings {
                let is_there = has(&brought, belonging);
                assert_eq!(
                    is_there,
                    feature == features,
                    "{belonging} with {features:?}"
                );
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
    for never in NEVER {
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

/// The crates that are built with this one of the workspace and these features of it, and their own features.
fn brought_by(package: &str, features: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", package])
        .args(["--edges", "normal", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p}|{f}", "--features", features])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
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
