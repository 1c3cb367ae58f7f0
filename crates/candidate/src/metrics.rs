//! The figures of candidates, as Prometheus takes them.
//!
//! ```text
//!   events, requests ──> LeaseFigures ──> Metrics: counters, histograms ─┬─> scrape
//!   CandidateHandle ─────────────────────> StatusCollector: asked at the scrape ──┘
//! ```
//!
//! A session only adds to numbers; the text is made on the task that is asked for it.

mod lease_families;
mod lease_figures;
mod status_collector;

use std::fmt;
use std::sync::Arc;

use elector_runtime::{Clock, MetricDescription, MetricSet};
#[cfg(feature = "prometheus-client-0-25")]
use prometheus_client::registry::Registry;

use self::lease_families::LeaseFamilies;
use self::lease_figures::LeaseFigures;
use self::status_collector::StatusCollector;
use crate::handle::CandidateHandle;

/// The figures of the candidates of a process. Clones are the same ones.
///
/// Any number of candidates may share them ([`Candidate::with_metrics`](crate::Candidate::with_metrics)): each lease has
/// labels of its own. `docs/metrics.md` describes each figure.
///
/// They are served as a text, or with the other metrics of a program from its own registry: `register`, with feature
/// `prometheus-client-0-25`, takes one of that version.
///
/// ```
/// use elector_candidate::Metrics;
///
/// let metrics = Metrics::default();
/// assert!(metrics.encode().ends_with("# EOF\n"));
/// ```
#[derive(Clone)]
pub struct Metrics {
    set: Arc<MetricSet>,
    statuses: StatusCollector,
    figures: Arc<LeaseFamilies>,
}

// === impl Metrics ===

impl Metrics {
    /// The content type of what [`Self::encode`] returns.
    pub const CONTENT_TYPE: &str = MetricSet::CONTENT_TYPE;

    /// The figures now, in the text format of OpenMetrics.
    pub fn encode(&self) -> String {
        self.set.encode()
    }

    /// Registers the figures with those of a program, once: a registry that has them twice serves each sample twice.
    #[cfg(feature = "prometheus-client-0-25")]
    pub fn register(&self, registry: &mut Registry) {
        self.set.register(registry);
    }

    /// The descriptions of all metrics, also of those that have no sample yet, for the tests of the documentation.
    #[doc(hidden)]
    pub fn descriptions(&self) -> &[MetricDescription] {
        self.set.descriptions()
    }

    /// Where a run that begins reports what is counted of its lease.
    pub(crate) fn follow(
        &self,
        handle: CandidateHandle,
        clock: Arc<dyn Clock>,
    ) -> Arc<LeaseFigures> {
        let figures = LeaseFigures::new(&self.figures, handle.lease(), clock);
        self.statuses.follow(handle);
        Arc::new(figures)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let (mut set, statuses) = (MetricSet::default(), StatusCollector::default());
        set.collect(statuses.clone(), StatusCollector::descriptions());
        let figures = Arc::new(LeaseFamilies::new(&mut set));
        Self {
            set: Arc::new(set),
            statuses,
            figures,
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
