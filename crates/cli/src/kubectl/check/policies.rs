//! The check that the admission policies are in force: those of this version, and not others of their names.

use elector_api::parse_duration_or_seconds;
use elector_protocol::StrategyName;
use elector_runtime::RequestError;
use serde_json::Value;

use super::line::CheckLine;
use super::place::CheckedPlace;

/// The policies of `manifests/components/policies`, each with a binding of the same name.
const POLICIES: &[(&str, &str)] = &[
    ("elector-lease", "writes of elected Leases"),
    (
        "elector-operator-word",
        "who may freeze a lease, prefer a candidate or make one stand down",
    ),
    ("elector-account", "which Leases an elector may write"),
    (
        "elector-candidate-lease",
        "which leases a candidate may name",
    ),
    (
        "elector-candidate-author",
        "writes of candidates of other accounts",
    ),
    (
        "elector-candidate-duration",
        "the lease duration that a candidate may announce",
    ),
    (
        "elector-candidate-strategy",
        "the strategy that a candidate may wish for",
    ),
];

/// Their content, as the manifests have it.
const MANIFESTS: [&str; 4] = [
    include_str!("../../../../../manifests/components/policies/candidates.yaml"),
    include_str!("../../../../../manifests/components/policies/electors.yaml"),
    include_str!("../../../../../manifests/components/policies/leases.yaml"),
    include_str!("../../../../../manifests/components/policies/words.yaml"),
];

const CHECK: &str = "policies";
const APPLY: &str = "kubectl apply -k manifests/components/policies";
const BIND: &str = "apply the overlay for this cluster: its bindings deny, in the namespaces that its electors serve";

/// The lack that keeps a policy unenforced, and what to do about it.
struct PolicyLack {
    text: String,
    fix: &'static str,
}

/// The annotations of a Namespace that the policies read.
const LONGEST: &str = "elector.dev/max-lease-duration";
const STRATEGIES: &str = "elector.dev/strategies";

/// By this label a selector names namespaces.
const NAME: &str = "kubernetes.io/metadata.name";

/// The namespace that is judged only where electors serve it.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Looks for each. Whether any is in force.
pub(super) async fn check(place: &CheckedPlace, lines: &mut Vec<CheckLine>) -> bool {
    let mut in_force = 0;
    for (name, about) in POLICIES {
        match enforced(place, name).await {
            Ok(None) => in_force += 1,
            Ok(Some(PolicyLack { text, fix })) => lines.push(CheckLine::warning(
                CHECK,
                format!("{text}, so the API server does not restrict {about}"),
                fix,
            )),
            Err(error) => {
                lines.push(CheckLine::warning(
                    CHECK,
                    format!("failed to {error}"),
                    "use an account with this permission: kubectl get validatingadmissionpolicybindings",
                ));
                return true;
            }
        }
    }
    if in_force == POLICIES.len() {
        let text = format!("all {in_force} admission policies are in force");
        lines.push(CheckLine::ok(CHECK, text));
    }
    bounds(place, lines).await;
    in_force > 0
}

/// Reads the bounds that the Namespace sets: by a slip in one of them every candidate is refused. Without the right to
/// read Namespaces, which nothing else here takes, nothing is said.
async fn bounds(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let Some(namespace) = &place.namespace else {
        return;
    };
    let path = format!("/api/v1/namespaces/{namespace}");
    let named = (None, Some(namespace.as_str()));
    let Ok(found) = place.read::<Value>("namespaces", named, &path).await else {
        return;
    };
    let annotation = |name: &str| found["metadata"]["annotations"][name].as_str();
    let duration = annotation(LONGEST).and_then(|text| {
        let why = parse_duration_or_seconds(text).err()?;
        Some((LONGEST, format!("{text:?} {why}"), "2m"))
    });
    let strategies = annotation(STRATEGIES).and_then(|text| {
        let mut names = text.split(',').map(str::trim);
        let (name, why) = names.find_map(|name| Some((name, StrategyName::parse(name).err()?)))?;
        Some((STRATEGIES, format!("{name:?} {why}"), StrategyName::STICKY))
    });
    for (name, fault, example) in duration.into_iter().chain(strategies) {
        lines.push(CheckLine::warning(
            CHECK,
            format!("the annotation {name} of Namespace {namespace} refuses candidates: {fault}"),
            format!("kubectl annotate namespace {namespace} --overwrite {name}={example}"),
        ));
    }
}

