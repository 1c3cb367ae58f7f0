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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_is_applied_where_its_reply_can_be_read() {
        let lease = |uid: &str| {
            Lease::from_value(json!({"metadata": {"uid": uid, "resourceVersion": "7"}}))
        };
        let done = LeaseOutcome::Done(lease("u").snapshot().unwrap());
        for (outcome, expected) in [
            (WriteOutcome::Done(lease("u")), done),
            (WriteOutcome::Done(lease("")), LeaseOutcome::Unknown),
            (WriteOutcome::Conflict, LeaseOutcome::Conflict),
            (WriteOutcome::AlreadyExists, LeaseOutcome::Conflict),
            (WriteOutcome::Gone, LeaseOutcome::Gone),
        ] {
            assert_eq!(lease_outcome(&outcome), expected, "{outcome:?}");
        }
    }
}
