//! The alerts, as promtool plays them: each fires at its fault and at no other, and nothing fires in what every cluster sees.

mod scenario;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use elector_cluster::{binaries, paths};
use serde_json::{Value, json};

use self::scenario::AlertScenario;
use crate::said;

/// The groups of rules.
fn rules() -> Value {
    let path = "manifests/components/monitoring/prometheus-rule.yaml";
    let text = fs::read_to_string(paths::workspace().join(path)).unwrap();
    let rule: Value = serde_saphyr::from_str(&text).unwrap();
    rule["spec"].clone()
}

/// The names of all alerts.
fn alerts(rules: &Value) -> BTreeSet<&str> {
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    rules.map(|rule| rule["alert"].as_str().unwrap()).collect()
}

fn promtool(folder: &Path, arguments: &[&str]) {
    let output = Command::new(binaries::promtool().unwrap())
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// The test of promtool that these alerts, and no others, are firing at some time of the scenario.
fn test(scenario: &AlertScenario) -> Value {
    let fired = scenario.fires.iter().map(|alert| {
        let labels = format!("{{alertname=\"{alert}\"}}");
        json!({"labels": labels, "value": 1})
    });
    // A failure shows the expression, and no name.
    let firing = "group by (alertname) (present_over_time(ALERTS{alertstate=\"firing\"}[7h]))";
    json!({
        "name": scenario.name,
        "interval": "30s",
        "input_series": scenario.series(),
        "promql_expr_test": [{
            "expr": format!("{firing} # {}", scenario.name),
            "eval_time": "6h",
            "exp_samples": fired.collect::<Vec<_>>(),
        }],
    })
}

#[test]
#[ignore = "it needs promtool: `cargo xtask test --long`"]
fn promtool_finds_each_alert_firing_at_its_fault_and_at_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let rules = rules();
    fs::write(folder.path().join("rules.yaml"), rules.to_string()).unwrap();
    promtool(
        folder.path(),
        &["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"],
    );

    let mut scenarios = scenario::silent();
    let faults = scenario::faults();
    let tried: BTreeSet<&str> = faults
        .iter()
        .flat_map(|it| it.fires.iter().copied())
        .collect();
    let expected = alerts(&rules);
    assert_eq!(tried, expected, "each alert has a fault that it fires at");
    scenarios.extend(faults);
    let tests: Vec<_> = scenarios.iter().map(test).collect();
    let tests = json!({
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "30s",
        "tests": tests,
    });
    fs::write(folder.path().join("tests.yaml"), tests.to_string()).unwrap();
    promtool(folder.path(), &["test", "rules", "tests.yaml"]);
}
