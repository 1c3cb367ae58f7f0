//! The checks before an installation: whether the cluster lets an elector in, and what it needs for that.

use elector_api::CandidateApi;
use elector_runtime::{Cause, RequestError};
use serde_json::{Value, json};

use super::line::CheckLine;
use super::place::CheckedPlace;
use super::right::{Right, missing};

/// The kinds that an overlay creates outside of namespaces, which take an administrator.
const INSTALLED: [(&str, &str); 7] = [
    ("", "namespaces"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
];

const PRIORITY_CLASS: &str = "system-cluster-critical";

/// The check of the cluster's own admission of Pods.
const PODS: &str = "pods";
/// The check of the rights of the caller.
const INSTALLER: &str = "installer";

/// Looks at all that an installation meets.
pub(super) async fn check(
    place: &CheckedPlace,
    api: Option<CandidateApi>,
    lines: &mut Vec<CheckLine>,
) {
    overlay(api, lines);
    served_policies(place, lines).await;
    priority_level(place, lines).await;
    installer(place, lines).await;
    admission(place, lines).await;
}

/// The overlay for the cluster as it is. Before an installation it is no error that no LeaseCandidates are served.
fn overlay(api: Option<CandidateApi>, lines: &mut Vec<CheckLine>) {
    let text = match api {
        Some(api) if api.is_native() => format!(
            "{} is served: the overlay native fits, and replace-builtin where the feature gate \
             CoordinatedLeaderElection is on",
            api.api_version()
        ),
        Some(_) => "the definition of the custom resource is there already: the overlay crd fits"
            .to_owned(),
        None => "no LeaseCandidates are served yet: the overlay crd fits, and brings them along"
            .to_owned(),
    };
    lines.push(CheckLine::ok("api", text));
}

async fn served_policies(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    const CHECK: &str = "policies";
    let path = "/apis/admissionregistration.k8s.io/v1";
    let read = place.find::<Value>(
        "the API",
        (None, Some("admissionregistration.k8s.io/v1")),
        path,
    );
    let names_them = |document: &Value| {
        let resources = document["resources"].as_array();
        let mut resources = resources.into_iter().flatten();
        resources.any(|resource| resource["name"] == "validatingadmissionpolicies")
    };
    lines.push(match read.await {
        Ok(Some(document)) if names_them(&document) => {
            CheckLine::ok(CHECK, "the server has validating admission policies")
        }
        Ok(_) => CheckLine::error(
            CHECK,
            "the server has no validating admission policies, by which the overlays say who may write what",
            "serve admissionregistration.k8s.io/v1, which Kubernetes does from 1.30 on unless --runtime-config turns it off",
        ),
        Err(error) => CheckLine::warning(CHECK, format!("failed to {error}"), format!("kubectl get --raw {path}")),
    });
}

async fn priority_level(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    const CHECK: &str = "availability";
    let name = "leader-election";
    let resource = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";
    let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/{name}");
    let read = place
        .find::<Value>(resource, (None, Some(name)), &path)
        .await;
    lines.push(match read {
        Ok(Some(_)) => CheckLine::ok(CHECK, format!("the server has the priority level {name}")),
        Ok(None) => CheckLine::warning(
            CHECK,
            format!("the server has no priority level {name}, so that the FlowSchema elector is without effect"),
            "kubectl get prioritylevelconfigurations, and name one of these in the FlowSchema",
        ),
        Err(error) => CheckLine::warning(
            CHECK,
            format!("failed to {error}"),
            format!("use an account with this permission: kubectl get prioritylevelconfiguration {name}"),
        ),
    });
}

/// The rights of the caller to create what an overlay has.
async fn installer(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let namespace = Some(place.elector_namespace.clone());
    let create = |group, resource, namespace| Right {
        verb: "create",
        group,
        resource,
        namespace,
        name: None,
    };
    let rights = INSTALLED.map(|(group, resource)| create(group, resource, None));
    let deployment = create("apps", "deployments", namespace);
    let rights = [&rights[..], &[deployment]].concat();
    lines.push(match missing(place, None, &rights).await {
        Ok(lack) if lack.is_empty() => CheckLine::ok(
            INSTALLER,
            "you have permission to create what an overlay has",
        ),
        Ok(lack) => CheckLine::error(
            INSTALLER,
            format!("you lack the permission to {}", lack.join(", ")),
            "have an administrator of the cluster apply the overlay",
        ),
        Err(error) => CheckLine::warning(
            INSTALLER,
            format!("failed to {error}"),
            "kubectl auth can-i --list",
        ),
    });
}

/// Asks for a Pod like the elector's by a dry run: quotas for its priority class, the PodSecurity of the namespace, the
/// SecurityContextConstraints of OpenShift and other policies of the cluster judge it.
async fn admission(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let wanted = place.elector_namespace.as_str();
    let key = (None, Some(wanted));
    let path = format!("/api/v1/namespaces/{wanted}");
    let namespace = match place.find::<Value>("namespaces", key, &path).await {
        Ok(Some(_)) => wanted,
        // The quota of a priority class is a matter of the whole cluster, so another namespace tells it too.
        _ => "default",
    };
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let asked = place.ask::<Value>("pods", &path, &pod(namespace)).await;
    lines.push(match asked {
        Ok(_) => CheckLine::ok(
            PODS,
            format!("a Pod of the priority class {PRIORITY_CLASS}, as the elector's, is admitted in {namespace}, by a dry run"),
        ),
        Err(error) => refused(namespace, &error),
    });
}

fn pod(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "elector-check", "namespace": namespace},
        "spec": {
            "priorityClassName": PRIORITY_CLASS,
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "elector", "image": "elector",
                "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "privileged": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    })
}

/// The line on a Pod that is refused, by what refused it.
fn refused(namespace: &str, error: &RequestError) -> CheckLine {
    let said = match &error.cause {
        Cause::Forbidden(message) => message.as_str(),
        Cause::Status { message, .. } => message.as_str(),
        _ => "",
    };
    let text =
        format!("a Pod like the elector's is not admitted in {namespace}, by a dry run: {said}");
    if said.contains("insufficient quota to match these scopes") {
        let fix = format!(
            "the cluster limits {PRIORITY_CLASS} to namespaces with a quota for it, as GKE does: a ResourceQuota in \
             {namespace} with the scopeSelector PriorityClass In [{PRIORITY_CLASS}]"
        );
        return CheckLine::error(PODS, text, fix);
    }
    if said.contains("exceeded quota") || said.contains("failed quota") {
        return CheckLine::error(PODS, text, "raise the ResourceQuota that is named");
    }
    if said.contains("no PriorityClass with name") {
        let fix = "kube-apiserver makes this priority class itself: look for what has deleted it";
        return CheckLine::error(PODS, text, fix);
    }
    if said.contains("security context constraint") {
        let fix = "let the elector's Pods use the SecurityContextConstraints restricted-v2, without a fixed runAsUser";
        return CheckLine::error(PODS, text, fix);
    }
    if said.contains("violates PodSecurity") {
        let fix =
            "the Pods fit the level restricted: look at the version that the namespace asks for";
        return CheckLine::error(PODS, text, fix);
    }
    if error.is_refusal_of_rights() || said.is_empty() {
        let fix = "ask as an account that may create Pods there, with --as";
        return CheckLine::warning(PODS, format!("failed to {error}"), fix);
    }
    // A policy of the cluster's own, of which nothing is known here.
    CheckLine::error(
        PODS,
        text,
        "have the policy that is named let Pods of this kind in",
    )
}

#[cfg(test)]
mod tests {
    use elector_runtime::{Target, Verb};

    use super::*;
    use crate::kubectl::check::line::CheckLevel;

    /// Texts as the admission code of Kubernetes 1.36 and of OpenShift 4 writes them.
    #[test]
    fn each_refusal_of_a_pod_has_its_remedy() {
        let error = |message: &str| RequestError {
            target: Box::new(Target {
                verb: Verb::Create,
                resource: "pods".into(),
                namespace: None,
                name: None,
            }),
            url: "https://script".into(),
            cause: Cause::Forbidden(message.to_owned()),
        };
        for (said, level, fix) in [
            (
                "pods \"elector-check\" is forbidden: insufficient quota to match these scopes: [{PriorityClass In \
                 [system-node-critical system-cluster-critical]}]",
                CheckLevel::Error,
                "a ResourceQuota in elector-system with the scopeSelector",
            ),
            (
                "pods \"elector-check\" is forbidden: exceeded quota: critical, requested: pods=1, used: pods=2, limited: pods=2",
                CheckLevel::Error,
                "raise the ResourceQuota",
            ),
            (
                "pods \"elector-check\" is forbidden: no PriorityClass with name system-cluster-critical was found",
                CheckLevel::Error,
                "has deleted it",
            ),
            (
                "pods \"elector-check\" is forbidden: unable to validate against any security context constraint: []",
                CheckLevel::Error,
                "restricted-v2",
            ),
            (
                "pods \"elector-check\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile",
                CheckLevel::Error,
                "the level restricted",
            ),
            (
                "pods is forbidden: User \"ada\" cannot create resource \"pods\" in API group \"\" in the namespace \"x\"",
                CheckLevel::Warning,
                "with --as",
            ),
            (
                "admission webhook \"validate.kyverno.svc\" denied the request: no digest",
                CheckLevel::Error,
                "the policy that is named",
            ),
        ] {
            let line = refused("elector-system", &error(said));
            assert_eq!(line.level, level, "{line:?}");
            assert!(line.fix.as_ref().unwrap().contains(fix), "{line:?}");
        }
    }
}
