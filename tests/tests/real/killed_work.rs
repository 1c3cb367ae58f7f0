//! The work of a candidate that is killed or ends, with all that the work has started.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use elector_tests::rig::{ClusterChoice, ClusterMode, Suite, Testbed};
use tokio::time::{Instant, sleep};

use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "work_dies_with_a_killed_candidate",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(10),
        |testbed| Box::pin(work_dies(testbed)),
    );
    suite.add(
        "a_daemon_of_the_work_does_not_live_into_the_next_term",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(15),
        |testbed| Box::pin(daemon_is_gone(testbed)),
    );
}

/// SIGKILL leaves a candidate no time to clean up; the work must be gone all the same, and what it has started too.
async fn work_dies(testbed: Arc<Testbed>) -> Result<()> {
    let (file, daemon) = (
        testbed.folder().join("work.pid"),
        testbed.folder().join("daemon.pid"),
    );
    let script = format!(
        "trap '' TERM HUP; {}; echo $$ > {}; while :; do sleep 1; done",
        start_daemon(&daemon),
        file.display()
    );
    let mut candidate = testbed
        .candidate("candidate")
        .work(&["sh", "-c", &script])
        .start()?;
    candidate.leads(PROMPTLY).await?;
    let (work, daemon) = (written(&file).await?, written(&daemon).await?);
    ensure!(runs(&work) && runs(&daemon), "the work does not run");
    candidate.kill()?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while runs(&work) || runs(&daemon) {
        if Instant::now() >= deadline {
            bail!("the work outlived its candidate");
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The command obeys SIGTERM at once, and leaves a process in a session of its own: the next leader finds it gone.
async fn daemon_is_gone(testbed: Arc<Testbed>) -> Result<()> {
    let (daemon, verdict) = (
        testbed.folder().join("daemon.pid"),
        testbed.folder().join("verdict"),
    );
    let (file, seen) = (daemon.display(), verdict.display());
    let script = format!(
        "if [ -s {file} ]; then kill -0 $(cat {file}) && echo alive > {seen} || echo gone > {seen}; fi; {}; \
         exec sleep 600",
        start_daemon(&daemon),
    );
    let work = ["sh", "-c", &script];
    let mut first = testbed.candidate("first").work(&work).start()?;
    first.leads(PROMPTLY).await?;
    ensure!(
        runs(&written(&daemon).await?),
        "the work has started nothing"
    );
    let second = testbed.candidate("second").work(&work).start()?;
    first.terminate()?;
    second.leads(PROMPTLY).await?;
    let verdict = written(&verdict).await?;
    ensure!(
        verdict == "gone",
        "the daemon is {verdict} in the next term"
    );
    first.ends_well(PROMPTLY).await?;
    Ok(())
}

/// A line of a script that starts a process with a session of its own and without a parent, which writes its id.
fn start_daemon(file: &Path) -> String {
    let file = file.display();
    let daemon = format!("trap \"\" TERM HUP; echo $$ > {file}; while :; do sleep 1; done");
    format!("(setsid sh -c '{daemon}' &)")
}

/// True if there is such a process; one that only waits for its parent to take note of its end does not count.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may hold anything but ends with the last parenthesis.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The line in a file that is about to be written.
async fn written(file: &Path) -> Result<String> {
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return Ok(pid.to_owned());
        }
        if Instant::now() >= deadline {
            bail!("the work wrote nothing to {}", file.display());
        }
        sleep(Duration::from_millis(10)).await;
    }
}
