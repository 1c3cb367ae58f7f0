//! The elector's step, scenario by scenario.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod asking;
mod gap;
mod led;
mod reserved;
mod vacant;
mod world;
