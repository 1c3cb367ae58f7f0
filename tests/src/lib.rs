//! Model check, scenarios and interop of Elector.
