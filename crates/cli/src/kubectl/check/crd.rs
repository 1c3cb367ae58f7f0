//! The check that the definition of the custom resource is this version's.

use elector_api::CANDIDATE_CRD;
use serde_json::Value;

use super::line::CheckLine;
use super::place::CheckedPlace;

const CHECK: &str = "crd";
const NAME: &str = "leasecandidates.elector.dev";
const APPLY: &str =
    "apply the overlay crd, or upgrade the chart with mode=crd; candidates stay as they are";

/// Compares it with the one that this version knows.
pub(super) async fn check(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let resource = "customresourcedefinitions.apiextensions.k8s.io";
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}");
    let read = place.find(resource, (None, Some(NAME)), &path).await;
    lines.push(match read {
        Ok(Some(definition)) => judge(&definition),
        // The API is served by something else, an aggregated server for instance.
        Ok(None) => CheckLine::warning(CHECK, format!("there is no definition {NAME}"), APPLY),
        Err(error) => CheckLine::warning(
            CHECK,
            format!("failed to {error}"),
            format!("use an account with this permission: kubectl get crd {NAME}"),
        ),
    });
}

fn judge(definition: &Value) -> CheckLine {
    if let Some(since) = definition["metadata"]["deletionTimestamp"].as_str() {
        return CheckLine::error(
            CHECK,
            format!("the definition {NAME} is being deleted since {since}, with all candidates"),
            "see which finalizers hold candidates up: kubectl get leasecandidates.elector.dev -A -o yaml; then apply the \
             overlay crd again",
        );
    }
    let conditions = definition["status"]["conditions"].as_array();
    let is = |kind: &str, status: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|each| each["type"] == kind && each["status"] == status)
    };
    if is("NonStructuralSchema", "True") || is("NamesAccepted", "False") {
        return CheckLine::error(
            CHECK,
            format!("the server does not accept the definition {NAME}"),
            format!("kubectl describe crd {NAME}; then {APPLY}"),
        );
    }
    let known: Value = serde_json::from_str(CANDIDATE_CRD).unwrap_or_default();
    match lack(&known["spec"], &definition["spec"], "spec") {
        None => CheckLine::ok(CHECK, format!("the definition {NAME} is this version's")),
        Some(place) => CheckLine::warning(
            CHECK,
            format!("the definition {NAME} is another version's: {place} differs"),
            APPLY,
        ),
    }
}

/// The first place where something of `known` is missing from `found`, or another. A server adds defaults of its own.
fn lack(known: &Value, found: &Value, place: &str) -> Option<String> {
    match (known, found) {
        (Value::Object(known), Value::Object(found)) => known.iter().find_map(|(name, value)| {
            let place = format!("{place}.{name}");
            let found = found.get(name).unwrap_or(&Value::Null);
            lack(value, found, &place)
        }),
        (Value::Array(known), Value::Array(found)) if known.len() == found.len() => {
            let mut pairs = known.iter().zip(found).enumerate();
            pairs.find_map(|(index, (known, found))| {
                lack(known, found, &format!("{place}[{index}]"))
            })
        }
        (known, found) => (known != found).then(|| place.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_is_current_with_what_a_server_adds_and_not_without_a_rule() {
        let mut served: Value = serde_json::from_str(CANDIDATE_CRD).unwrap();
        served["spec"]["conversion"] = json!({"strategy": "None"});
        served["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        assert_eq!(judge(&served).fix, None);

        let mut older = served.clone();
        let schema = &mut older["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let schema = schema["properties"]["spec"].as_object_mut().unwrap();
        assert!(schema.remove("properties").is_some());
        let line = judge(&older);
        let place = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties differs";
        assert!(line.result.ends_with(place), "{}", line.result);

        served["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(
            judge(&served)
                .result
                .contains("is being deleted since 2026-01-01")
        );
    }
}
