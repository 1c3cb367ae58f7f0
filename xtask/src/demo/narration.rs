//! The narration: one line for each thing that happens, with the time since the start.

use std::fmt;
use std::time::Instant;

/// Writes to standard output.
#[derive(Debug)]
pub(super) struct DemoNarration {
    began: Instant,
}

// === impl DemoNarration ===

impl DemoNarration {
    pub(super) fn new() -> Self {
        println!();
        Self {
            began: Instant::now(),
        }
    }

    /// Something happened.
    pub(super) fn say(&mut self, line: fmt::Arguments<'_>) {
        println!("{:6.1}s  {line}", self.began.elapsed().as_secs_f64());
    }

    /// More about what was said last.
    pub(super) fn add(&mut self, line: fmt::Arguments<'_>) {
        println!("         {line}");
    }
}
