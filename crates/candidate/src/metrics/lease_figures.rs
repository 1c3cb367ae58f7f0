//! The figures of one lease, fed by its session.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Instant, LeaseKey};
use elector_runtime::{Clock, LabelSet, RequestError, WriteOutcomeKind};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::event::{CandidateObserver, Event, TermOrigin};
use crate::metrics::lease_families::{LeaseFamilies, lease_labels, name_label};
use crate::outcome::TermEnd;
use crate::request_monitor::RequestMonitor;

/// Where a session reports what is counted of its lease.
pub(crate) struct LeaseFigures {
    families: Arc<LeaseFamilies>,
    labels: LabelSet,
    clock: Arc<dyn Clock>,
    renew_duration: Histogram,
    handover_duration: Histogram,
    slow_path: Counter,
    term: Mutex<MeasuredTerm>,
}

/// The state of the term that is about to begin, or that has begun.
#[derive(Default)]
struct MeasuredTerm {
    /// Since when the work stops for a hand-over.
    handing_over: Option<Instant>,
}

// === impl LeaseFigures ===

impl LeaseFigures {
    pub(super) fn new(
        families: &Arc<LeaseFamilies>,
        lease: &LeaseKey,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let labels = lease_labels(lease);
        let figures = Self {
            renew_duration: families.renew_duration.get_or_create_owned(&labels),
            handover_duration: families.handover_duration.get_or_create_owned(&labels),
            slow_path: families.slow_path.get_or_create_owned(&name_label(lease)),
            families: Arc::clone(families),
            labels,
            clock,
            term: Mutex::default(),
        };
        figures.show_ends();
        figures
    }

    /// An observer that counts the terms before it tells that one.
    pub(crate) fn observing(self: &Arc<Self>, observer: CandidateObserver) -> CandidateObserver {
        let figures = Arc::clone(self);
        Arc::new(move |lease, event| {
            figures.note_event(event);
            observer(lease, event);
        })
    }

    /// Shows that no term has ended by any of the causes, so that the first one that does is an increase.
    fn show_ends(&self) {
        let losses = [
            Loss::DeadlinePassed,
            Loss::Taken { by: None },
            Loss::Deleted,
            Loss::NewTerm,
            Loss::NameShared,
            Loss::StoreRestored,
        ];
        let gone = [
            TermEnd::Released,
            TermEnd::Unconfirmed,
            TermEnd::WorkStillRuns,
        ];
        let ends = losses.into_iter().map(TermEnd::Lost).chain(gone);
        for cause in ends.map(|end| end.cause()).chain(["handed_over", "taken"]) {
            self.counter(&self.families.terms_ended, &[("cause", cause)]);
        }
    }

    fn note_event(&self, event: &Event) {
        let mut term = self.term.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Leading { by, .. } => {
                *term = MeasuredTerm::default();
                let by = match by {
                    TermOrigin::Granted => "granted",
                    TermOrigin::Acquired { .. } => "acquired",
                    TermOrigin::Resumed => "resumed",
                    TermOrigin::Rejoined => "rejoined",
                    TermOrigin::Disabled => "disabled",
                };
                self.count(&self.families.terms_begun, &[("by", by)]);
            }
            Event::Stopping {
                reason: StopReason::HandOver { .. },
                ..
            } => {
                let now = self.clock.holder();
                term.handing_over.get_or_insert(now);
            }
            Event::Ended { end, .. } => {
                let handing_over = std::mem::take(&mut *term).handing_over;
                if let (Some(since), TermEnd::HandedOver { .. }) = (handing_over, end) {
                    let took = self.clock.holder().since(since);
                    self.handover_duration.observe(took.as_secs_f64());
                }
                self.count(&self.families.terms_ended, &[("cause", end.cause())]);
            }
            _ => {}
        }
    }

    fn count(&self, family: &Family<LabelSet, Counter>, labels: &[(&'static str, &'static str)]) {
        self.counter(family, labels).inc();
    }

    /// The counter of the lease with these further labels.
    fn counter(
        &self,
        family: &Family<LabelSet, Counter>,
        labels: &[(&'static str, &'static str)],
    ) -> Counter {
        let further = labels
            .iter()
            .map(|(key, value)| (*key, Cow::Borrowed(*value)));
        let labels: LabelSet = self.labels.iter().cloned().chain(further).collect();
        family.get_or_create_owned(&labels)
    }
}

impl RequestMonitor for LeaseFigures {
    fn note_write(&self, purpose: &'static str, outcome: WriteOutcomeKind, took: Duration) {
        let labels = [("purpose", purpose), ("outcome", outcome.as_str())];
        self.count(&self.families.writes, &labels);
        if (purpose, outcome) == ("renew", WriteOutcomeKind::Done) {
            self.renew_duration.observe(took.as_secs_f64());
        }
    }

    fn note_read_in_term(&self) {
        self.slow_path.inc();
    }

    fn note_failure(&self, error: &RequestError) {
        let target = &error.target;
        let labels = [
            ("resource", resource(&target.resource)),
            ("verb", target.verb.as_str()),
            ("cause", error.cause.as_str()),
        ];
        self.count(&self.families.failures, &labels);
    }
}

impl fmt::Debug for LeaseFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseFigures").finish_non_exhaustive()
    }
}

/// The resource of a request without its group.
fn resource(name: &str) -> &'static str {
    if name.starts_with("leasecandidates.") {
        "leasecandidates"
    } else {
        "leases"
    }
}
