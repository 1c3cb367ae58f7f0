//! The writer of a revision, as far as its form depends on it.

use elector_protocol::Identity;

/// The writer of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor<'a> {
    /// An elector.
    Elector,
    /// A candidate of ours, under this identity.
    Candidate(&'a Identity),
}
