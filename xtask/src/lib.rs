//! Elector's development tasks (`cargo xtask …`), and as a library the real cluster that the tests start.

mod adopters;
mod artefact;
mod bench;
mod build_profile;
mod build_times;
mod cargo_tool;
mod cli;
mod codegen;
mod commands;
mod criteria;
mod demo;
mod fnv;
mod golang;
mod lines;
mod mutants;
mod overlay_table;
mod proofs;
mod revision;
mod semver;
mod surface;
mod test;
mod yaml;

pub mod binaries;
pub mod child_guard;
pub mod cluster;
pub mod earlier_version;
pub mod manifests;
pub mod measured;
pub mod paths;
pub mod release;

pub use cli::run;
pub use commands::cargo;