/// The lack of that policy or of its binding.
async fn enforced(place: &CheckedPlace, name: &str) -> Result<Option<PolicyLack>, RequestError> {
    let lack = |text, fix| Ok(Some(PolicyLack { text, fix }));
    let Some(policy) = find(place, "validatingadmissionpolicies", name).await? else {
        return lack(
            format!("there is no ValidatingAdmissionPolicy {name}"),
            APPLY,
        );
    };
    if let Some(field) = difference(&expected(name), &policy["spec"], "spec") {
        let text =
            format!("the ValidatingAdmissionPolicy {name} is not that of this version, in {field}");
        return lack(text, APPLY);
    }
    let kind = "ValidatingAdmissionPolicyBinding";
    let Some(binding) = find(place, "validatingadmissionpolicybindings", name).await? else {
        return lack(format!("there is no {kind} {name}"), APPLY);
    };
    match unbound(&binding["spec"], name, place.namespace.as_deref()) {
        None => Ok(None),
        Some(of_binding) => lack(format!("the {kind} {name} {of_binding}"), BIND),
    }
}

/// The policy of that name in the manifests.
fn expected(name: &str) -> Value {
    let documents = MANIFESTS.iter().flat_map(|text| {
        let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
        documents.unwrap_or_default()
    });
    let mut policies = documents.filter(|object| object["kind"] == "ValidatingAdmissionPolicy");
    let policy = policies.find(|policy| policy["metadata"]["name"] == name);
    policy.map_or(Value::Null, |policy| policy["spec"].clone())
}

/// The first field that differs, but for those that the API server fills in.
fn difference(expected: &Value, found: &Value, path: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let known = expected.iter().find_map(|(name, value)| {
                let other = found.get(name).unwrap_or(&Value::Null);
                difference(value, other, &format!("{path}.{name}"))
            });
            known.or_else(|| {
                let mut more = found.iter().filter(|(name, value)| {
                    !expected.contains_key(*name) && !is_default(name, value)
                });
                more.next().map(|(name, _)| format!("{path}.{name}"))
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            let mut differences = pairs.filter_map(|(index, (expected, found))| {
                difference(expected, found, &format!("{path}[{index}]"))
            });
            differences.next()
        }
        _ => (expected != found).then(|| path.to_owned()),
    }
}

/// True for what the API server adds where nothing is said.
fn is_default(name: &str, value: &Value) -> bool {
    let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
    is_empty || (name == "matchPolicy" && value == "Equivalent")
}

/// The lack of a binding, for this namespace or for all: it must deny, and leave out no namespace but by name.
fn unbound(spec: &Value, policy: &str, namespace: Option<&str>) -> Option<String> {
    if spec["policyName"] != policy {
        return Some("binds another policy".to_owned());
    }
    let denies = spec["validationActions"]
        .as_array()
        .is_some_and(|actions| actions.iter().any(|action| action == "Deny"));
    if !denies {
        return Some("does not deny".to_owned());
    }
    let resources = spec["matchResources"].as_object();
    for (name, value) in resources.into_iter().flatten() {
        if name != "namespaceSelector" && !is_default(name, value) {
            return Some(format!("is limited by spec.matchResources.{name}"));
        }
    }
    if !spec["paramRef"].is_null() {
        return Some("is limited by spec.paramRef".to_owned());
    }
    let selector = &spec["matchResources"]["namespaceSelector"];
    if !selector["matchLabels"].is_null() {
        return Some("is limited to namespaces with labels".to_owned());
    }
    let expressions = selector["matchExpressions"].as_array();
    expressions.into_iter().flatten().find_map(|expression| {
        let values = expression["values"].as_array();
        let names: Vec<_> = values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let is_listed = namespace.map(|namespace| names.contains(&namespace));
        match (expression["operator"].as_str(), is_listed) {
            _ if expression["key"] != NAME => {
                Some("is limited to namespaces with labels".to_owned())
            }
            (Some("In"), Some(true)) | (Some("NotIn"), Some(false)) => None,
            (Some("NotIn"), None) if names == [SYSTEM_NAMESPACE] => None,
            (Some("In"), _) => Some(format!("is for the namespaces {} alone", names.join(", "))),
            _ => Some(format!("leaves out the namespaces {}", names.join(", "))),
        }
    })
}

