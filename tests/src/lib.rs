//! Model check, scenarios and interop of Elector.

pub mod rig;
