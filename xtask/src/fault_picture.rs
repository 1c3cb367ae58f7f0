//! The picture of work in the rows of the matrix of faults by which an outage is told: drawn by `kubectl elector timeline`, from
//! a recording in which a Lease stands for each run, and its holder for the client at work.

use std::fs;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::json;

use crate::commands::{self, cargo};
use crate::paths;

/// A recorded run, as far as it is drawn.
#[derive(Debug, Deserialize)]
struct DrawnRun {
    fault: String,
    subject: String,
    /// The client at work from each of these seconds on, empty for none.
    #[serde(default)]
    changes: Vec<(f64, String)>,
}

/// The rows and their subjects, in the order of the picture.
const FAULTS: [&str; 3] = ["killed-and-back", "partition-8", "lease-deleted"];
const SUBJECTS: [&str; 4] = ["ours", "as-client-go", "coordinated", "plain"];

/// The time that is shown, seconds.
const SHOWN: f64 = 50.0;

const RUNS: &str = "docs/proofs/faults.jsonl";
const RECORDING: &str = "target/faults/picture.jsonl";
const PICTURE: &str = "docs/proofs/faults.svg";

/// Draws one recorded run of each.
///
/// # Errors
/// When none is recorded with what is drawn, or a file cannot be read or written.
pub(crate) fn draw() -> Result<()> {
    let root = paths::workspace();
    let text = fs::read_to_string(root.join(RUNS))?;
    let runs: Vec<DrawnRun> = (text.lines().map(serde_json::from_str))
        .collect::<Result<_, _>>()
        .with_context(|| format!("failed to read {RUNS}"))?;
    let (mut lines, mut row) = (Vec::new(), 0);
    for (fault, subject) in FAULTS
        .map(|fault| SUBJECTS.map(|it| (fault, it)))
        .as_flattened()
    {
        let is_it = |run: &&DrawnRun| run.fault == *fault && run.subject == *subject;
        let Some(run) = (runs.iter().filter(is_it)).find(|run| !run.changes.is_empty()) else {
            continue;
        };
        row += 1;
        let shown = run.changes.iter().take_while(|(at, _)| *at < SHOWN);
        let end = shown.clone().last().map(|(_, worker)| (SHOWN, worker));
        for (at, worker) in shown.map(|(at, worker)| (*at, worker)).chain(end) {
            let name = format!("{row:02} {fault} {subject}");
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "namespace": "faults", "name": name, "uid": name, "resourceVersion": (lines.len() + 1).to_string(),
                    "labels": {"elector.dev/group": "work"},
                },
                "spec": {"holderIdentity": worker, "leaseTransitions": 1},
            });
            lines.push(json!({"at": at, "type": "MODIFIED", "object": lease}).to_string());
        }
    }
    fs::write(root.join(RECORDING), lines.join("\n"))?;
    let mut timeline = cargo();
    timeline
        .args("run --quiet --package elector-cli --bin kubectl-elector --".split(' '))
        .args("timeline --group work -n faults -o svg -f".split(' '))
        .arg(RECORDING);
    let drawn = commands::read(&mut timeline)?.stdout;
    fs::write(root.join(PICTURE), drawn).with_context(|| format!("failed to write {PICTURE}"))
}
