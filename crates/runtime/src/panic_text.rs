//! The message of a panic.

use std::any::Any;

/// The message of a panic, from the payload that [`std::panic::catch_unwind`] and joined tasks give.
///
/// ```
/// use elector_runtime::panic_text;
///
/// let panic = std::panic::catch_unwind(|| panic!("no {}", "more")).unwrap_err();
/// assert_eq!(panic_text(&*panic), "no more");
/// ```
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
