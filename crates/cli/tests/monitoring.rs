//! The alerts and the dashboard ask for figures that there are, by labels and values that these have.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

#[path = "monitoring/query.rs"]
mod query;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use elector::Metrics;
use elector_candidate::Metrics as CandidateMetrics;
use elector_runtime::MetricDescription;
use serde_json::Value;

use self::query::PromQuery;

/// The labels that Prometheus adds to what it scrapes, as far as they are used.
const OF_THE_TARGET: [&str; 3] = ["instance", "job", "pod"];

/// A figure of kube-apiserver, with the labels that are used; its values are not ours.
const OF_POLICIES: (&str, [&str; 2]) = (
    "apiserver_validating_admission_policy_check_total",
    ["policy", "enforcement_action"],
);
/// Values of labels that no document names: of that figure, and of buckets.
const OTHER_VALUES: [&str; 3] = ["elector-.*", "deny", "10.0"];

/// The names of all series that can be queried, each with its labels. Another test holds each description against a
/// scrape (`the_document_names_what_is_served`, of the elector's and of the candidate's).
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let (metrics, of_candidates) = (Metrics::default(), CandidateMetrics::default());
    let described = metrics.descriptions().iter();
    let mut series = BTreeMap::new();
    for metric in described.chain(of_candidates.descriptions()) {
        add_series(metric, &mut series);
    }
    let (name, labels) = OF_POLICIES;
    series.insert(name.to_owned(), labels.map(str::to_owned).into());
    series
}

fn add_series(metric: &MetricDescription, series: &mut BTreeMap<String, BTreeSet<String>>) {
    let mut labels: BTreeSet<String> = metric.labels.iter().map(ToString::to_string).collect();
    labels.extend(OF_THE_TARGET.map(str::to_owned));
    if metric.kind == "histogram" {
        for suffix in ["_sum", "_count"] {
            series.insert(format!("{}{suffix}", metric.name), labels.clone());
        }
        labels.insert("le".to_owned());
        series.insert(format!("{}_bucket", metric.name), labels);
    } else {
        series.insert(metric.name.clone(), labels);
    }
}

/// A file from the root of the workspace.
fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// Every text under that key, however deep.
fn texts<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == key => found.push(text),
                    value => texts(value, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, found)),
        _ => {}
    }
}

/// The faults of a query.
fn faults(text: &str) -> Vec<String> {
    let (series, document) = (series(), read("docs/metrics.md"));
    let query = PromQuery::parse(text);
    let mut faults = Vec::new();
    let mut known = BTreeSet::new();
    for name in &query.metrics {
        match series.get(name) {
            Some(labels) => known.extend(labels.iter().cloned()),
            None => faults.push(format!("there is no {name}")),
        }
    }
    let missing = query.labels.iter().filter(|label| !known.contains(*label));
    faults.extend(missing.map(|label| format!("there is no label {label}")));
    // A value that is a variable of the dashboard can be anything.
    let known = |value: &str| value.starts_with('$') || OTHER_VALUES.contains(&value);
    let values = query.values.iter().filter(|value| !known(value));
    let missing = values.filter(|value| !document.contains(&format!("`{value}`")));
    faults.extend(missing.map(|value| format!("no label has the value {value}")));
    faults
}

#[test]
fn the_alerts_ask_for_what_there_is_and_tell_what_they_found() {
    let rules = read("manifests/components/monitoring/prometheus-rule.yaml");
    let rules: Value = serde_saphyr::from_str(&rules).unwrap();
    let groups = rules["spec"]["groups"].as_array().unwrap().iter();
    let rules: Vec<_> = groups
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    assert!(rules.len() >= 20, "{}", rules.len());
    let operate = read("docs/operate.md");
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        let heading = format!("\n### {name}\n");
        let holds = operate.contains(&heading);
        assert!(holds, "docs/operate.md has no {heading:?}");
        let anchor = format!("/docs/operate.md#{}", name.to_lowercase());
        let runbook = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert!(runbook.ends_with(&anchor), "{runbook} is not of {name}");
        let (name, text) = (&rule["alert"], rule["expr"].as_str().unwrap());
        assert_eq!(faults(text), [""; 0], "{name}: {text}");
        let query = PromQuery::parse(text);
        assert!(!query.metrics.is_empty(), "{name}: {text}");
        let mut annotations = Vec::new();
        texts(&rule["annotations"], "summary", &mut annotations);
        texts(&rule["annotations"], "description", &mut annotations);
        for part in annotations
            .iter()
            .flat_map(|text| text.split("$labels.").skip(1))
        {
            let end = |c: char| c != '_' && !c.is_ascii_alphanumeric();
            let label = part.split(end).next().unwrap();
            let holds = query.groups.contains(label);
            assert!(holds, "{name} has no label {label} to tell");
        }
    }
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard = read("manifests/components/monitoring/dashboard.json");
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, "expr", &mut queries);
    assert!(queries.len() >= 20, "{}", queries.len());
    for text in queries {
        assert_eq!(faults(text), [""; 0], "{text}");
    }
    let mut variables = Vec::new();
    texts(&dashboard["templating"], "query", &mut variables);
    let values = variables
        .iter()
        .find_map(|text| text.strip_prefix("label_values("));
    let (metric, label) = values
        .unwrap()
        .trim_end_matches(')')
        .split_once(", ")
        .unwrap();
    assert_eq!(faults(&format!("sum by ({label}) ({metric})")), [""; 0]);
}
