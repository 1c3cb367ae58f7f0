//! `elector fence-policy`: what it prints, and how it takes bad input. The server's side of it is played in `tests`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::process::{Command, Output};

use serde_json::{Value, json};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_elector"))
        .arg("fence-policy")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn documents(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let documents = text(&output.stdout).split("\n---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

#[test]
fn policies_name_each_resource_and_writer_once() {
    let line = "configmaps deployments.apps statefulsets.apps deployments.apps widgets.example.com
        --lease=true --namespace=123 --serviceaccount=web --serviceaccount=123:web
        --serviceaccount=other:web --user=me@example.com";
    let documents = documents(&line.split_whitespace().collect::<Vec<_>>());
    let kinds: Vec<_> = documents.iter().map(|document| &document["kind"]).collect();
    let (policy, binding) = (
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    );
    assert_eq!(kinds, [policy, binding, policy, binding]);
    for (documents, name) in documents.chunks(2).zip(["object", "lease"]) {
        let name = format!("elector-fence.123.true.{name}");
        assert_eq!(documents[0]["metadata"]["name"], *name);
        assert_eq!(documents[1]["spec"]["policyName"], *name);
        let rule = |group: &str, resources: &[&str]| {
            json!({
                "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources,
            })
        };
        assert_eq!(
            documents[0]["spec"]["matchConstraints"]["resourceRules"],
            json!([
                rule("", &["configmaps"]),
                rule("apps", &["deployments", "statefulsets"]),
                rule("example.com", &["widgets"]),
            ])
        );
        let condition = &documents[0]["spec"]["matchConditions"][0]["expression"];
        assert_eq!(
            condition.as_str().unwrap(),
            "request.userInfo.username in [\n  'me@example.com',\n  'system:serviceaccount:123:web',\n  \
             'system:serviceaccount:other:web',\n]"
        );
        assert!(!documents[0].to_string().contains('«'));
    }
    let expected = json!({"name": "true", "namespace": "123", "parameterNotFoundAction": "Allow"});
    assert_eq!(documents[3]["spec"]["paramRef"], expected);
}

#[test]
fn what_can_be_no_policy_is_refused_with_the_rule() {
    for row in "\
deployments: belongs to the group apps: write deployments.apps
configmaps.apps: belongs to the core group: write configmaps
widgets: the core group has no resource widgets: write RESOURCE.GROUP
widgets.app: the group app has no resource widgets
deployments.v1.apps: for all versions: write deployments.apps
configmaps.v1: for all versions: write configmaps
deployments.apps/status: a subresource cannot be fenced
ConfigMap: a plural name in lower case
configmaps.: a plural name in lower case
.apps: a plural name in lower case
*: a plural name in lower case
: a plural name in lower case
leases.coordination.k8s.io: written before there is a token
leasecandidates.elector.dev: written before there is a token
validatingadmissionpolicies.admissionregistration.k8s.io: applies no policy to policies"
        .lines()
    {
        let (resource, says) = row.split_once(": ").unwrap();
        let output = run(&[resource, "--lease=web", "--serviceaccount=web"]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn names_that_can_be_none_are_refused_with_the_rule() {
    let long = format!("--lease={} --user=u", "a".repeat(240));
    for (flags, code, says) in [
        ("--lease=web", 2, "--serviceaccount"),
        ("--lease=Web --user=u", 2, "RFC 1123 subdomain"),
        ("--lease=web --namespace=a.b --user=u", 2, "RFC 1123 label"),
        ("--lease=web --serviceaccount=a:b:c", 2, "NAMESPACE:NAME"),
        ("--lease=web --serviceaccount=:b", 2, "NAMESPACE:NAME"),
        ("--lease=web --user=it's", 2, "without quotes"),
        ("--lease=web --user=«NAME»", 2, "visible ASCII"),
        (
            "--lease=web --user=u --name=A",
            1,
            "can be no name of a policy",
        ),
        (long.as_str(), 1, "no more than 253 characters"),
    ] {
        let line: Vec<_> = ["configmaps"].into_iter().chain(flags.split(' ')).collect();
        let output = run(&line);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(says), "{error}");
    }
}
