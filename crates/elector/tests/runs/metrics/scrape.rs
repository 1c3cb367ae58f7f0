//! The text that Prometheus is given, read back.

use std::collections::{BTreeMap, BTreeSet};

/// The samples of one scrape.
pub(super) struct Scrape(Vec<Sample>);

struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

// === impl Scrape ===

impl Scrape {
    /// Reads a whole answer. No label value of ours holds a quote, a comma or a brace.
    pub(super) fn parse(text: &str) -> Self {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.map(Sample::parse).collect())
    }

    /// The value of one sample; zero where there is none.
    pub(super) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let mut samples = self.0.iter();
        let sample = samples.find(|sample| sample.name == name && sample.labels == labels);
        sample.map_or(0.0, |sample| sample.value)
    }

    /// The sums of a metric by one of its labels, in the order of the values.
    pub(super) fn by(&self, name: &str, label: &str) -> Vec<(String, f64)> {
        let mut sums = BTreeMap::new();
        for sample in self.0.iter().filter(|sample| sample.name == name) {
            *sums.entry(sample.labels[label].clone()).or_insert(0.0) += sample.value;
        }
        sums.into_iter().collect()
    }

    /// The names of all samples, each with those of its labels but the bucket's bound.
    pub(super) fn names(&self) -> BTreeSet<(String, BTreeSet<String>)> {
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
