//! `elector fence-policy`: the API server refuses writes with the token of a leader that has been replaced.

mod cells;
mod paused;

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Result, ensure};
use elector_api::annotation;
use elector_tests::rig::{Suite, Testbed, eventually, output_of};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::{GATE_OFF, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    let paused = paused::writes_with_its_old_token;
    shared.add("paused_leader_writes_with_its_old_token", 40, paused);
    let compared = cells::compared;
    shared.add("tokens_are_compared_with_lease_and_object", 15, compared);
    let name = "a_changed_fence_is_noticed";
    let mut own = suite.own(OURS, GATE_OFF);
    own.add_long(name, 1200, cells::changed);
}

/// The ConfigMap that the leaders write.
const OBJECT: &str = "state";

/// Puts the policies in place, for ConfigMaps and for writes of that account.
async fn fence(testbed: &Testbed, lease: &str, account: &str) -> Result<()> {
    let site = testbed.site();
    let (namespace, writer) = (testbed.namespace(), format!("--serviceaccount={account}"));
    let mut command = Command::new(&site.programs().elector);
    command.args(["fence-policy", "configmaps", "--lease", lease]);
    command.args(["--namespace", namespace, &writer]);
    let path = testbed.folder().join("fence.yaml");
    std::fs::write(&path, output_of(command).await?)?;
    site.apply("-f", &path).await
}

/// A write that the server does all of but storing it.
#[derive(Clone, Copy, Debug)]
struct Attempt<'a> {
    /// Of another object than the one that is there.
    creates: bool,
    token: Option<&'a str>,
}

// === impl Attempt ===

impl<'a> Attempt<'a> {
    const fn update(token: Option<&'a str>) -> Self {
        let creates = false;
        Self { creates, token }
    }
}

/// An update of the whole object with this token, or why a policy refuses it.
async fn update(testbed: &Testbed, by: &Client, token: &str) -> Result<Option<String>> {
    let path = format!("{}/{OBJECT}", config_maps(testbed));
    let body = config_map(OBJECT, Some(token));
    answer(by, Request::put(path).body(serde_json::to_vec(&body)?)?).await
}

/// Waits until the server accepts the write, or refuses it in words with these in them: policies and Leases reach it
/// through caches.
async fn until_answered(
    testbed: &Testbed,
    by: &Client,
    attempt: Attempt<'_>,
    refused: Option<&str>,
) -> Result<()> {
    let maps = config_maps(testbed);
    let ask = || async {
        let (request, name) = if attempt.creates {
            let path = format!("{maps}?dryRun=All");
            (Request::post(path), "another")
        } else {
            let path = format!("{maps}/{OBJECT}?dryRun=All");
            (Request::put(path), OBJECT)
        };
        let body = serde_json::to_vec(&config_map(name, attempt.token))?;
        let answer = answer(by, request.body(body)?).await?;
        let as_expected = match (&answer, refused) {
            (None, None) => true,
            (Some(why), Some(words)) => why.contains(words),
            _ => false,
        };
        ensure!(as_expected, "{attempt:?}: {answer:?}, and not {refused:?}");
        Ok(())
    };
    eventually(PROMPTLY, ask).await
}

/// `None` where the server accepts the write, or why a policy refuses it.
async fn answer(by: &Client, request: Request<Vec<u8>>) -> Result<Option<String>> {
    match by.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => {
            let (why, code) = (status.message.clone(), status.code);
            // Refusals by RBAC and validation are not tested here.
            ensure!(why.contains("ValidatingAdmissionPolicy"), "{code}: {why}");
            Ok(Some(why))
        }
        Err(error) => Err(error.into()),
    }
}

fn config_maps(testbed: &Testbed) -> String {
    format!("/api/v1/namespaces/{}/configmaps", testbed.namespace())
}

fn config_map(name: &str, token: Option<&str>) -> Value {
    let mut annotations = BTreeMap::new();
    annotations.extend(token.map(|token| (annotation::TOKEN, token)));
    json!({"metadata": {"name": name, "annotations": annotations}})
}

/// Makes the object, and lets all service accounts of the namespace write it.
async fn create_object(testbed: &Testbed) -> Result<()> {
    let namespace = testbed.namespace();
    let access = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "metadata": {"name": "state"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "update", "patch"]}],
    });
    let binding = json!({
        "metadata": {"name": "state"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "state"},
        "subjects": [{"kind": "Group", "name": format!("system:serviceaccounts:{namespace}"), "apiGroup": group}],
    });
    for (path, object) in [
        (format!("{access}/roles"), role),
        (format!("{access}/rolebindings"), binding),
    ] {
        let request = Request::post(path).body(serde_json::to_vec(&object)?)?;
        testbed.site().client().request::<Value>(request).await?;
    }
    create(testbed).await
}

/// Makes the object alone.
async fn create(testbed: &Testbed) -> Result<()> {
    let body = serde_json::to_vec(&config_map(OBJECT, None))?;
    let request = Request::post(config_maps(testbed)).body(body)?;
    testbed.site().client().request::<Value>(request).await?;
    Ok(())
}

/// The object as it is.
async fn object(testbed: &Testbed) -> Result<Value> {
    let path = format!("{}/{OBJECT}", config_maps(testbed));
    let request = Request::get(path).body(Vec::new())?;
    Ok(testbed.site().client().request(request).await?)
}
