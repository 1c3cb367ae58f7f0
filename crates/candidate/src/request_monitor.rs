//! Reports on the requests of a session, for those who count them.

use std::fmt;
use std::time::Duration;

use elector_runtime::{RequestError, WriteOutcomeKind};

/// Hears how the requests of a session end. It must not block.
pub(crate) trait RequestMonitor: fmt::Debug + Send + Sync {
    /// A write of the Lease that was made for this, in one word, ended so after that long.
    fn note_write(&self, purpose: &'static str, outcome: WriteOutcomeKind, took: Duration);

    /// A read of the Lease is asked for in a term: its next renewal could not be written without.
    fn note_read_in_term(&self);

    /// A request or a watch failed.
    fn note_failure(&self, error: &RequestError);
}
