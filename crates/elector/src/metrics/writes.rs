//! Write outcomes, read from the counts of the writers at each scrape.

use std::borrow::Cow;
use std::fmt::Error;
use std::sync::Arc;

use elector_runtime::{LabelSet, MetricDescription, WriteCounts, Written};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

/// Shows the counts as a metric.
#[derive(Clone, Debug)]
pub(super) struct WriteCollector {
    counts: Arc<WriteCounts>,
}

// === impl WriteCollector ===

impl WriteCollector {
    const NAME: &str = "elector_writes";
    const LABELS: [&str; 3] = ["resource", "verb", "outcome"];
    const HELP: &str = "Writes to the API server by what was written and how that ended; an update of a \
         leasecandidate is a ping, a conflict means that another process wrote first";

    pub(super) fn new(counts: Arc<WriteCounts>) -> Self {
        Self { counts }
    }

    pub(super) fn description() -> MetricDescription {
        let name = format!("{}_total", Self::NAME);
        MetricDescription::new(name, "counter", &Self::LABELS, None, Self::HELP)
    }
}

impl Collector for WriteCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let kind = MetricType::Counter;
        let mut metric = encoder.encode_descriptor(Self::NAME, Self::HELP, None, kind)?;
        for (written, verb, outcome, count) in self.counts.iter() {
            let resource = match written {
                Written::Lease => "leases",
                Written::Candidate => "leasecandidates",
            };
            let values = [resource, verb.as_str(), outcome.as_str()];
            let labels: LabelSet = Self::LABELS
                .into_iter()
                .zip(values.map(Cow::Borrowed))
                .collect();
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
