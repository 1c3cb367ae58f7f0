//! The chart, rendered and installed by Helm.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use elector_cluster::binaries;
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::overlays;
use elector_cluster::paths;
use serde_json::{Value, json};
use xtask::manifests::chart::MODES;

use crate::{ask, said};

/// The release that has the names of the overlays.
const NAME: &str = "elector";
const NAMESPACE: &str = "--namespace=elector-system";
/// The oldest Kubernetes that the chart is for; no cluster is asked for it.
const OLDEST: &str = "--kube-version=1.31.0";

fn helm(arguments: &[&str]) -> Output {
    Command::new(binaries::helm().unwrap())
        .current_dir(paths::workspace().join("manifests"))
        .args(arguments)
        .output()
        .unwrap()
}

/// The answer of Helm that renders with these flags; a value is given as `--set`.
fn template(flags: &[&str]) -> Output {
    let fixed = ["template", NAME, "chart", NAMESPACE, OLDEST];
    helm(&[&fixed[..], flags].concat())
}

/// The objects that Helm renders with these values, without the label that is its own.
fn rendered(values: &[&str]) -> BTreeMap<String, Value> {
    // Only as JSON is a list empty.
    let flag = |value: &str| ["--set", "--set-json"][usize::from(value.ends_with("=[]"))];
    let sets = values.iter().flat_map(|value| [flag(value), *value]);
    let sets: Vec<&str> = sets.collect();
    let output = template(&sets);
    assert!(output.status.success(), "{}", said(&output));
    let mut objects = by_name(&String::from_utf8(output.stdout).unwrap());
    for (name, object) in &mut objects {
        let labels = object["metadata"]["labels"].as_object_mut().unwrap();
        let chart = format!("elector-{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(labels.remove("helm.sh/chart"), Some(chart.into()), "{name}");
    }
    objects
}

/// The object of that kind and name.
fn object<'a>(objects: &'a BTreeMap<String, Value>, kind: &str, name: &str) -> &'a Value {
    let named = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let found = objects.values().find(named);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {:?}", objects.keys()))
}

/// The file `install.yaml` of an overlay, without the namespace, which Helm makes if it is asked to.
fn installed(overlay: &str) -> BTreeMap<String, Value> {
    let mut objects = by_name(&fs::read_to_string(overlays::install_file(overlay)).unwrap());
    objects.retain(|_, object| object["kind"] != "Namespace");
    objects
}

/// The values with which the chart gives that overlay.
fn values_of(mode: &str) -> Vec<String> {
    let mut values = vec![format!("mode={mode}"), "crds.keep=false".to_owned()];
    values.extend((mode == "namespaced").then(|| "namespaces={default}".to_owned()));
    values
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
        let values = values_of(mode);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        assert_equal(&rendered(&values), &installed(mode), mode);
    }
    let monitored = overlays::kustomize(&overlays::folder("monitoring")).unwrap();
    let mut monitored = by_name(&monitored);
    monitored.retain(|_, object| object["kind"] != "Namespace");
    let values = ["mode=native", "monitoring.enabled=true"];
    assert_equal(&rendered(&values), &monitored, "monitoring");
    // The usual values keep the definition, by one annotation.
    let mut usual = rendered(&[]);
    let definition = "\"CustomResourceDefinition\" null \"leasecandidates.elector.dev\"";
    let metadata = usual.get_mut(definition).unwrap()["metadata"].as_object_mut();
    let annotations = metadata.unwrap().remove("annotations").unwrap();
    assert_eq!(annotations, json!({"helm.sh/resource-policy": "keep"}));
    assert_equal(&usual, &installed(MODES[0]), "default");
}

