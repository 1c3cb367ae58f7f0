//! Metrics that are served together, each with a description that a document can be compared with.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::metric_series::{HistogramBuckets, HistogramFamily, LabelSet, Seconds, SecondsGauge};

/// The name and the meaning of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricDescription {
    /// As queries name it; a histogram without `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<&'static str>,
    /// The unit, where it has one: `seconds` or `bytes`.
    pub unit: Option<&'static str>,
    /// Its meaning.
    pub help: &'static str,
}

/// Metrics that are served together: as a text, or in the registry of a program.
#[derive(Default)]
pub struct MetricSet {
    descriptions: Vec<MetricDescription>,
    registrations: Vec<MetricRegistration>,
}

/// Registers a metric, which goes on to be fed from where it was made.
type MetricRegistration = Box<dyn Fn(&mut Registry) + Send + Sync>;

const SECONDS: &str = "seconds";

// === impl MetricSet ===

impl MetricSet {
    /// The content type of what [`Self::encode`] returns.
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// The figures now, in the text format of OpenMetrics.
    pub fn encode(&self) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        let mut text = String::new();
        // Writing to a String cannot fail, and nothing else can.
        let _ = encode(&mut text, &registry);
        text
    }

    /// Registers all of them.
    pub fn register(&self, registry: &mut Registry) {
        for register in &self.registrations {
            register(registry);
        }
    }

    /// Every metric, also those that have no sample yet.
    pub fn descriptions(&self) -> &[MetricDescription] {
        &self.descriptions
    }

    /// A counter, named without `_total`.
    pub fn counter(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, Counter> {
        self.with((name, "_total"), "counter", labels, help, Family::default())
    }

    /// A counter of seconds, named without `_seconds_total`.
    pub fn seconds(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, Seconds> {
        let suffix = "_seconds_total";
        self.with((name, suffix), "counter", labels, help, Family::default())
    }

    /// A gauge.
    pub fn gauge(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, Gauge> {
        self.with((name, ""), "gauge", labels, help, Family::default())
    }

    /// A gauge without labels.
    pub fn single_gauge(&mut self, name: &'static str, help: &'static str) -> Gauge {
        self.with((name, ""), "gauge", &[], help, Gauge::default())
    }

    /// A gauge of seconds, named without `_seconds`.
    pub fn seconds_gauge(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        help: &'static str,
    ) -> Family<LabelSet, SecondsGauge> {
        let suffix = "_seconds";
        self.with((name, suffix), "gauge", labels, help, Family::default())
    }

    /// A histogram of seconds without labels, named without `_seconds`.
    pub fn histogram(
        &mut self,
        name: &'static str,
        buckets: &'static [f64],
        help: &'static str,
    ) -> Histogram {
        let histogram = HistogramBuckets(buckets).new_metric();
        self.with((name, "_seconds"), "histogram", &[], help, histogram)
    }

    /// Histograms of seconds with these labels, named without `_seconds`.
    pub fn histograms(
        &mut self,
        name: &'static str,
        labels: &[&'static str],
        buckets: &'static [f64],
        help: &'static str,
    ) -> HistogramFamily {
        let family = HistogramFamily::new_with_constructor(HistogramBuckets(buckets));
        self.with((name, "_seconds"), "histogram", labels, help, family)
    }

    /// A metric that is always 1 and says something by its labels, named without `_info`.
    pub fn info(
        &mut self,
        name: &'static str,
        labels: &[(&'static str, &'static str)],
        help: &'static str,
    ) {
        let set = labels
            .iter()
            .map(|(key, value)| (*key, Cow::Borrowed(*value)));
        let set: LabelSet = set.collect();
        let labels: Vec<_> = labels.iter().map(|(key, _)| *key).collect();
        let description =
            MetricDescription::new(format!("{name}_info"), "info", &labels, None, help);
        self.descriptions.push(description);
        self.add(move |registry| registry.register(name, help, Info::new(set.clone())));
    }

    /// Metrics that are made at each scrape.
    pub fn collect(
        &mut self,
        collector: impl Collector + Clone,
        descriptions: impl IntoIterator<Item = MetricDescription>,
    ) {
        self.descriptions.extend(descriptions);
        self.add(move |registry| registry.register_collector(Box::new(collector.clone())));
    }

    /// Describes and registers a metric, in seconds where its suffix says so.
    fn with<M: Metric + Clone>(
        &mut self,
        (name, suffix): (&'static str, &str),
        kind: &'static str,
        labels: &[&'static str],
        help: &'static str,
        metric: M,
    ) -> M {
        let unit = suffix.starts_with("_seconds").then_some(SECONDS);
        self.descriptions.push(MetricDescription::new(
            format!("{name}{suffix}"),
            kind,
            labels,
            unit,
            help,
        ));
        let registered = metric.clone();
        self.add(move |registry| match unit {
            Some(_) => registry.register_with_unit(name, help, Unit::Seconds, registered.clone()),
            None => registry.register(name, help, registered.clone()),
        });
        metric
    }

    fn add(&mut self, register: impl Fn(&mut Registry) + Send + Sync + 'static) {
        self.registrations.push(Box::new(register));
    }
}

impl fmt::Debug for MetricSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricSet").finish_non_exhaustive()
    }
}

// === impl MetricDescription ===

impl MetricDescription {
    /// The description of a metric with its whole name.
    pub fn new(
        name: String,
        kind: &'static str,
        labels: &[&'static str],
        unit: Option<&'static str>,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            labels: labels.to_vec(),
            unit,
            help,
        }
    }
}
