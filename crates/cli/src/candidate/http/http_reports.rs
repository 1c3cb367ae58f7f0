//! The reports of programs about this process over HTTP: that it is unwell, or that it shall not lead for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// The reports on this process. Clones are of the same one.
#[derive(Clone, Debug)]
pub(super) struct HttpReports {
    reason: watch::Sender<Option<String>>,
    /// The number of the last report, which an earlier one does not take back.
    number: Arc<AtomicU64>,
}

/// The reason that is given while it is reported to be unwell.
const UNWELL: &str = "reported over HTTP";

/// The reason that is given while it is out after a release, before the time.
const RELEASED: &str = "released over HTTP, for ";

// === impl HttpReports ===

impl HttpReports {
    pub(super) fn new() -> Self {
        Self {
            reason: watch::Sender::new(None),
            number: Arc::default(),
        }
    }

    /// The reports, for the candidate.
    pub(super) fn watch(&self) -> watch::Receiver<Option<String>> {
        self.reason.subscribe()
    }

    /// It is unwell until it is reported to be well.
    pub(super) fn unwell(&self) {
        self.report(Some(UNWELL.to_owned()));
    }

    /// It is well, also before a time that was given.
    pub(super) fn well(&self) {
        self.report(None);
    }

    /// It shall not lead for that time, from now on, unless it is unwell already.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub(super) fn stay_out(&self, time: Duration) {
        if self.reason.borrow().as_deref() == Some(UNWELL) {
            return;
        }
        let number = self.report(Some(format!("{RELEASED}{time:?}")));
        let this = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if this.number.load(Ordering::SeqCst) == number {
                this.well();
            }
        });
    }

    /// True while it shall not lead for a time: it is well.
    pub(super) fn is_out(&self) -> bool {
        let reason = self.reason.borrow();
        reason.as_ref().is_some_and(|it| it.starts_with(RELEASED))
    }

    fn report(&self, reason: Option<String>) -> u64 {
        let number = self.number.fetch_add(1, Ordering::SeqCst) + 1;
        self.reason.send_replace(reason);
        number
    }
}
