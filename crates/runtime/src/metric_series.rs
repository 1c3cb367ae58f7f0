//! The forms that figures have.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Labels of one sample, in the order of the description.
pub type LabelSet = Vec<(&'static str, Cow<'static, str>)>;

/// A sum of seconds.
pub type Seconds = Counter<f64, AtomicU64>;

/// A number of seconds that goes up and down.
pub type SecondsGauge = Gauge<f64, AtomicU64>;

/// Histograms with the same buckets.
pub type HistogramFamily = Family<LabelSet, Histogram, HistogramBuckets>;

/// Makes the histograms of a family.
#[derive(Clone, Copy)]
pub struct HistogramBuckets(pub &'static [f64]);

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
