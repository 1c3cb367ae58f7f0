//! Failing requests in the log: a server that is down is one line and not hundreds.

use elector_runtime::RequestError;

/// What was last logged of requests that fail.
#[derive(Default)]
pub(crate) struct Trouble {
    told: Option<String>,
}

/// One for each way to the server: what works one way may fail another.
#[derive(Default)]
pub(crate) struct Troubles {
    pub(crate) lease: Trouble,
    pub(crate) candidate: Trouble,
    pub(crate) lease_watch: Trouble,
    pub(crate) candidate_watch: Trouble,
}

// === impl Trouble ===

impl Trouble {
    /// Logs a failure once, and its end.
    pub(crate) fn note(&mut self, error: Option<&RequestError>) {
        let Some(error) = error else {
            if self.told.take().is_some() {
                tracing::info!("the API server answers again");
            }
            return;
        };
        let text = error.to_string();
        if self.told.as_ref() == Some(&text) {
            tracing::debug!(%error, "a request failed again");
        } else {
            tracing::warn!("failed to {error}");
            self.told = Some(text);
        }
    }
}
