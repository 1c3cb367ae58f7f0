//! The server-side elector of coordinated leader election, as a library.
