//! The narrator: one line for each thing that happens, with the time since the curtain rose.

use std::fmt;
use std::time::Instant;

/// Writes the story to standard output.
#[derive(Debug)]
pub(super) struct Teller {
    began: Instant,
}

// === impl Teller ===

impl Teller {
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
    pub(super) fn aside(&mut self, line: fmt::Arguments<'_>) {
        println!("         {line}");
    }
}
