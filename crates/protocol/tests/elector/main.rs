//! The elector's step, scenario by scenario.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod absence;
mod asking;
mod conflicts;
mod gap;
mod housekeeping;
mod led;
mod passed_over;
mod polling;
mod reserved;
mod stopwatch;
mod vacant;
mod wmax;
mod world;
