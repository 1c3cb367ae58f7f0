//! Elector's development tasks (`cargo xtask …`), and as a library the real cluster that the tests start.

mod cli;
mod golang;
pub mod paths;
mod progress;

pub mod binaries;
pub mod cluster;
pub mod release;
pub mod tied;

pub use cli::run;
