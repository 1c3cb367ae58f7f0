//! The first start of a program on a cluster without an elector, in each mode that leads there: what it says, and when.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::packages::BUILT;
use crate::child_guard::ChildGuard;
use crate::cluster::RealCluster;
use crate::{measured, paths};

/// The adopter that it belongs to, and the program.
pub(super) const ADOPTER: &str = "ten-lines";
const PROGRAM: &str = "first-start";

/// The modes, which name a lease each: they are not to be mixed.
const MODES: [&str; 3] = ["auto", "plain", "as-client-go"];

/// The time that a start may take, and the pause between two looks.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// Where the transcript is recorded, from the root of the workspace, and its name there.
const DOCUMENT: &str = "docs/leadership.md";
const TRANSCRIPT: &str = "transcript of the first start";

/// Has the program lead and give up in each mode, and writes down what it says.
///
/// # Errors
/// When it does not lead, or the document has no place for a transcript.
pub(super) fn record(cluster: &RealCluster) -> Result<()> {
    let mut transcript = "```console\n".to_owned();
    for mode in MODES {
        // Writing to a String does not fail.
        let _ = write!(transcript, "$ {PROGRAM} {mode}\n{}", play(cluster, mode)?);
    }
    transcript.push_str("```\n");
    print!("{transcript}");
    measured::record(DOCUMENT, TRANSCRIPT, &transcript)
}

/// Its output until it has given up.
fn play(cluster: &RealCluster, mode: &str) -> Result<String> {
    let built = paths::workspace().join(BUILT);
    let log = built.join(format!("{PROGRAM}-{mode}.log"));
    let said = File::create(&log).context("failed to make a file for its output")?;
    let mut run = Command::new(built.join("debug").join(PROGRAM));
    run.arg(mode)
        .env("KUBECONFIG", cluster.kubeconfig())
        .stdout(said.try_clone()?)
        .stderr(said);
    let start = Instant::now();
    let mut process = ChildGuard::spawn(&mut run).context("failed to start it")?;
    while !fs::read_to_string(&log)?.contains("leading, token") {
        ensure!(
            process.try_wait()?.is_none() && start.elapsed() < PATIENCE,
            "{PROGRAM} {mode} does not lead; it said: {}",
            fs::read_to_string(&log)?
        );
        thread::sleep(POLL);
    }
    let status = process.terminate(PATIENCE)?;
    let said = fs::read_to_string(&log)?;
    ensure!(
        status.success(),
        "{PROGRAM} {mode}: {status}; it said: {said}"
    );
    Ok(said)
}
