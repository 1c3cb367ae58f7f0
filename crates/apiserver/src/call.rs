//! A request, taken apart.

use http::{HeaderMap, Method};

use crate::faults::LinkObserver;
use crate::query::Query;

/// A request, taken apart.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) body: axum::body::Bytes,
    pub(crate) link: LinkObserver,
}
