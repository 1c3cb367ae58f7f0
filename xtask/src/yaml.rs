//! JSON values as YAML for people to read.

use anyhow::Result;
use serde_json::Value;
use serde_saphyr::ser_options;

/// One document, keys in the order of the value.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn document(value: &Value) -> Result<String> {
    let options = ser_options! { compact_list_indent: false, folded_wrap_chars: usize::MAX };
    Ok(serde_saphyr::to_string_with_options(value, options)?)
}