async fn find(
    place: &CheckedPlace,
    resource: &'static str,
    name: &str,
) -> Result<Option<Value>, RequestError> {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}/{name}");
    match place.read(resource, (None, Some(name)), &path).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_policy_of_the_manifests_is_looked_for() {
        let found: usize = MANIFESTS
            .iter()
            .map(|text| text.matches("\nkind: ValidatingAdmissionPolicy\n").count())
            .sum();
        assert_eq!(found, POLICIES.len());
        for (name, _) in POLICIES {
            assert!(expected(name)["validations"].is_array(), "{name}");
        }
    }

    #[test]
    fn candidates_may_wish_for_every_strategy_of_ours() {
        let known = StrategyName::KNOWN.join(",");
        for name in ["elector-candidate-strategy", "elector-lease"] {
            let text = expected(name).to_string();
            assert!(text.contains(&format!("'{known}'")), "{name}");
        }
    }

    #[test]
    fn a_policy_differs_by_what_is_changed_and_not_by_what_a_server_fills_in() {
        let expected = expected("elector-lease");
        let differs_in = |change: fn(&mut Value), field: Option<&str>| {
            let mut found = expected.clone();
            found["matchConstraints"]["matchPolicy"] = json!("Equivalent");
            found["matchConstraints"]["objectSelector"] = json!({});
            change(&mut found);
            assert_eq!(difference(&expected, &found, "spec").as_deref(), field);
        };
        differs_in(|_| {}, None);
        differs_in(
            |found| found["validations"][3]["expression"] = json!("true"),
            Some("spec.validations[3].expression"),
        );
        differs_in(
            |found| drop(found["validations"].as_array_mut().unwrap().pop()),
            Some("spec.validations"),
        );
        differs_in(
            |found| found["failurePolicy"] = json!("Ignore"),
            Some("spec.failurePolicy"),
        );
        differs_in(
            |found| found["matchConstraints"]["matchPolicy"] = json!("Exact"),
            Some("spec.matchConstraints.matchPolicy"),
        );
        differs_in(
            |found| {
                let selector = json!({"matchLabels": {"judged": "yes"}});
                found["matchConstraints"]["objectSelector"] = selector;
            },
            Some("spec.matchConstraints.objectSelector"),
        );
        differs_in(|found| *found = Value::Null, Some("spec"));
    }

    #[test]
    fn a_binding_denies_and_leaves_out_no_namespace_that_is_checked() {
        let bound = |resources: Value| json!({"policyName": "p", "validationActions": ["Deny"], "matchResources": resources});
        let named = |operator: &str, values: &[&str]| {
            let expression = json!({"key": NAME, "operator": operator, "values": values});
            bound(json!({
                "namespaceSelector": {"matchExpressions": [expression]},
                "objectSelector": {}, "matchPolicy": "Equivalent",
            }))
        };
        let audit = json!({"policyName": "p", "validationActions": ["Audit", "Warn"]});
        let of_another = json!({"policyName": "q", "validationActions": ["Deny"]});
        let labelled = json!({"namespaceSelector": {"matchLabels": {"judged": "yes"}}});
        let narrowed = json!({"objectSelector": {"matchLabels": {"judged": "yes"}}});
        let system = named("NotIn", &["kube-system"]);
        let single = named("In", &["web", "elector-system"]);
        for (spec, namespace, lack) in [
            (&bound(Value::Null), None, None),
            (&audit, None, Some("does not deny")),
            (&of_another, None, Some("binds another policy")),
            (&system, None, None),
            (&system, Some("web"), None),
            (
                &system,
                Some("kube-system"),
                Some("leaves out the namespaces kube-system"),
            ),
            (&single, Some("web"), None),
            (
                &single,
                None,
                Some("is for the namespaces web, elector-system alone"),
            ),
            (
                &single,
                Some("shop"),
                Some("is for the namespaces web, elector-system alone"),
            ),
            (
                &named("NotIn", &["web"]),
                None,
                Some("leaves out the namespaces web"),
            ),
            (
                &bound(labelled),
                None,
                Some("is limited to namespaces with labels"),
            ),
            (
                &bound(narrowed),
                None,
                Some("is limited by spec.matchResources.objectSelector"),
            ),
        ] {
            let found = unbound(spec, "p", namespace);
            assert_eq!(found.as_deref(), lack, "{spec} {namespace:?}");
        }
    }
}
