//! Signals for whole trees of processes, as the freezer of a container sends them.

use std::fs;

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal to all processes below that one, the youngest first, and returns them. A process that one of them starts
/// meanwhile gets it too.
///
/// # Errors
/// When the processes cannot be listed, or one cannot be signalled.
pub fn signal_descendants(root: u32, signal: Signal) -> Result<Vec<Pid>> {
    let mut signalled = Vec::new();
    loop {
        let mut found = descendants(root)?;
        found.retain(|pid| !signalled.contains(pid));
        if found.is_empty() {
            return Ok(signalled);
        }
        for pid in found.iter().rev() {
            match kill_process(*pid, signal) {
                // It may have ended in between.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error).context("failed to signal a process"),
            }
        }
        signalled.extend(found);
    }
}

fn descendants(root: u32) -> Result<Vec<Pid>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").context("failed to read /proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // One that has ended in between has no file any more.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may contain anything; after it come the state and the parent.
        let after = stat.rsplit_once(") ").map(|(_, after)| after);
        let parent = after.and_then(|after| after.split(' ').nth(1)?.parse().ok());
        parents.extend(parent.map(|parent: i32| (pid, parent)));
    }
    let mut found = vec![i32::try_from(root)?];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    Ok(found[1..]
        .iter()
        .copied()
        .filter_map(Pid::from_raw)
        .collect())
}
