//! One line on stderr that says what takes long, and for how long it has been doing so.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The interval at which a line is repeated where it cannot be rewritten in place (a CI log).
const QUIET_INTERVAL: Duration = Duration::from_secs(5);

/// A long piece of work that is under way.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    label: String,
    started: Instant,
    last_line: Option<Instant>,
    terminal: bool,
}

// === impl ProgressLine ===

impl ProgressLine {
    /// Starts the stop-watch; nothing is printed before the first [`tick`](Self::tick).
    pub(crate) fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            started: Instant::now(),
            last_line: None,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows the elapsed seconds and a detail, if it is time to. Call it at least once a second.
    pub(crate) fn tick(&mut self, detail: &str) {
        let now = Instant::now();
        if !self.terminal
            && self
                .last_line
                .is_some_and(|last| now - last < QUIET_INTERVAL)
        {
            return;
        }
        self.last_line = Some(now);
        let line = format!(
            "{}: {} s, {detail}",
            self.label,
            self.started.elapsed().as_secs()
        );
        // Progress is a courtesy: a closed stderr must not fail the work.
        let _ = if self.terminal {
            write!(io::stderr(), "\r\x1b[2K{line}")
        } else {
            writeln!(io::stderr(), "{line}")
        };
    }

    /// Ends the line with what came of it.
    pub(crate) fn finish(mut self, outcome: &str) {
        let line = format!(
            "{}: {outcome} after {} s",
            self.label,
            self.started.elapsed().as_secs()
        );
        self.clear();
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Takes the line away without a word; a log keeps what it has.
    fn clear(&mut self) {
        if self.terminal && self.last_line.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}
