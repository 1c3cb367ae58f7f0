//! The costs of an elector, and the times that leases are without a leader: `cargo xtask bench`.

pub mod scale;
pub mod upstream;
