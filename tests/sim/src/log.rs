//! The log of a run, line by line, and the hash that says whether two runs were the same.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The log of one run.
pub(crate) struct RunLog {
    start: Instant,
    state: Mutex<LogState>,
}

struct LogState {
    keep: bool,
    lines: Vec<String>,
    count: u64,
    hash: DefaultHasher,
}

// === impl RunLog ===

impl RunLog {
    /// A log whose time starts now. Only one that is to be read keeps its lines.
    pub(crate) fn start(keep: bool) -> Self {
        Self {
            start: Instant::now(),
            state: Mutex::new(LogState {
                keep,
                lines: Vec::new(),
                count: 0,
                hash: DefaultHasher::new(),
            }),
        }
    }

    /// Real time since the start of the run.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Adds a line.
    pub(crate) fn note(&self, who: &str, what: impl fmt::Display) {
        let now = self.now();
        let line = format!("{:>12.6} {who:<10} {what}", now.as_secs_f64());
        let mut state = self.state.lock();
        state.count += 1;
        line.hash(&mut state.hash);
        if state.keep {
            state.lines.push(line);
        }
    }

    /// The lines, if they were kept.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.state.lock().lines.clone()
    }

    /// The number of lines, and the hash of all of them.
    pub(crate) fn digest(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.count, state.hash.finish())
    }
}
