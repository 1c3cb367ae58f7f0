//! The term that this process has now, for those who ask from outside of its work, and the word of a program beside it.

use std::time::Duration;

use elector_candidate::Leadership;
use tokio::sync::watch;

/// The term of this process, if it has one. Clones are of the same process.
#[derive(Clone, Debug)]
pub(super) struct CurrentTerm {
    term: watch::Sender<Option<RunningTerm>>,
}

/// A term whose work runs.
#[derive(Clone, Debug)]
pub(super) struct RunningTerm {
    pub(super) guard: Leadership,
    /// True once the program beside this process has said that it acts no more.
    is_program_done: bool,
}

/// The presence of a term's work. The term is over for those outside where this is dropped.
#[derive(Debug)]
pub(super) struct TermEntry {
    term: watch::Sender<Option<RunningTerm>>,
}

/// The rest of the time to stop that is left to this process itself.
const MARGIN: Duration = Duration::from_millis(100);

// === impl CurrentTerm ===

impl CurrentTerm {
    pub(super) fn new() -> Self {
        Self {
            term: watch::Sender::new(None),
        }
    }

    /// The work of a term begins.
    pub(super) fn enter(&self, guard: Leadership) -> TermEntry {
        self.term.send_replace(Some(RunningTerm {
            guard,
            is_program_done: false,
        }));
        TermEntry {
            term: self.term.clone(),
        }
    }

    /// The term, from the beginning of its work to its end.
    pub(super) fn get(&self) -> Option<RunningTerm> {
        self.term.borrow().clone()
    }

    /// Wakes where a term begins or ends, and for the word of the program.
    pub(super) fn watch(&self) -> watch::Receiver<Option<RunningTerm>> {
        self.term.subscribe()
    }

    /// The program says that it acts no more in this term. False where there is none.
    pub(super) fn note_program_done(&self) -> bool {
        let mut is_led = false;
        self.term.send_if_modified(|term| {
            let Some(term) = term else { return false };
            is_led = true;
            !std::mem::replace(&mut term.is_program_done, true)
        });
        is_led
    }
}

// === impl RunningTerm ===

impl RunningTerm {
    /// True if new work may begin, by the clock, now.
    pub(super) fn may_begin(&self) -> bool {
        !self.is_program_done && self.guard.stop_reason().is_none()
    }

    /// The time until what has begun has to end, where it has to end.
    pub(super) fn stops_within(&self) -> Option<Duration> {
        let is_asked = self.guard.stop_reason().is_some();
        (is_asked && !self.is_program_done).then(|| self.guard.time_to_stop())
    }
}

// === impl TermEntry ===

impl TermEntry {
    /// Waits until the program says that it acts no more, in a term that is to stop, and for no longer than it may take:
    /// that grace, and what the lease leaves.
    pub(super) async fn program_done_within(&self, guard: &Leadership, grace: Duration) {
        let grace = tokio::time::Instant::now() + grace;
        let limit = async {
            loop {
                let left = grace.saturating_duration_since(tokio::time::Instant::now());
                let left = left.min(guard.time_to_stop().saturating_sub(MARGIN));
                if left.is_zero() {
                    return;
                }
                // A renewal may leave more of it, and a loss less.
                tokio::time::sleep(left.min(MARGIN)).await;
            }
        };
        let mut term = self.term.subscribe();
        tokio::select! {
            biased;
            _ = term.wait_for(|term| term.as_ref().is_some_and(|term| term.is_program_done)) => {}
            () = limit => {}
        }
    }
}

impl Drop for TermEntry {
    fn drop(&mut self) {
        self.term.send_replace(None);
    }
}
