//! Which leases are asked about.

use crate::explain::input::LeaseChoice;

/// The leases of a namespace or of all, or one of them.
#[derive(Clone, Debug)]
pub(super) struct StatusQuery {
    pub(super) namespace: Option<String>,
    pub(super) lease: Option<String>,
}

// === impl StatusQuery ===

impl StatusQuery {
    pub(super) fn choice(&self) -> LeaseChoice {
        match &self.lease {
            Some(name) => LeaseChoice::Named(name.clone()),
            None => LeaseChoice::Elected,
        }
    }
}