#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn helm_puts_the_values_where_they_belong() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let image =
        format!("image.repository=registry.example/elector image.tag=9.9.9 image.digest={digest}");
    let values = "image.pullSecrets[0].name=mine global.imagePullSecrets[0].name=ours
        replicas=3 resources.limits.memory=1Gi nodeSelector.zone=a tolerations[0].key=control-plane
        affinity.podAntiAffinity.any=thing topologySpreadConstraints[0].maxSkew=2
        commonLabels.team=one podLabels.tier=two podAnnotations.note=three
        deploymentAnnotations.note=four serviceAccount.annotations.note=five
        extraArgs={--max-lease-duration=2m} extraEnv[0].name=HTTPS_PROXY podDisruptionBudget.enabled=false
        networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus policies.mode=audit
        monitoring.enabled=true monitoring.kind=ServiceMonitor monitoring.labels.release=stack
        monitoring.interval=1m monitoring.dashboard=false metrics.bind=:9090 enabled=true";
    let values = image.split_whitespace().chain(values.split_whitespace());
    let objects = rendered(&values.collect::<Vec<_>>());
    let deployment = object(&objects, "Deployment", NAME);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].to_string();
    let image = format!("registry.example/elector:9.9.9@{digest}");
    assert_eq!(container["image"], image);
    let places = r#"Deployment /spec/replicas 3
        Deployment /metadata/annotations {"note": "four"}
        Deployment /spec/template/metadata/labels/tier "two"
        Deployment /spec/template/metadata/annotations {"note": "three"}
        Deployment /spec/template/spec/imagePullSecrets [{"name": "ours"}, {"name": "mine"}]
        Deployment /spec/template/spec/nodeSelector {"zone": "a"}
        Deployment /spec/template/spec/tolerations [{"key": "control-plane"}]
        Deployment /spec/template/spec/affinity {"podAntiAffinity": {"any": "thing"}}
        Deployment /spec/template/spec/topologySpreadConstraints [{"maxSkew": 2}]
        Deployment /spec/template/spec/containers/0/resources/limits/memory "1Gi"
        Deployment /spec/template/spec/containers/0/env/2 {"name": "HTTPS_PROXY"}
        Deployment /spec/template/spec/containers/0/ports/1 {"name": "metrics", "containerPort": 9090}
        ServiceAccount /metadata/annotations {"note": "five"}
        NetworkPolicy /spec/ingress/1/from [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
        ServiceMonitor /spec/endpoints/0/interval "1m"
        PrometheusRule /metadata/labels/release "stack""#;
    for place in places.lines() {
        let mut words = place.trim().splitn(3, ' ');
        let [kind, pointer, value] = [(); 3].map(|()| words.next().unwrap());
        let expected: Value = serde_json::from_str(value).unwrap();
        let found = object(&objects, kind, NAME).pointer(pointer);
        assert_eq!(found, Some(&expected), "{place}");
    }
    for argument in ["--max-lease-duration=2m", "--metrics-bind-address=:9090"] {
        assert!(arguments.contains(argument), "{arguments}");
    }
    for object in objects.values() {
        assert_eq!(object["metadata"]["labels"]["team"], "one", "{object}");
        let kind = object["kind"].as_str().unwrap();
        assert!(!["ConfigMap", "PodDisruptionBudget", "PodMonitor"].contains(&kind));
        if kind == "ValidatingAdmissionPolicyBinding" {
            let expected = json!(["Audit", "Warn"]);
            assert_eq!(object["spec"]["validationActions"], expected);
        }
    }
    // Off is off, and its own account is named everywhere.
    let values = "crds.enabled=false policies.enabled=false networkPolicy.enabled=false resourceQuota.enabled=false
        flowSchema.enabled=false serviceAccount.create=false serviceAccount.name=mine
        namespaceOverride=elsewhere topologySpreadConstraints=[]";
    let objects = rendered(&values.split_whitespace().collect::<Vec<_>>());
    let kinds = objects.values().map(|object| object["kind"].as_str());
    let kinds: Vec<&str> = kinds.map(Option::unwrap).collect();
    let expected = "ClusterRole ClusterRoleBinding ClusterRoleBinding Deployment PodDisruptionBudget Role RoleBinding";
    assert_eq!(kinds.join(" "), expected);
    let pod = &object(&objects, "Deployment", NAME)["spec"]["template"]["spec"];
    assert_eq!(pod["topologySpreadConstraints"], Value::Null);
    let subject = json!([{"kind": "ServiceAccount", "name": "mine", "namespace": "elsewhere"}]);
    for (_, binding) in objects.iter().filter(|(name, _)| name.contains("Binding")) {
        assert_eq!(binding["subjects"], subject, "{binding}");
    }
}

