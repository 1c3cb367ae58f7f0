//! What an elector costs, and how long leases are without a leader: `cargo xtask bench`.

pub mod scale;
pub mod upstream;
