//! Elector's development tasks (`cargo xtask …`).

mod adopters;
mod artefact;
mod bench;
mod build_times;
mod cargo_tool;
mod cli;
mod codegen;
mod criteria;
mod demo;
mod everything;
mod fault_picture;
mod instructions;
mod lines;
mod mutants;
mod overlay_table;
mod proofs;
mod revision;
mod semver;
mod surface;
mod test;
mod yaml;

use elector_cluster::{
    binaries, build_profile, child_guard, cluster, commands, earlier_version, measured, paths,
    release,
};

pub mod manifests;

pub use cli::run;