#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn helm_refuses_values_by_name_and_passes_the_strict_linter() {
    for (wrong, why) in [
        ("mode=control-plane", "mode"),
        ("namespaceOverride=No_Name", "namespaceOverride"),
        ("replica=3", "replica"),
        ("replicas=many", "replicas"),
        ("image.digest=latest", "image/digest"),
        ("policies.mode=warn", "policies/mode"),
        ("mode=namespaced", "name the namespaces that are served"),
        ("namespaces={team}", "mode is crd, which serves all"),
        (
            "extraArgs={--replace-builtin}",
            "extraArgs has --replace-builtin, which the chart sets",
        ),
        (
            "monitoring.enabled=true,metrics.bind=127.0.0.1:8080",
            "metrics.bind is 127.0.0.1:8080, which nobody can scrape",
        ),
        (
            "serviceAccount.create=false",
            "name the account that is there",
        ),
    ] {
        let output = template(&["--set", wrong]);
        assert!(!output.status.success(), "{wrong}");
        assert!(said(&output).contains(why), "{}", said(&output));
    }
    let lint = helm(&["lint", "--strict", "chart", OLDEST]);
    assert!(lint.status.success(), "{}", said(&lint));
}

/// A chart that depends on this one, and another chart's words for it: the name of the release, a switch, what all share.
#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn helm_renders_the_chart_as_a_part_of_another() {
    let umbrella = tempfile::tempdir().unwrap();
    let chart = paths::workspace().join("manifests/chart");
    let version = env!("CARGO_PKG_VERSION");
    let dependency = format!("[{{name: elector, version: {version}, condition: elector.enabled}}]");
    let text = format!("apiVersion: v2\nname: all\nversion: 1.0.0\ndependencies: {dependency}\n");
    fs::write(umbrella.path().join("Chart.yaml"), text).unwrap();
    fs::create_dir(umbrella.path().join("charts")).unwrap();
    symlink(chart, umbrella.path().join("charts/elector")).unwrap();
    let objects = |set: &str| {
        let path = umbrella.path().to_str().unwrap();
        let flags = ["all", path, "--namespace=web", OLDEST, "--set", set];
        let output = helm(&[&["template"], &flags[..]].concat());
        assert!(output.status.success(), "{}", said(&output));
        by_name(&String::from_utf8(output.stdout).unwrap())
    };
    let with = objects("elector.enabled=true,global.imagePullSecrets[0].name=ours");
    let deployment = object(&with, "Deployment", "all-elector");
    assert_eq!(deployment["metadata"]["namespace"], "web");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "ours"}]));
    let lock = "--leader-elect-resource-name=all-elector";
    assert_eq!(pod["containers"][0]["args"][1], lock);
    let role = object(&with, "Role", "all-elector-lock");
    assert_eq!(role["rules"][0]["resourceNames"], json!(["all-elector"]));
    assert!(objects("elector.enabled=false").is_empty());
}

/// The answers to what kube-score finds. A finding that is not in this list fails.
const ANSWERED: [(&str, &str); 5] = [
    (
        "container-image-pull-policy",
        "the image of a version does not change, and a digest names it for good",
    ),
    (
        "container-ephemeral-storage-request-and-limit",
        "it writes no file, and the kubelet rotates its log",
    ),
    (
        "container-security-context-user-group-id",
        "the image has a number above 10000, and OpenShift refuses one in the Pod",
    ),
    (
        "pod-networkpolicy",
        "the address of the API server is not known here, so nothing limits the egress",
    ),
    (
        "deployment-has-host-podantiaffinity",
        "a topology spread constraint does the same",
    ),
];

