//! `kubectl-elector` as a process, on an embedded API server with the objects of each test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod annotate;
mod bundle;
mod check;
mod check_cluster;
mod cluster;
mod completion;
mod drain;
mod history;
mod server;
mod status;
mod words;
