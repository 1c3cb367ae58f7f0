//! Limits for work that runs in another process, which is to stop in time even where this one does not answer.
//!
//! Work in this process is held to the lease by the candidate. A process that was stopped (SIGSTOP, a debugger, a frozen
//! cgroup) holds nothing to anything: so tell the other process the limits with each renewal, and have it stop the work by
//! its own clock. `elector candidate` does so with its command. Where work cannot stop in time, kill its processes and say so.

use std::sync::LazyLock;

use elector_protocol::Instant;
pub use elector_runtime::SharedInstant;
use elector_runtime::{Clock as _, SystemClock};
use futures::{Stream, stream};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::belief::BeliefCell;
use crate::leadership::Leadership;
use crate::term_state::WorkLimits;
use crate::term_tasks::TaskEntry;

/// Until when the work of a term may act unless another renewal succeeds, for any process on the same machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StopLimits {
    /// When the belief ends. Work that was not asked to stop before is asked then.
    pub deadline: SharedInstant,
    /// Until when it may act if it is asked at the deadline:
    /// [`Config::stop_budget`](crate::Config::stop_budget) later.
    pub lease_limit: SharedInstant,
}

/// The thread of a term that waits for other processes.
#[derive(Debug)]
pub struct ProcessWait<'a>(&'a TaskEntry);

/// The clock by which instants are shared. All clocks of a machine agree on what is shared.
static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::start);

/// The limits of that term now, and again after each renewal. Ends with the term.
///
/// The other process stops the work at the deadline that it was told last. Limits that reach it later come too late, although
/// the term goes on: so let it report whether it has stopped the work by itself.
pub fn limits(leadership: &Leadership) -> impl Stream<Item = StopLimits> + Send + use<> {
    let (reader, number) = leadership.reader();
    let state = (reader.clone(), None);
    stream::unfold(state, move |(mut reader, told)| async move {
        loop {
            reader.known.mark_unchanged();
            let limits = reader.belief.limits(number)?;
            if told != Some(limits) {
                let shared = StopLimits::of(limits, &reader.belief);
                return Some((shared, (reader, Some(limits))));
            }
            reader.known.changed().await.ok()?;
        }
    })
}

/// Runs a function that waits for other processes of the work on a thread that the term owns, as
/// [`Leadership::spawn_blocking`] does, and lets it say that they were killed.
///
/// Work that has not ended a second after it was dropped is left behind, and the run ends. Processes that were killed act no
/// more, but the kernel may take longer to let them go, where they wait for a disk or for memory: they have 10 s more.
///
/// # Panics
///
/// When it is called outside of a Tokio runtime.
pub fn spawn_wait<T>(
    leadership: &Leadership,
    wait: impl FnOnce(&ProcessWait<'_>) -> T + Send + 'static,
) -> JoinHandle<T>
where
    T: Send + 'static,
{
    let tasks = &leadership.tasks;
    tasks.spawn_blocking(|entry| wait(&ProcessWait(entry)))
}

// === impl ProcessWait ===

impl ProcessWait<'_> {
    /// Says that all the processes have ended or were killed (SIGKILL), with all that they have started.
    pub fn note_killed(&self) {
        self.0.note_killed();
    }
}

// === impl StopLimits ===

impl StopLimits {
    fn of(limits: WorkLimits, belief: &BeliefCell) -> Self {
        let share = |instant: Instant| {
            // The shared clock first: what passes between the two readings shortens what is left.
            let shared_now = CLOCK.holder();
            let left = instant.since(belief.now());
            CLOCK.share(shared_now.after(left))
        };
        Self {
            deadline: share(limits.deadline),
            lease_limit: share(limits.lease_limit),
        }
    }
}
