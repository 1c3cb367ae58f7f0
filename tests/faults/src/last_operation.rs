//! The last operation of a leader that a fault deposed: how long after the fault, and after its last renewal, it came.

use std::time::Duration;

use crate::register::GuardedOperation;

/// The end of a fault that struck a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaultEnd {
    /// When the leader was let go, by the register's clock.
    pub(crate) at: Duration,
    /// When the server had taken its last renewal by then.
    pub(crate) renewed: Option<Duration>,
}

/// The last operation of the leader's period, where another client has followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LastOperation {
    /// The time since the end of the fault, seconds; zero where it came before.
    pub after_fault: f64,
    /// The time since the last renewal that the server took, seconds.
    pub after_renewal: f64,
}

/// The time for which a deposed leader that was stopped may act after it was let go.
pub(crate) const AFTER_WAKING: f64 = 0.3;

// === impl LastOperation ===

impl LastOperation {
    /// Reads it from a log. `struck` is an operation of the period in which the fault struck.
    pub(crate) fn read(
        operations: &[GuardedOperation],
        struck: &GuardedOperation,
        end: FaultEnd,
    ) -> Option<Self> {
        let same = |one: &&GuardedOperation| {
            (one.client.as_str(), one.period) == (struck.client.as_str(), struck.period)
        };
        let last = operations.iter().rfind(same)?;
        let followed = operations
            .iter()
            .any(|one| one.at > struck.at && one.client != struck.client);
        let renewed = end.renewed.filter(|_| followed)?;
        Some(Self {
            after_fault: last.at.saturating_sub(end.at).as_secs_f64(),
            after_renewal: last.at.saturating_sub(renewed).as_secs_f64(),
        })
    }

    /// The violation, on a machine that stood still for `stall` seconds itself.
    pub(crate) fn failure(self, stopped: bool, stall: f64, lease: Duration) -> Option<String> {
        if stopped {
            // A process that was stopped for longer than its lease lasts cannot have ended before it was let go.
            let late = self.after_fault > AFTER_WAKING + stall;
            return late.then(|| {
                let after = self.after_fault;
                format!("the last operation came {after:.2} s after the process was let go")
            });
        }
        let late = self.after_renewal > lease.as_secs_f64();
        late.then(|| {
            let after = self.after_renewal;
            format!("the last operation came {after:.2} s after the last renewal")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(client: &str, at: f64) -> GuardedOperation {
        GuardedOperation {
            at: Duration::from_secs_f64(at),
            client: client.to_owned(),
            period: 1,
            token: 1,
            refused: false,
        }
    }

    fn end(at: u64, renewed: u64) -> FaultEnd {
        FaultEnd {
            at: Duration::from_secs(at),
            renewed: Some(Duration::from_secs(renewed)),
        }
    }

    #[test]
    fn the_last_operation_is_that_of_the_period_and_counts_only_if_another_client_followed() {
        let struck = operation("a", 10.0);
        let mut log = vec![struck.clone(), operation("a", 30.5)];
        assert_eq!(LastOperation::read(&log, &struck, end(30, 9)), None);
        log.insert(1, operation("b", 25.0));
        let again = GuardedOperation {
            period: 2,
            ..operation("a", 50.0)
        };
        log.push(again);
        let last = LastOperation::read(&log, &struck, end(30, 9)).unwrap();
        assert_eq!((last.after_fault, last.after_renewal), (0.5, 21.5));
        let before = LastOperation::read(&log[..2], &struck, end(30, 9)).unwrap();
        assert_eq!((before.after_fault, before.after_renewal), (0.0, 1.0));
    }

    #[test]
    fn what_was_stopped_ends_soon_after_it_was_let_go_and_the_rest_with_the_lease() {
        let lease = Duration::from_secs(15);
        let last = LastOperation {
            after_fault: 0.5,
            after_renewal: 21.5,
        };
        let expected = "the last operation came 0.50 s after the process was let go";
        assert_eq!(last.failure(true, 0.1, lease).unwrap(), expected);
        assert_eq!(last.failure(true, 0.3, lease), None);
        let expected = "the last operation came 21.50 s after the last renewal";
        assert_eq!(last.failure(false, 0.3, lease).unwrap(), expected);
        let in_time = LastOperation {
            after_renewal: 13.8,
            ..last
        };
        assert_eq!(in_time.failure(false, 0.0, lease), None);
    }
}
