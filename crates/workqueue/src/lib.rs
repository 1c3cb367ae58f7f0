//! A sans-IO rate-limited workqueue with client-go semantics.
