//! Scenarios, fidelity and interop of Elector.

pub mod fidelity;
pub mod policy_changes;
pub mod rig;
