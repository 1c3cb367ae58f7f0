//! What a holder's machine reads of a Lease and of the responses to its requests.

use elector_api::Lease;
use elector_protocol::LeaseSnapshot;
use elector_protocol::holder::{LeaseOutcome, ReadFailed};

use crate::request::RequestError;
use crate::write_outcome::WriteOutcome;

/// What the protocol reads of a Lease, or nothing where it cannot be read.
pub(super) fn lease_snapshot(lease: &Lease) -> Option<LeaseSnapshot> {
    lease.snapshot().ok()
}

/// What the protocol reads of the response to a read of the Lease.
pub(super) fn read_lease(
    response: &Result<Option<Lease>, RequestError>,
) -> Result<Option<LeaseSnapshot>, ReadFailed> {
    match response {
        Ok(None) => Ok(None),
        Ok(Some(lease)) => lease_snapshot(lease).map(Some).ok_or(ReadFailed),
        Err(_) => Err(ReadFailed),
    }
}

/// What the protocol reads of the outcome of a write of the Lease.
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
