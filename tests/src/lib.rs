//! Scenarios, fidelity and interop of Elector.

pub mod fidelity;
pub mod rig;
