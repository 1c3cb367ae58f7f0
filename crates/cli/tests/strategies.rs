//! `docs/strategies.md` shows what `elector explain` prints for each strategy.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use elector_protocol::StrategyName;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/strategies.md");
const OBJECTS: &str = include_str!("strategies/candidates.yaml");

/// The output for the same candidates under this strategy.
fn explained(strategy: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_elector"))
        .args(["explain", "-f", "-", "--now", "2026-11-20T05:30:02Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let objects = OBJECTS.replace("STRATEGY", strategy);
    let mut input = child.stdin.take().unwrap();
    input.write_all(objects.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_page_shows_what_is_printed_for_each_strategy() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    for strategy in StrategyName::KNOWN {
        let (_, section) = page.split_once(&format!("\n## `{strategy}`\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let expected = format!(
            "\n```console\n$ elector explain\n{}```\n",
            explained(strategy)
        );
        assert!(section.contains(&expected), "{strategy}:{expected}");
    }
}
