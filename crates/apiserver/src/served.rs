//! Which kinds are served at present.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Config;
use crate::kind::Kind;

/// The kinds that are served at present.
#[derive(Debug)]
pub(crate) struct Served(Mutex<Vec<&'static Kind>>);

// === impl Served ===

impl Served {
    pub(crate) fn new(config: &Config) -> Self {
        Self(Mutex::new(Kind::served(config)))
    }

    pub(crate) fn kinds(&self) -> Vec<&'static Kind> {
        self.lock().clone()
    }

    pub(crate) fn serves(&self, kind: &Kind) -> bool {
        self.lock().iter().any(|served| std::ptr::eq(*served, kind))
    }

    pub(crate) fn set(&self, config: &Config) {
        *self.lock() = Kind::served(config);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<&'static Kind>> {
        // A list of kinds is whole at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
