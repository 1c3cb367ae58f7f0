//! The whole elector against an API server in memory, in virtual time.

mod builtin;
mod elections;
mod failures;
mod life;
mod moves;
mod reserve;
