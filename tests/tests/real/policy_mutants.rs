//! Mutants of admission policies: one expression is changed at a time, on the API server, and some check must tell.
//!
//! ```text
//!   a policy with one change ──> a sentinel that is written after it is in force ──> the checks
//! ```

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_tests::policy_changes::changed;
use elector_tests::rig::{Testbed, eventually};
use futures::future::BoxFuture;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// The time until a change of a policy is in force.
const IN_FORCE: Duration = Duration::from_secs(30);

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A policy that refuses every Secret of the namespace in these words and a number.
const SENTINEL: &str = "mutant-sentinel";

/// A policy with one change.
struct PolicyMutant {
    /// The policy as it is.
    policy: Value,
    /// The list of expressions, and the number of this one in it.
    place: (&'static str, usize),
    expression: String,
    /// The change in words.
    change: String,
}

/// Plays each mutant of the policies of these names against `check`; `reset` puts in place what that needs, while no policy is
/// changed. Those that are not noticed are figures of the scenario.
pub(crate) async fn play_each(
    testbed: &Testbed,
    is_mutated: fn(&str) -> bool,
    reset: impl Fn() -> BoxFuture<'static, Result<()>>,
    check: impl Fn() -> BoxFuture<'static, Result<()>>,
) -> Result<()> {
    let (admin, namespace) = (testbed.site().client(), testbed.namespace());
    let began = Instant::now();
    reset().await?;
    check().await.context("without a mutant")?;
    let limit = 3 * began.elapsed() + IN_FORCE;
    bind_sentinel(admin, namespace).await?;
    let mutants = mutants(admin, is_mutated).await?;
    let (all, mut noticed, mut invalid, mut survivors) = (mutants.len(), 0, 0, Vec::new());
    for (mutant, number) in mutants.into_iter().zip(1..) {
        let words = mutant.named();
        is_in_force(admin, namespace, 0).await?;
        reset().await?;
        if !set(admin, &mutant.mutated()).await? {
            invalid += 1;
            continue;
        }
        is_in_force(admin, namespace, number).await?;
        let verdict = match timeout(limit, check()).await {
            Ok(Ok(())) => {
                survivors.push(words.clone());
                "survived".to_owned()
            }
            Ok(Err(error)) => {
                noticed += 1;
                let text = format!("{error:#}");
                text.lines().take(2).collect::<Vec<_>>().join(" ")
            }
            Err(_) => {
                noticed += 1;
                "the check did not end".to_owned()
            }
        };
        println!("{number} of {all}: {words}: {verdict}");
        set(admin, &mutant.policy).await?;
    }
    // Otherwise it would be what an earlier mutant left behind that was noticed.
    is_in_force(admin, namespace, 0).await?;
    reset().await?;
    check().await.context("after the mutants")?;
    testbed.amount("mutants", all.to_string());
    testbed.amount("refused by the API server", invalid.to_string());
    testbed.amount("noticed", noticed.to_string());
    testbed.amount("survived", survivors.len().to_string());
    for survivor in survivors {
        testbed.amount("survivor", format!("`{}`", survivor.replace('|', "\\|")));
    }
    Ok(())
}

/// Every mutant of every policy of these names.
async fn mutants(admin: &Client, is_mutated: fn(&str) -> bool) -> Result<Vec<PolicyMutant>> {
    let list: Value = admin
        .request(Request::get(POLICIES).body(Vec::new())?)
        .await?;
    let mut mutants = Vec::new();
    for policy in list["items"].as_array().context("no list of policies")? {
        if !policy["metadata"]["name"].as_str().is_some_and(is_mutated) {
            continue;
        }
        for list in ["matchConditions", "variables", "validations"] {
            let expressions = policy["spec"][list].as_array().into_iter().flatten();
            for (index, each) in expressions.enumerate() {
                let expression = each["expression"].as_str().unwrap_or_default();
                let mutated = changed(expression).into_iter();
                mutants.extend(mutated.map(|(expression, change)| PolicyMutant {
                    policy: policy.clone(),
                    place: (list, index),
                    expression,
                    change,
                }));
            }
        }
    }
    ensure!(!mutants.is_empty(), "the API server has no such policy");
    Ok(mutants)
}

async fn bind_sentinel(admin: &Client, namespace: &str) -> Result<()> {
    let binding = json!({
        "metadata": {"name": SENTINEL},
        "spec": {
            "policyName": SENTINEL, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        },
    });
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"],
    });
    let policy = json!({
        "metadata": {"name": SENTINEL},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "sentinel 0"}],
        },
    });
    for (path, object) in [(POLICIES, policy), (BINDINGS, binding)] {
        let request = Request::post(path).body(serde_json::to_vec(&object)?)?;
        admin.request::<Value>(request).await?;
    }
    Ok(())
}

/// Changes the sentinel, and waits until the API server knows: then it knows every policy that was written before.
async fn is_in_force(admin: &Client, namespace: &str, number: usize) -> Result<()> {
    let words = format!("sentinel {number}");
    let refusing = [json!({"expression": "false", "message": words})];
    let policy = json!({"metadata": {"name": SENTINEL}, "spec": {"validations": refusing}});
    ensure!(set(admin, &policy).await?, "the sentinel is refused");
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets?dryRun=All");
    let secret = serde_json::to_vec(&json!({"metadata": {"name": "refused"}}))?;
    let ask = || async {
        let request = Request::post(&secrets).body(secret.clone())?;
        match admin.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.message.ends_with(&words) => Ok(()),
            other => bail!("{other:?}"),
        }
    };
    eventually(IN_FORCE, ask).await
}

/// Gives a policy this content; false where the API server finds that it is none.
async fn set(admin: &Client, policy: &Value) -> Result<bool> {
    let name = policy["metadata"]["name"].as_str().unwrap_or_default();
    let request = Request::patch(format!("{POLICIES}/{name}"))
        .header("Content-Type", "application/merge-patch+json")
        .body(serde_json::to_vec(&json!({"spec": policy["spec"]}))?)?;
    match admin.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(false),
        answer => Ok(answer.map(|_| true)?),
    }
}

// === impl PolicyMutant ===

impl PolicyMutant {
    /// The policy, its expression, which is a variable by its name or a validation by its number, and the change.
    fn named(&self) -> String {
        let (list, index) = self.place;
        let policy = self.policy["metadata"]["name"].as_str();
        let name = self.policy["spec"][list][index]["name"].as_str();
        let name = name.map_or_else(|| format!("{list} {}", index + 1), str::to_owned);
        format!("{} {name}: {}", policy.unwrap_or_default(), self.change)
    }

    /// The policy with the change.
    fn mutated(&self) -> Value {
        let mut policy = self.policy.clone();
        let (list, index) = self.place;
        policy["spec"][list][index]["expression"] = json!(self.expression);
        policy
    }
}
