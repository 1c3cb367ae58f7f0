//! Model check, scenarios and interop of Elector.

pub mod fidelity;
pub mod model;
pub mod rig;
