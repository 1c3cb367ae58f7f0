//! The figures of candidates, as Prometheus takes them.
//!
//! ```text
//!   events, requests ──> LeaseFigures ──> CandidateMetrics: counters, histograms ─┬─> scrape
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
use prometheus_client::registry::Registry;

use self::lease_families::LeaseFamilies;
use self::lease_figures::LeaseFigures;
use self::status_collector::StatusCollector;
use crate::config::Mode;
use crate::handle::CandidateHandle;

/// The figures of the candidates of a process. Clones are the same ones.
///
/// Any number of candidates may share them ([`Candidate::with_metrics`](crate::Candidate::with_metrics)): each lease has
/// labels of its own. `docs/metrics.md` describes each figure.
///
/// They are served with the other metrics of a program from its own registry, or as a text:
///
/// ```
/// use elector_candidate::CandidateMetrics;
/// use elector_candidate::prometheus_client::registry::Registry;
///
/// let metrics = CandidateMetrics::default();
/// let mut registry = Registry::default();
/// metrics.register(&mut registry);
///
/// assert!(metrics.encode().ends_with("# EOF\n"));
/// ```
#[derive(Clone)]
pub struct CandidateMetrics {
    set: Arc<MetricSet>,
    statuses: StatusCollector,
    figures: Arc<LeaseFamilies>,
}

// === impl CandidateMetrics ===

impl CandidateMetrics {
    /// The content type of what [`Self::encode`] returns.
    pub const CONTENT_TYPE: &str = MetricSet::CONTENT_TYPE;

    /// The figures now, in the text format of OpenMetrics.
    pub fn encode(&self) -> String {
        self.set.encode()
    }

    /// Registers the figures with those of a program, once: a registry that has them twice serves each sample twice.
    pub fn register(&self, registry: &mut Registry) {
        self.set.register(registry);
    }

    /// The descriptions of all metrics, also of those that have no sample yet.
    pub fn descriptions(&self) -> &[MetricDescription] {
        self.set.descriptions()
    }

    /// Where a run that begins reports what is counted of its lease.
    pub(crate) fn follow(
        &self,
        handle: CandidateHandle,
        clock: Arc<dyn Clock>,
        mode: Mode,
    ) -> Arc<LeaseFigures> {
        let figures = LeaseFigures::new(&self.figures, handle.lease(), clock, mode);
        self.statuses.follow(handle);
        Arc::new(figures)
    }
}

impl Default for CandidateMetrics {
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

impl fmt::Debug for CandidateMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CandidateMetrics").finish_non_exhaustive()
    }
}
