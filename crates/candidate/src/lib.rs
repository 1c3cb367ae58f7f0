//! The client of coordinated leader election that components link.
