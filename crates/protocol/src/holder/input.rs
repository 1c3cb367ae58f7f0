//! Inputs of a holder about its Lease: events of the watch, and the ends of its requests.

use crate::lease::LeaseSnapshot;
use crate::lease_watch::NewsSource;
use crate::names::ResourceVersion;

/// News from a watch of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// A revision, from an event or a list.
    Seen(LeaseSnapshot, NewsSource),
    /// The Lease was deleted, at this version.
    Deleted(ResourceVersion),
    /// A revision, or a last one before a deletion, that cannot be read: there may be a holder ([R6](crate::rules#r6)).
    Unreadable,
    /// A list of this version did not contain the Lease.
    Absent(ResourceVersion),
}

/// The end of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It was applied, and this revision is the reply.
    Done(LeaseSnapshot),
    /// The server refused it because the Lease has another version or uid.
    Conflict,
    /// The server has no such Lease.
    Gone,
    /// The server refused it for another reason; it is certain that it was not applied.
    Refused,
    /// It may have been applied, or may be yet: a timeout, a lost connection, an error of the server.
    Unknown,
}

/// A read that brought no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFailed;
