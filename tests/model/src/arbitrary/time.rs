//! The time of day of a driver.

use elector_protocol::Timestamp;

/// 2026-01-01, the year of most scripts.
pub(crate) fn wall() -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000).unwrap_or(Timestamp::MIN)
}
