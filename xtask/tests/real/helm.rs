//! The chart, rendered and installed by Helm.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use elector_cluster::binaries;
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::overlays;
use elector_cluster::paths;
use serde_json::Value;
use xtask::manifests::chart::MODES;

use crate::{ask, said};

/// The name of the release, which no object shows.
const NAME: &str = "any";
/// The oldest Kubernetes that the chart is for; no cluster is asked for it.
const OLDEST: &str = "--kube-version=1.31.0";

fn helm(arguments: &[&str]) -> Output {
    Command::new(binaries::helm().unwrap())
        .current_dir(paths::workspace().join("manifests"))
        .args(arguments)
        .output()
        .unwrap()
}

/// The objects that Helm renders with these values.
fn rendered(values: &[&str]) -> BTreeMap<String, Value> {
    let sets = values.iter().flat_map(|value| ["--set", *value]);
    let output = helm(
        &["template", NAME, "chart", OLDEST]
            .into_iter()
            .chain(sets)
            .collect::<Vec<_>>(),
    );
    assert!(output.status.success(), "{}", said(&output));
    by_name(&String::from_utf8(output.stdout).unwrap())
}

/// The file `install.yaml` of an overlay.
fn installed(overlay: &str) -> String {
    fs::read_to_string(overlays::install_file(overlay)).unwrap()
}

/// Each object by its kind, namespace and name.
fn by_name(text: &str) -> BTreeMap<String, Value> {
    let objects = overlays::objects(text).unwrap();
    let count = objects.len();
    let by_name: BTreeMap<String, Value> = objects
        .into_iter()
        .map(|object| {
            let metadata = &object["metadata"];
            let name = format!(
                "{} {} {}",
                object["kind"], metadata["namespace"], metadata["name"]
            );
            (name, object)
        })
        .collect();
    assert_eq!(by_name.len(), count, "an object is there twice");
    by_name
}

fn assert_equal(
    rendered: &BTreeMap<String, Value>,
    expected: &BTreeMap<String, Value>,
    mode: &str,
) {
    assert!(
        rendered.keys().eq(expected.keys()),
        "{mode}: {:?}\n{:?}",
        rendered.keys(),
        expected.keys()
    );
    for (name, object) in expected {
        assert_eq!(&rendered[name], object, "{mode}: {name}");
    }
}

#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn helm_renders_the_overlays_object_by_object() {
    for mode in MODES {
        let expected = by_name(&installed(mode));
        assert_equal(&rendered(&[&format!("mode={mode}")]), &expected, mode);
    }
    assert_equal(&rendered(&[]), &by_name(&installed(MODES[0])), "default");
}

#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn helm_puts_the_values_where_they_belong_and_refuses_others() {
    let values = [
        "image.repository=registry.example/elector",
        "image.tag=9.9.9",
        "namespace=elections",
        "servedNamespace=team",
        "replicas=3",
        "resources.limits.memory=1Gi",
    ];
    for mode in MODES {
        let rendered = rendered(&[&values[..], &[&format!("mode={mode}")]].concat());
        let mut expected = installed(mode)
            .replace(
                "image: elector:0.1.0",
                "image: registry.example/elector:9.9.9",
            )
            .replace("elector-system", "elections")
            .replace("replicas: 2", "replicas: 3")
            .replace("memory: 256Mi", "memory: 1Gi");
        if mode == "namespaced" {
            expected = expected
                .replace("namespace: default", "namespace: team")
                .replace("--namespace=default", "--namespace=team");
        }
        assert_equal(&rendered, &by_name(&expected), mode);
    }
    for wrong in [
        "mode=control-plane",
        "namespace=No_Name",
        "replica=3",
        "replicas=many",
    ] {
        let output = helm(&["template", NAME, "chart", OLDEST, "--set", wrong]);
        let name = wrong.split('=').next().unwrap();
        assert!(!output.status.success(), "{wrong}");
        assert!(said(&output).contains(name), "{}", said(&output));
    }
    let lint = helm(&["lint", "--strict", "chart", OLDEST]);
    assert!(lint.status.success(), "{}", said(&lint));
}

#[test]
#[ignore = "it needs Helm and a real kube-apiserver: `cargo xtask test --long`"]
fn helm_installs_the_chart_and_takes_it_away() {
    let cluster = RealCluster::start(&Options::default()).unwrap();
    let kubeconfig = cluster.kubeconfig();
    let on_the_cluster = |arguments: &[&str]| {
        let kubeconfig = [
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
            "--namespace=default",
        ];
        let output = helm(&[arguments, &kubeconfig[..]].concat());
        assert!(output.status.success(), "{}", said(&output));
    };
    on_the_cluster(&["install", NAME, "chart"]);
    let install = overlays::install_file(MODES[0]);
    let install = install.to_str().unwrap();
    // Ends well if to apply the overlay would change nothing.
    let same = [
        "diff",
        "--server-side",
        "--force-conflicts",
        "--filename",
        install,
    ];
    let same = ask(&kubeconfig, &same);
    assert!(same.status.success(), "{}", said(&same));
    on_the_cluster(&["uninstall", NAME]);
    for kind in ["validatingadmissionpolicies", "clusterroles", "crds"] {
        let left = said(&ask(&kubeconfig, &["get", kind, "--output=name"]));
        assert!(!left.contains("elector"), "{left}");
    }
}

/// The chart of a program that leads: more than one of it takes an election, and its rights are those of the manifests.
#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn helm_refuses_replicas_of_an_adopter_without_an_election() {
    let template = |values: &[&str]| {
        let sets = values.iter().flat_map(|value| ["--set", *value]);
        let fixed = [
            "template",
            "web",
            "../adopters/chart",
            "--namespace=default",
        ];
        helm(&fixed.into_iter().chain(sets).collect::<Vec<_>>())
    };
    let objects = |values: &[&str]| {
        let output = template(values);
        assert!(output.status.success(), "{}", said(&output));
        overlays::objects(&String::from_utf8(output.stdout).unwrap()).unwrap()
    };
    let of_kind = |objects: &[Value], kind: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind);
        found.cloned().unwrap_or_default()
    };
    let usual = objects(&[]);
    let role = paths::workspace().join("manifests/candidate/role.yaml");
    let shipped = overlays::objects(&fs::read_to_string(role).unwrap()).unwrap();
    for (kind, field) in [("Role", "rules"), ("RoleBinding", "subjects")] {
        let expected = of_kind(&shipped, kind);
        assert_eq!(of_kind(&usual, kind)[field], expected[field], "{kind}");
    }
    assert_eq!(of_kind(&usual, "Deployment")["spec"]["replicas"], 2);

    let refused = template(&["election.enabled=false"]);
    assert!(!refused.status.success());
    let rule = "replicas is 2 and election.enabled is false";
    assert!(said(&refused).contains(rule), "{}", said(&refused));
    let alone = objects(&["election.enabled=false", "replicas=1"]);
    assert_eq!(of_kind(&alone, "Role"), Value::Null);
    let spec = &of_kind(&alone, "Deployment")["spec"];
    assert_eq!(spec["strategy"]["type"], "Recreate");
    let env = spec["template"]["spec"]["containers"][0]["env"].to_string();
    assert!(
        env.contains(r#"{"name":"ELECTOR_MODE","value":"disabled"}"#),
        "{env}"
    );
    let lint = helm(&["lint", "--strict", "../adopters/chart"]);
    assert!(lint.status.success(), "{}", said(&lint));
}
