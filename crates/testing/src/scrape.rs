//! The text that Prometheus is given, read back.

use std::collections::{BTreeMap, BTreeSet};

use elector_runtime::MetricDescription;

/// The samples of one scrape.
#[derive(Debug)]
pub struct Scrape(Vec<Sample>);

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The rows of the tables of a document of metrics: name, type, labels and unit of each.
#[must_use]
pub fn documented_metrics(document: &str) -> BTreeSet<String> {
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|line| {
        let cells: Vec<_> = line
            .split('|')
            .map(|cell| cell.trim().replace('`', ""))
            .collect();
        assert!(cells[5].len() > 10, "{line} says what it means");
        cells[1..5].join(" | ")
    });
    rows.collect()
}

/// The rows that such a document is to have for these metrics.
#[must_use]
pub fn described_metrics(descriptions: &[MetricDescription]) -> BTreeSet<String> {
    let rows = descriptions.iter().map(|metric| {
        let cells = [
            metric.name.as_str(),
            metric.kind,
            &metric.labels.join(", "),
            metric.unit.unwrap_or_default(),
        ];
        cells.join(" | ")
    });
    rows.collect()
}

/// Asserts that each sample is of a described metric and has its labels, and that each of these has a sample.
///
/// # Panics
/// When that is not so; the text names the metric.
pub fn assert_described(
    samples: &BTreeSet<(String, BTreeSet<String>)>,
    descriptions: &[MetricDescription],
) {
    let mut served = BTreeSet::new();
    for (name, labels) in samples {
        let base = |suffix| name.strip_suffix(suffix).unwrap_or(name);
        let names = [name, base("_bucket"), base("_sum"), base("_count")];
        let described = descriptions
            .iter()
            .find(|metric| names.contains(&metric.name.as_str()));
        let described = described.unwrap_or_else(|| panic!("{name} is not described"));
        let expected = described.labels.iter().map(ToString::to_string).collect();
        assert_eq!(*labels, expected, "{name}");
        served.insert(described.name.as_str());
    }
    let all: BTreeSet<_> = descriptions
        .iter()
        .map(|metric| metric.name.as_str())
        .collect();
    assert_eq!(served, all);
}

// === impl Scrape ===

impl Scrape {
    /// Reads a whole answer. No label value of ours holds a quote, a comma or a brace.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.map(Sample::parse).collect())
    }

    /// The value of one sample; zero where there is none.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.sample(name, labels).unwrap_or_default()
    }

    /// The value of one sample, where there is one.
    #[must_use]
    pub fn sample(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let mut samples = self.0.iter();
        let sample = samples.find(|sample| sample.name == name && sample.labels == labels);
        sample.map(|sample| sample.value)
    }

    /// The sums of a metric by one of its labels, in the order of the values.
    #[must_use]
    pub fn by(&self, name: &str, label: &str) -> Vec<(String, f64)> {
        let mut sums = BTreeMap::new();
        for sample in self.0.iter().filter(|sample| sample.name == name) {
            *sums.entry(sample.labels[label].clone()).or_insert(0.0) += sample.value;
        }
        sums.into_iter().collect()
    }

    /// The names of all samples, each with those of its labels but the bucket's bound.
    #[must_use]
    pub fn names(&self) -> BTreeSet<(String, BTreeSet<String>)> {
        let names = self.0.iter().map(|sample| {
            let labels = sample.labels.keys().filter(|key| *key != "le");
            (sample.name.clone(), labels.cloned().collect())
        });
        names.collect()
    }
}

// === impl Sample ===

impl Sample {
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
            None => (series, ""),
        };
        let labels = labels.split(',').filter(|label| !label.is_empty());
        let labels = labels.map(|label| {
            let (key, value) = label.split_once('=').unwrap();
            (key.to_owned(), value.trim_matches('"').to_owned())
        });
        Self {
            name: name.to_owned(),
            labels: labels.collect(),
            value: value.parse().unwrap(),
        }
    }
}
