//! The check that the admission policies are in force.

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
];

const CHECK: &str = "policies";
const APPLY: &str = "kubectl apply -k manifests/components/policies";

/// Looks for each. Whether any is in force.
pub(super) async fn check(place: &CheckedPlace, lines: &mut Vec<CheckLine>) -> bool {
    let mut in_force = 0;
    for (name, about) in POLICIES {
        match enforced(place, name).await {
            Ok(None) => in_force += 1,
            Ok(Some(lack)) => lines.push(CheckLine::warning(
                CHECK,
                format!("{lack}, so the API server does not restrict {about}"),
                APPLY,
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
    in_force > 0
}

/// The lack that keeps a policy unenforced.
async fn enforced(place: &CheckedPlace, name: &str) -> Result<Option<String>, RequestError> {
    let policy = find(place, "validatingadmissionpolicies", name).await?;
    if policy.is_none() {
        return Ok(Some(format!(
            "there is no ValidatingAdmissionPolicy {name}"
        )));
    }
    let Some(binding) = find(place, "validatingadmissionpolicybindings", name).await? else {
        let text = format!("there is no ValidatingAdmissionPolicyBinding {name}");
        return Ok(Some(text));
    };
    let actions = binding["spec"]["validationActions"].as_array();
    let denies = actions.is_some_and(|actions| actions.iter().any(|action| action == "Deny"));
    Ok((!denies).then(|| format!("the ValidatingAdmissionPolicyBinding {name} does not deny")))
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
