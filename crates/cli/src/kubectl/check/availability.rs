//! The check of what keeps electors there, and their requests ahead of others.

use serde_json::Value;

use super::line::CheckLine;
use super::place::CheckedPlace;

const CHECK: &str = "availability";
const APPLY: &str = "apply the overlay of this cluster, or upgrade the chart";

/// Looks at the FlowSchema and at the disruption budget of the electors.
pub(super) async fn check(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let before = lines.len();
    flow_schema(place, lines).await;
    disruption_budget(place, lines).await;
    if lines.len() == before {
        let text = "electors have a priority level of the API server and a disruption budget";
        lines.push(CheckLine::ok(CHECK, text));
    }
}

async fn flow_schema(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let resource = "flowschemas.flowcontrol.apiserver.k8s.io";
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/elector";
    let read = place
        .find::<Value>(resource, (None, Some("elector")), path)
        .await;
    lines.extend(match read {
        Ok(Some(schema)) => judge_flow_schema(&schema),
        Ok(None) => Some(CheckLine::warning(
            CHECK,
            "there is no FlowSchema elector: a busy API server serves electors after other service accounts' load",
            APPLY,
        )),
        Err(error) => Some(CheckLine::warning(
            CHECK,
            format!("failed to {error}"),
            "use an account with this permission: kubectl get flowschema elector",
        )),
    });
}

fn judge_flow_schema(schema: &Value) -> Option<CheckLine> {
    let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str();
    let conditions = schema["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let is_dangling = conditions.any(|each| each["type"] == "Dangling" && each["status"] == "True");
    is_dangling.then(|| {
        CheckLine::warning(
            CHECK,
            format!(
                "the FlowSchema elector is without effect: there is no priority level {}",
                level.unwrap_or_default()
            ),
            "kubectl get prioritylevelconfigurations: name one of these in it; kube-apiserver makes leader-election itself",
        )
    })
}

async fn disruption_budget(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let namespace = place.elector_namespace.as_str();
    let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/elector");
    let key = (Some(namespace), Some("elector"));
    let resource = "poddisruptionbudgets.policy";
    lines.extend(match place.find::<Value>(resource, key, &path).await {
        Ok(Some(budget)) => judge_budget(&budget, namespace),
        Ok(None) => Some(CheckLine::warning(
            CHECK,
            format!("there is no PodDisruptionBudget {namespace}/elector: a drain may evict all electors at once"),
            APPLY,
        )),
        Err(error) => Some(CheckLine::warning(
            CHECK,
            format!("failed to {error}"),
            format!("use an account with this permission: kubectl -n {namespace} get pdb elector"),
        )),
    });
}

/// A budget that lets no Pod go holds up each drain of a node.
fn judge_budget(budget: &Value, namespace: &str) -> Option<CheckLine> {
    let status = &budget["status"];
    let allowed = status["disruptionsAllowed"].as_i64()?;
    let expected = status["expectedPods"].as_i64().unwrap_or_default();
    (allowed == 0 && expected > 0).then(|| {
        CheckLine::warning(
            CHECK,
            format!("the PodDisruptionBudget {namespace}/elector lets none of {expected} electors be evicted"),
            format!("see which is not ready: kubectl -n {namespace} get pods; a drain waits for it"),
        )
        .awaited()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flow_schema_without_its_level_and_a_budget_without_room_are_warnings() {
        let schema = |status: &str| {
            judge_flow_schema(&json!({
                "spec": {"priorityLevelConfiguration": {"name": "leader-election"}},
                "status": {"conditions": [{"type": "Dangling", "status": status}]},
            }))
        };
        assert_eq!(schema("False"), None);
        let dangling = schema("True").unwrap();
        assert!(
            dangling
                .result
                .ends_with("no priority level leader-election")
        );

        let budget = |allowed: i64, expected: i64| {
            let status = json!({"disruptionsAllowed": allowed, "expectedPods": expected});
            judge_budget(&json!({"status": status}), "elector-system")
        };
        assert_eq!(budget(1, 2), None);
        assert_eq!(budget(0, 0), None);
        assert!(budget(0, 2).unwrap().result.contains("none of 2 electors"));
    }
}
