//! The elector's step, scenario by scenario.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod absence;
mod asking;
mod audits;
mod conflicts;
mod gap;
mod housekeeping;
mod led;
mod passed_over;
mod polling;
mod preferring;
mod reserved;
mod stopwatch;
mod vacant;
mod waking;
mod wmax;
mod world;
