//! A real etcd and kube-apiserver for tests, and the programs that they start beside ours.

pub mod binaries;
pub mod build_profile;
pub mod child_guard;
pub mod cluster;
pub mod commands;
pub mod earlier_version;
mod golang;
pub mod measured;
pub mod overlays;
pub mod paths;
pub mod release;

pub use commands::cargo;
