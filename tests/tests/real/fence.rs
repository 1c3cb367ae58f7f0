//! `elector fence-policy`: the API server refuses writes with the token of a leader that has been replaced.

mod cells;
mod paused;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::annotation;
use elector_tests::rig::{ClusterChoice, ClusterMode, Suite, Testbed};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "paused_leader_writes_with_its_old_token",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(40),
        |testbed| Box::pin(paused::writes_with_its_old_token(testbed)),
    );
    suite.add(
        "tokens_are_compared_with_lease_and_object",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(15),
        |testbed| Box::pin(cells::compared(testbed)),
    );
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
    let output = spawn_blocking(move || command.output()).await??;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = testbed.folder().join("fence.yaml");
    std::fs::write(&path, output.stdout)?;
    site.apply("-f", &path).await
}

/// A write that the server does all of but storing it.
#[derive(Clone, Copy, Debug)]
struct Attempt<'a> {
    /// Of another object than the one that is there.
    creates: bool,
    token: Option<&'a str>,
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
    let deadline = Instant::now() + PROMPTLY;
    let maps = config_maps(testbed);
    loop {
        let request = if attempt.creates {
            let body = config_map("another", attempt.token);
            Request::post(format!("{maps}?dryRun=All")).body(serde_json::to_vec(&body)?)?
        } else {
            let body = config_map(OBJECT, attempt.token);
            Request::put(format!("{maps}/{OBJECT}?dryRun=All")).body(serde_json::to_vec(&body)?)?
        };
        let answer = answer(by, request).await?;
        let as_expected = match (&answer, refused) {
            (None, None) => true,
            (Some(why), Some(words)) => why.contains(words),
            _ => false,
        };
        if as_expected {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{attempt:?}: {answer:?}, and not {refused:?}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}

/// `None` where the server accepts the write, or why a policy refuses it.
async fn answer(by: &Client, request: Request<Vec<u8>>) -> Result<Option<String>> {
    match by.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => {
            let why = status.message.clone();
            // Refusals by RBAC and validation are not tested here.
            ensure!(
                why.contains("ValidatingAdmissionPolicy"),
                "{}: {why}",
                status.code
            );
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
    let (client, access) = (
        testbed.site().client(),
        "/apis/rbac.authorization.k8s.io/v1",
    );
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
        (format!("{access}/namespaces/{namespace}/roles"), role),
        (
            format!("{access}/namespaces/{namespace}/rolebindings"),
            binding,
        ),
        (config_maps(testbed), config_map(OBJECT, None)),
    ] {
        create(client, &path, &object).await?;
    }
    Ok(())
}

async fn create(admin: &Client, path: &str, object: &Value) -> Result<()> {
    let request = Request::post(path).body(serde_json::to_vec(object)?)?;
    admin.request::<Value>(request).await?;
    Ok(())
}

/// The object as it is.
async fn object(testbed: &Testbed) -> Result<Value> {
    let path = format!("{}/{OBJECT}", config_maps(testbed));
    let request = Request::get(path).body(Vec::new())?;
    Ok(testbed.site().client().request(request).await?)
}
