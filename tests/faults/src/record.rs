//! The table in the documentation.

use std::fs;

use anyhow::{Context as _, Result};
use xtask::paths;

use crate::matrix::MatrixResults;
use crate::table::{MAX_STALL, subject_table, summary_table, table};

/// Where it goes, from the root of the workspace.
const FILE: &str = "docs/proofs/faults.md";

/// The text before the tables.
const INTRODUCTION: &str = "\
# Faults on a real kube-apiserver

Written by `cargo xtask faults --record`; not to be edited. `cargo xtask faults --help` says how to run a part of it.

Three candidates, default timing (15 s, 10 s), on a real kube-apiserver with etcd. Each process, the elector too,
reaches the API server through a proxy of its own, which does to it what the row says. In all rows but those of a first
start the candidates have led for a while when it begins. Each process that leads
does an operation every 50 ms at a register, directly. Everything below is read from the log of that register.

* **ours**: candidates of the crate `elector-candidate`, elected by `elector run`; each asks `is_leader()` right before
  an operation. **command**: a command of `elector candidate -- CMD`, which cannot ask and never ends by itself; it is
  stopped together with its wrapper, as a container is, unless the row says that the wrapper alone is. **ignoring-tasks**: candidates of the crate whose work never asks
  and never returns; it works in two tasks that it has spawned on its guard, every 50 ms each. **trapping-command**: a
  command that traps SIGTERM and goes on for 4 s. **plain-ours**, **auto-alone**: candidates of the crate that take the
  lease by themselves, in plain mode, and in auto mode without an elector. **as-client-go**: plain ones that take a missing
  or emptied Lease at once; elsewhere they are plain-ours, and after a stranger's edit they are not judged. **coordinated**: unmodified client-go with `Coordinated: true`,
  elected by `elector run`. **plain**: unmodified client-go that takes the Lease by itself. Both work until the context
  of `OnStartedLeading` ends, as documented. **single**: one process without any election; what it loses is the
  yardstick of *never worse than one replica*. It does not need the API server, so that only what happens to the process
  or its work concerns it.
* **two believers**: for how long two clients were at work at the same time. A client is at work while its operations
  are no more than 1 s apart. The maximum over the runs.
* **stale operations**: those that came after one of a newer leader, so those that do harm where nothing compares
  tokens. **past the fence**: those that come through also where the register refuses a token lower than one that it has
  seen. **wrongly refused**: operations of the current leader that such a register refuses. The maxima.
  The token is the one of `Leadership::token` for ours, `leaseTransitions` for client-go, which has no other.
* **worst gap**: the longest time without an operation of the current leader, the maximum. **work done**: in how many of
  all quarters of a second there was one, the mean. Without a fault it is 100 %. Both leave out runs in which the
  machine had no time for an undisturbed process for more than 1 s, unless there are no others.

Beside that, every revision of the Lease is checked against the rules, as `elector verify` does it, also where Elector
elects for client-go.

For ours it is a failure if two are at work at the same time at all, if a stale operation comes past the fence, if the
leader is refused, if there is a stale operation where no process was stopped (where one was, a single operation can lie
between the check and its send), if no client works in the end, or if a process ends that was not killed. The same for
those that do not ask, but where one was stopped it may do up to 12 operations in the 0.3 s until its candidate has ended
it. It is a failure too if the last operation of a leader that was followed comes more than 0.3 s after a stopped process
was let go, or elsewhere after its lease: 15 s after the last renewal that the server took. The numbers of the others are
recorded, and fail nothing.

Each run leaves its raw data in `target/faults`: `results.jsonl`, and for each case the operations as the register took
them, the revisions of the Lease as `elector verify` reads them, and the logs of all processes.
";

/// Writes the tables into the documentation.
///
/// # Errors
/// When the file cannot be written.
pub fn record(results: &MatrixResults) -> Result<()> {
    let path = paths::workspace().join(FILE);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
    }
    let (passed, failed) = results.counts();
    let stalled = results.outcomes.iter().filter(|one| one.stall > MAX_STALL);
    let stalled = stalled.count();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = format!(
        "{INTRODUCTION}\nKubernetes {}, {processors} processors, {} runs in {:.0} s: {passed} passed, {failed} failed.\n\
         In {stalled} of them the machine was too busy to measure work.\n\n\
         ## Over all faults\n\n{}\n## At a glance\n\n{}\n## Fault by fault\n\n{}",
        results.kubernetes,
        results.outcomes.len(),
        results.took.as_secs_f64(),
        subject_table(&results.outcomes),
        summary_table(&results.outcomes),
        table(&results.outcomes),
    );
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}
