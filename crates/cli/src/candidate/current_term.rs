//! The term that this process has now, for those who ask from outside of its work, and the word of a program beside it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use elector_candidate::Leadership;
use tokio::sync::watch;
use tokio::time::Instant;

/// The term of this process, if it has one. Clones are of the same process.
#[derive(Clone, Debug)]
pub(super) struct CurrentTerm {
    term: watch::Sender<Option<RunningTerm>>,
}

/// A term whose work runs.
#[derive(Clone, Debug)]
pub(super) struct RunningTerm {
    pub(super) guard: Leadership,
    /// The time that the program has to stop while the lease is held.
    grace: Duration,
    /// When it was first seen that it is to stop.
    asked: Arc<OnceLock<Instant>>,
    /// True once the program beside this process has said that it acts no more.
    is_program_done: bool,
}

/// The presence of a term's work. The term is over for those outside where this is dropped.
#[derive(Debug)]
pub(super) struct TermEntry {
    term: watch::Sender<Option<RunningTerm>>,
}

/// The rest of the time to stop that is left to this process itself, and how often it looks at what is left.
const MARGIN: Duration = Duration::from_millis(100);

// === impl CurrentTerm ===

impl CurrentTerm {
    pub(super) fn new() -> Self {
        Self {
            term: watch::Sender::new(None),
        }
    }

    /// The work of a term begins. Its program has that grace to stop.
    pub(super) fn enter(&self, guard: Leadership, grace: Duration) -> TermEntry {
        self.term.send_replace(Some(RunningTerm {
            guard,
            grace,
            asked: Arc::default(),
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

    /// The program says that it acts no more in this term, the one of that token where it says so. `None` where there is
    /// no such term, else whether it had been asked to stop.
    pub(super) fn note_program_done(&self, token: Option<u64>) -> Option<bool> {
        let mut was_asked = None;
        self.term.send_if_modified(|term| {
            let Some(term) = term else { return false };
            if token.is_some_and(|token| token != term.guard.token()) {
                return false;
            }
            was_asked = Some(term.guard.stop_reason().is_some());
            !std::mem::replace(&mut term.is_program_done, true)
        });
        was_asked
    }
}

// === impl RunningTerm ===

impl RunningTerm {
    /// True if new work may begin, by the clock, now.
    pub(super) fn may_begin(&self) -> bool {
        !self.is_program_done && self.guard.stop_reason().is_none()
    }

    /// The time until what has begun has to end, where it has to end: what is left of the grace, and what the lease leaves.
    pub(super) fn stops_within(&self) -> Option<Duration> {
        if self.is_program_done || self.guard.stop_reason().is_none() {
            return None;
        }
        let had = self.asked.get_or_init(Instant::now).elapsed();
        let lease_leaves = self.guard.time_to_stop().saturating_sub(MARGIN);
        Some(self.grace.saturating_sub(had).min(lease_leaves))
    }
}

// === impl TermEntry ===

impl TermEntry {
    /// Waits, in a term that is to stop, until the program says that it acts no more, or its time is over. Returns whether
    /// it has said so.
    pub(super) async fn program_stopped(&self) -> bool {
        let mut term = self.term.subscribe();
        loop {
            let left = match &*term.borrow_and_update() {
                Some(term) if !term.is_program_done => term.stops_within(),
                _ => return true,
            };
            let Some(left) = left.filter(|left| !left.is_zero()) else {
                return false;
            };
            // A renewal may leave more of it, and a loss less.
            let _ = tokio::time::timeout(left.min(MARGIN), term.changed()).await;
        }
    }
}

impl Drop for TermEntry {
    fn drop(&mut self) {
        self.term.send_replace(None);
    }
}
