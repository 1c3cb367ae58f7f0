//! The registration of metrics, each with a description that a document can be compared with.

use std::borrow::Cow;
use std::sync::Arc;

use elector_runtime::WriteCounts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::metrics::series::{HistogramBuckets, HistogramFamily, LabelSet, Seconds, SecondsGauge};
use crate::metrics::writes::WriteCollector;

/// What a metric is called and means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricDescription {
    /// As queries name it; a histogram without `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<&'static str>,
    /// The unit, where it has one: `seconds`.
    pub unit: Option<&'static str>,
    /// What it means.
    pub help: &'static str,
}

/// A registry that is being filled, and what it holds.
#[derive(Default)]
pub(super) struct MetricRegister {
    pub(super) registry: Registry,
    pub(super) descriptions: Vec<MetricDescription>,
}

/// Those of client-go's workqueue.
pub(super) const QUEUE_BUCKETS: &[f64] =
    &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

const SECONDS: &str = "seconds";

// === impl MetricRegister ===

impl MetricRegister {
    pub(super) fn counter(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, Counter> {
        let family = Family::default();
        self.registry.register(name, help, family.clone());
        self.describe((name, "_total"), "counter", labels, None, help);
        family
    }

    pub(super) fn seconds(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, Seconds> {
        let family = Family::default();
        self.registry
            .register_with_unit(name, help, Unit::Seconds, family.clone());
        let suffix = "_seconds_total";
        self.describe((name, suffix), "counter", labels, Some(SECONDS), help);
        family
    }

    pub(super) fn gauge(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, Gauge> {
        let family = Family::default();
        self.registry.register(name, help, family.clone());
        self.describe((name, ""), "gauge", labels, None, help);
        family
    }

    pub(super) fn seconds_gauge(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, SecondsGauge> {
        let family = Family::default();
        self.registry
            .register_with_unit(name, help, Unit::Seconds, family.clone());
        self.describe((name, "_seconds"), "gauge", labels, Some(SECONDS), help);
        family
    }

    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        buckets: &'static [f64],
        help: &'static str,
    ) -> Histogram {
        let histogram = HistogramBuckets(buckets).new_metric();
        self.registry
            .register_with_unit(name, help, Unit::Seconds, histogram.clone());
        self.describe((name, "_seconds"), "histogram", &[], Some(SECONDS), help);
        histogram
    }

    pub(super) fn histograms(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        buckets: &'static [f64],
        help: &'static str,
    ) -> HistogramFamily {
        let family = Family::new_with_constructor(HistogramBuckets(buckets));
        self.registry
            .register_with_unit(name, help, Unit::Seconds, family.clone());
        self.describe((name, "_seconds"), "histogram", labels, Some(SECONDS), help);
        family
    }

    pub(super) fn info(
        &mut self,
        name: &'static str,
        labels: &[(&'static str, &'static str)],
        help: &'static str,
    ) {
        let set = labels
            .iter()
            .map(|(key, value)| (*key, Cow::Borrowed(*value)));
        let set: LabelSet = set.collect();
        self.registry.register(name, help, Info::new(set));
        let labels: Vec<_> = labels.iter().map(|(key, _)| *key).collect();
        self.describe((name, "_info"), "info", &labels, None, help);
    }

    pub(super) fn writes(&mut self, counts: Arc<WriteCounts>) {
        self.registry
            .register_collector(Box::new(WriteCollector::new(counts)));
        let labels = WriteCollector::LABELS;
        let (name, help) = (WriteCollector::NAME, WriteCollector::HELP);
        self.describe((name, "_total"), "counter", &labels, None, help);
    }

    fn describe(
        &mut self,
        (name, suffix): (&str, &str),
        kind: &'static str,
        labels: &[&'static str],
        unit: Option<&'static str>,
        help: &'static str,
    ) {
        self.descriptions.push(MetricDescription {
            name: format!("{name}{suffix}"),
            kind,
            labels: labels.to_vec(),
            unit,
            help,
        });
    }
}
