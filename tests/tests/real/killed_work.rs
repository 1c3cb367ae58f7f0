//! The work of a candidate that is killed.

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
}

/// SIGKILL leaves a wrapper no time to clean up; the work must be gone all the same.
async fn work_dies(testbed: Arc<Testbed>) -> Result<()> {
    let file = testbed.folder().join("work.pid");
    let script = format!(
        "trap '' TERM HUP; echo $$ > {}; while :; do sleep 1; done",
        file.display()
    );
    let mut candidate = testbed
        .candidate("candidate")
        .work(&["sh", "-c", &script])
        .start()?;
    candidate.leads(PROMPTLY).await?;
    let work = written(&file).await?;
    ensure!(runs(&work), "the work does not run");
    candidate.kill()?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while runs(&work) {
        if Instant::now() >= deadline {
            bail!("the work outlived its candidate");
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Whether there is such a process; one that only waits for its parent to take note of its end does not count.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may hold anything but ends with the last parenthesis.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The process id in a file that is about to be written.
async fn written(file: &Path) -> Result<String> {
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return Ok(pid.to_owned());
        }
        if Instant::now() >= deadline {
            bail!("the work wrote no process id");
        }
        sleep(Duration::from_millis(10)).await;
    }
}
