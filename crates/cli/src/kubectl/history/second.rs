//! Times for people.

use elector_api::Rfc3339;
use elector_protocol::Timestamp;

/// A time in whole seconds.
pub(super) fn in_seconds(time: Timestamp) -> String {
    let text = Rfc3339(time).to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}
