//! Elector and candidates, the real ones, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod cluster;
mod migration;
mod slow_server;