#[test]
#[ignore = "it needs Helm and kube-score: `cargo xtask test --long`"]
fn helm_renders_what_kube_score_has_no_word_against() {
    let folder = tempfile::tempdir().unwrap();
    let pod = overlays::folder("control-plane").join("static-pod.yaml");
    let mut files = vec![pod];
    for mode in MODES {
        let values = values_of(mode).join(",");
        let output = template(&["--set", &values]);
        assert!(output.status.success(), "{}", said(&output));
        let file = folder.path().join(mode);
        fs::write(&file, output.stdout).unwrap();
        files.push(file);
    }
    let mut score = Command::new(binaries::kube_score().unwrap());
    score.args(["score", "--output-format=ci", "--exit-one-on-warning"]);
    score.args(["--kubernetes-version=v1.31", "--ignore-container-cpu-limit"]);
    let ignored = ANSWERED
        .iter()
        .flat_map(|(name, _)| ["--ignore-test", *name]);
    let judged = score.args(ignored).args(files).output().unwrap();
    assert!(judged.status.success(), "{}", said(&judged));
}

/// The answer of Helm, on the cluster of that kubeconfig.
fn on(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let kubeconfig = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let output = helm(&[arguments, &kubeconfig].concat());
    assert!(output.status.success(), "{}", said(&output));
    output
}

/// Succeeds if to apply the overlay with these flags would change nothing.
fn is_as_the_overlay(kubeconfig: &Path, overlay: &str, flags: &str) -> Output {
    let install = overlays::install_file(overlay);
    let diff = format!("diff --filename {} {flags}", install.display());
    ask(kubeconfig, &diff)
}

#[test]
#[ignore = "it needs Helm and a real kube-apiserver: `cargo xtask test --long`"]
fn helm_installs_the_chart_and_takes_it_away() {
    let cluster = RealCluster::start(&Options::default()).unwrap();
    let kubeconfig = cluster.kubeconfig();
    let install = ["install", NAME, "chart", NAMESPACE, "--create-namespace"];
    let notes = said(&on(&kubeconfig, &install));
    for line in [
        "kubectl --namespace elector-system rollout status deployment/elector",
        "kubectl label namespace elector-system pod-security.kubernetes.io/enforce=restricted",
    ] {
        assert!(notes.contains(line), "{notes}");
    }
    // The labels of the namespace are all that the overlay has beside it.
    let label = "pod-security.kubernetes.io/enforce=restricted";
    let labelled = ask(
        &kubeconfig,
        &format!("label namespace elector-system {label}"),
    );
    assert!(labelled.status.success(), "{}", said(&labelled));
    let flags = "--server-side --force-conflicts";
    let difference = said(&is_as_the_overlay(&kubeconfig, MODES[0], flags));
    let changed = difference.lines().filter(|line| line.starts_with("+++ "));
    let holds = changed.clone().all(|line| line.contains("v1.Namespace."));
    assert!(holds, "{difference}");
    on(&kubeconfig, &["uninstall", NAME, NAMESPACE]);
    let left = |kind: &str| said(&ask(&kubeconfig, &format!("get {kind} --output=name")));
    for kind in "validatingadmissionpolicies clusterroles flowschemas deployments".split(' ') {
        assert!(!left(kind).contains("elector"), "{}", left(kind));
    }
    // The definition stays, and all candidates, and the next install takes it over.
    assert!(left("crds").contains("leasecandidates.elector.dev"));
    on(&kubeconfig, &install);

    // An install that was made from the overlay becomes one of Helm.
    on(&kubeconfig, &["uninstall", NAME, NAMESPACE]);
    let file = overlays::install_file(MODES[0]);
    let applied = ask(&kubeconfig, &format!("apply --filename {}", file.display()));
    assert!(applied.status.success(), "{}", said(&applied));
    let adopt = ["install", NAME, "chart", NAMESPACE, "--take-ownership"];
    on(&kubeconfig, &adopt);
    // The way in which it was applied; the other one writes kubectl's note of what was applied anew.
    let same = is_as_the_overlay(&kubeconfig, MODES[0], "");
    assert!(same.status.success(), "{}", said(&same));
}

