//! The readings of a Lease, and of responses to requests, for a holder's machine.

use elector_api::Lease;
use elector_protocol::LeaseSnapshot;
use elector_protocol::holder::{LeaseOutcome, ReadFailed};

use crate::request::RequestError;
use crate::write_outcome::WriteOutcome;

/// The snapshot of a Lease for the protocol, or nothing where it cannot be read.
pub(super) fn lease_snapshot(lease: &Lease) -> Option<LeaseSnapshot> {
    lease.snapshot().ok()
}

/// The response to a read of the Lease, as the protocol reads it.
pub(super) fn read_lease(
    response: Result<&Option<Lease>, &RequestError>,
) -> Result<Option<LeaseSnapshot>, ReadFailed> {
    match response {
        Ok(None) => Ok(None),
        Ok(Some(lease)) => lease_snapshot(lease).map(Some).ok_or(ReadFailed),
        Err(_) => Err(ReadFailed),
    }
}

/// The outcome of a write of the Lease, as the protocol reads it.
pub(super) fn lease_outcome(outcome: &WriteOutcome<Lease>) -> LeaseOutcome {
    match outcome {
        // A reply that cannot be read proves nothing.
        WriteOutcome::Done(lease) => {
            lease_snapshot(lease).map_or(LeaseOutcome::Unknown, LeaseOutcome::Done)
        }
        WriteOutcome::Conflict | WriteOutcome::AlreadyExists => LeaseOutcome::Conflict,
        WriteOutcome::Gone => LeaseOutcome::Gone,
        WriteOutcome::Refused(_) => LeaseOutcome::Refused,
        WriteOutcome::Unknown(_) => LeaseOutcome::Unknown,
    }
}
