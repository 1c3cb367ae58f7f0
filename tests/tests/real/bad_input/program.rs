//! The program under test with something wrong outside, and what it says of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{TestProcess, Testbed, command};
use tokio::time::sleep;

use crate::PROMPTLY;

/// The time for which a process with trouble is watched.
const TRYING: Duration = Duration::from_secs(5);

/// The administrator's kubeconfig with something changed.
pub(super) fn kubeconfig(
    testbed: &Testbed,
    name: &str,
    change: impl FnOnce(String) -> String,
) -> Result<PathBuf> {
    let original = fs::read_to_string(testbed.site().kubeconfig())?;
    let path = testbed.folder().join(name);
    fs::write(&path, change(original))?;
    Ok(path)
}

/// Starts the binary under test with these arguments and this kubeconfig.
pub(super) fn start(
    testbed: &Testbed,
    name: &str,
    kubeconfig: &Path,
    arguments: &[&str],
) -> Result<TestProcess> {
    let mut command = command(&testbed.site().programs().elector, kubeconfig);
    command.args(arguments);
    TestProcess::spawn(name, command, testbed.folder(), |_| {})
}

/// Waits for the line that complains; it may be repeated while the trouble lasts, but must not be a stream of them.
pub(super) async fn complaint(process: &mut TestProcess, parts: &[&str]) -> Result<()> {
    process.writes(parts, PROMPTLY).await?;
    let output = process.output()?;
    for bad in ["panicked", "stack backtrace"] {
        ensure!(!output.contains(bad), "{bad}:\n{output}");
    }
    Ok(())
}

/// Lets a process that still tries do so for a while, in which a stream of lines would show, and then ends it within
/// the 2 s that it has for that.
pub(super) async fn end(mut process: TestProcess, most_lines: usize) -> Result<()> {
    if process.ended()?.is_none() {
        sleep(TRYING).await;
    }
    if process.ended()?.is_none() {
        let (_, took) = process.terminate(PROMPTLY).await?;
        let limit = Duration::from_secs(2);
        ensure!(took <= limit, "it ended {took:?} after SIGTERM");
    }
    let output = process.output()?;
    let lines = output.lines().count();
    ensure!(lines <= most_lines, "{lines} lines are a stream:\n{output}");
    Ok(())
}