#[test]
#[ignore = "it needs Helm and a real kube-apiserver: `cargo xtask test --long`"]
fn helm_installs_several_electors_beside_what_they_share() {
    let cluster = RealCluster::start(&Options::default()).unwrap();
    let kubeconfig = cluster.kubeconfig();
    for namespace in ["one", "two", "three"] {
        let made = ask(&kubeconfig, &format!("create namespace {namespace}"));
        assert!(made.status.success(), "{}", said(&made));
    }
    let shared = ["install", "shared", "chart", "--set=mode=cluster-wide"];
    on(
        &kubeconfig,
        &[&shared[..], &[NAMESPACE, "--create-namespace"]].concat(),
    );
    let instance = |name: &str, namespace: &str, served: &str| {
        let values = "mode=namespaced,crds.enabled=false,policies.enabled=false";
        let values = format!("--set={values},namespaces={{{served}}}");
        let namespace = format!("--namespace={namespace}");
        let install = ["install", name, "chart", &namespace, &values];
        on(
            &kubeconfig,
            &[&install[..], &["--create-namespace"]].concat(),
        );
    };
    // In one namespace, in another, and among the parts of the control plane.
    instance("elector-one", "elector-system", "one");
    instance("elector-two", "elector-system", "two");
    instance("elector", "kube-system", "three");
    let may = |account: &str, namespace: &str| {
        let question = format!("auth can-i update leases --namespace={namespace}");
        let question = format!("{question} --as=system:serviceaccount:{account}");
        ask(&kubeconfig, &question).status.success()
    };
    for (account, served) in [
        ("elector-system:elector-one", "one"),
        ("elector-system:elector-two", "two"),
        ("kube-system:elector", "three"),
    ] {
        for namespace in ["one", "two", "three"] {
            let expected = namespace == served;
            assert_eq!(may(account, namespace), expected, "{account} {namespace}");
        }
    }
    on(&kubeconfig, &["uninstall", "elector-one", NAMESPACE]);
    assert!(!may("elector-system:elector-one", "one"));
    assert!(may("elector-system:elector-two", "two"));
    let get = "get validatingadmissionpolicybindings --output=name";
    let left = said(&ask(&kubeconfig, get));
    let shared = installed("cluster-wide");
    let shared = shared.keys().filter(|name| name.contains("PolicyBinding"));
    assert_eq!(left.lines().count(), shared.count(), "{left}");
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
    assert_eq!(of_kind(&alone, "PodDisruptionBudget"), Value::Null);
    let timed = objects(&["election.renewDeadline=8s", "extraEnv[0].name=X"]);
    assert_ne!(of_kind(&timed, "PodDisruptionBudget"), Value::Null);
    let deployment = of_kind(&timed, "Deployment");
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    let env = env.as_array().unwrap();
    let (deadline, extra) = (&env[env.len() - 2], &env[env.len() - 1]);
    let expected = json!({ "name": "ELECTOR_RENEW_DEADLINE", "value": "8s" });
    assert_eq!(*deadline, expected);
    assert_eq!(*extra, json!({ "name": "X" }));
    let spec = &of_kind(&alone, "Deployment")["spec"];
    assert_eq!(spec["strategy"]["type"], "Recreate");
    let env = spec["template"]["spec"]["containers"][0]["env"].to_string();
    let holds = env.contains(r#"{"name":"ELECTOR_MODE","value":"disabled"}"#);
    assert!(holds, "{env}");
    let lint = helm(&["lint", "--strict", "../adopters/chart"]);
    assert!(lint.status.success(), "{}", said(&lint));
}
