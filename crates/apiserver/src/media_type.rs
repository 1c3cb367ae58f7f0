//! The media type of a body.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The media type of a body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let header = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    header
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
}
