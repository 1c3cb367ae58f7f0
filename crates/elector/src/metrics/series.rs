//! The forms that the figures have.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Labels of one sample, in the order of the description.
pub(super) type LabelSet = Vec<(&'static str, Cow<'static, str>)>;

/// A sum of seconds.
pub(super) type Seconds = Counter<f64, AtomicU64>;

/// A number of seconds that goes up and down.
pub(super) type SecondsGauge = Gauge<f64, AtomicU64>;

/// Histograms with the same buckets.
pub(super) type HistogramFamily = Family<LabelSet, Histogram, HistogramBuckets>;

/// Makes the histograms of a family.
#[derive(Clone, Copy)]
pub(super) struct HistogramBuckets(pub(super) &'static [f64]);

// === impl HistogramBuckets ===

impl MetricConstructor<Histogram> for HistogramBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl fmt::Debug for HistogramBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HistogramBuckets").field(&self.0).finish()
    }
}
