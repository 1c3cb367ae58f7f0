//! The judge's own reading of a record. Production reads the same fields elsewhere; a mistake there is not repeated here.

use std::time::Duration;

use elector_protocol::LeaseRecord;

/// The record that a POST of ours creates (R2).
pub(crate) fn is_born(record: &LeaseRecord) -> bool {
    let empty = LeaseRecord {
        strategy: record.strategy.clone(),
        ..LeaseRecord::default()
    };
    *record == empty
}

/// The duration, where it is there and positive.
pub(crate) fn duration(record: &LeaseRecord) -> Option<Duration> {
    let seconds = record.duration_seconds.filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(u64::from(seconds.unsigned_abs())))
}

/// True where the token is of this very term (R8, R14). Without acquireTime it is that of an earlier holder, which a
/// built-in elector left in place.
pub(crate) fn has_token(record: &LeaseRecord) -> bool {
    record.acquire_time.is_some()
        && record.token.is_some()
        && record.token_term == Some(record.term)
}

/// True for a grant that its electee has not accepted.
pub(crate) fn is_unaccepted_grant(record: &LeaseRecord) -> bool {
    let times_are_equal = record.acquire_time.is_some() && record.acquire_time == record.renew_time;
    record.holder.is_some() && times_are_equal && !has_token(record)
}

/// True where the last holder let go: the record is free at once (R6).
pub(crate) fn is_released(record: &LeaseRecord) -> bool {
    let at_once = record.duration_seconds.is_some_and(|seconds| seconds <= 1);
    record.holder.is_none() && record.token.is_none() && at_once
}

/// True where a stop-watch on the one record goes on with the other (R4, R6).
pub(crate) fn is_same(one: &LeaseRecord, other: &LeaseRecord) -> bool {
    let term = |record: &LeaseRecord| {
        let times = (record.renew_time, record.duration_seconds);
        let unheld = record.holder.is_none();
        let of_unheld = unheld.then_some((record.token, record.acquire_time));
        (record.holder.clone(), record.term, times, of_unheld)
    };
    term(one) == term(other)
}
