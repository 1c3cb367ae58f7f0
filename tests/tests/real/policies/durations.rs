//! The longest lease duration that a candidate may announce and write, and a Namespace's say in it.

use anyhow::{Context as _, Result, ensure};
use elector_api::CandidateApi;
use elector_tests::rig::Testbed;
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::accounts::{Accounts, HOLDER};
use super::candidate_changes::candidate;
use super::lease_changes::{TRUE_TOKEN, term, unheld};
use super::requests::{Collection, ObjectWrite, put, until};

/// The annotation of the Namespace, and announcements that are accepted and refused then. The first of each kind shows
/// that the API server has seen the annotation.
const BOUNDS: &[(Option<&str>, &[&str], &[&str])] = &[
    (
        None,
        &["60s", "60", "1m", "1s", "1000ms", "0.5m", "59s999ms"],
        &[
            "61s", "61", "1m0.001s", "999ms", "0", "0s", "-5s", "+5s", "soon", "", "s", "1h",
            "999999h", "1e1s",
        ],
    ),
    (Some("2m"), &["2m", "120"], &["121s", "999ms", "soon"]),
    (Some("90"), &["90s"], &["91s", "2m"]),
    // One hour is what an elector counts at most.
    (Some("2h"), &["1h"], &["61m"]),
    (Some("long"), &[], &["15s", "1s"]),
];

/// Plays every bound; how many announcements that are.
pub(super) async fn play(
    testbed: &Testbed,
    accounts: &Accounts,
    api: CandidateApi,
) -> Result<usize> {
    let (admin, namespace) = (testbed.site().client(), testbed.namespace());
    let collection = Collection::candidates(api, namespace);
    let author = &accounts.of("its holder")?.client;
    let mut announcements = 0;
    for (longest, accepted, refused) in BOUNDS {
        annotate(admin, namespace, *longest).await?;
        let rows = accepted.iter().map(|text| (text, true));
        for (text, expected) in rows.chain(refused.iter().map(|text| (text, false))) {
            let write = announcing(text);
            let is_in_force = until(author, &collection, &write, expected).await;
            is_in_force.with_context(|| {
                format!("{text:?} in {api} where the Namespace says {longest:?}")
            })?;
            announcements += 1;
        }
    }
    // An older announcement does not keep a candidate from acking when the bound has become lower.
    annotate(admin, namespace, Some("1h")).await?;
    until(author, &collection, &announcing("45m"), true).await?;
    let object = collection.reset(admin, &announcing("45m").object).await?;
    annotate(admin, namespace, None).await?;
    let mut ack = put(Some(object), renew);
    let mut longer = ack.clone();
    longer.object["metadata"]["annotations"]["elector.dev/lease-duration"] = json!("46m");
    until(author, &collection, &longer, false).await?;
    let answer = collection.send(author, &ack, true).await?;
    let holds = answer.is_accepted();
    ensure!(holds, "an ack of an older announcement: {answer:?}");
    ack.object["metadata"]["annotations"] = json!({});
    until(author, &collection, &ack, true).await?;
    collection.remove(admin, HOLDER).await?;
    Ok(announcements)
}

/// The annotation of the Namespace, and durations of an acquisition, in seconds, that are accepted and refused then.
/// The first of each kind shows that the API server has seen the annotation.
const HELD_FOR: &[(Option<&str>, &[i64], &[i64])] = &[
    (None, &[60], &[61, 3600]),
    (Some("2m"), &[120, 1], &[121]),
    (Some("90"), &[90], &[91]),
    (Some("2h"), &[3600], &[3601]),
    // Below a minute it bounds what candidates announce, and what cannot be read raises nothing.
    (Some("30s"), &[60], &[61]),
    (Some("long"), &[60], &[61]),
];

/// Plays every bound of the duration in a Lease; how many acquisitions that are.
pub(super) async fn play_leases(testbed: &Testbed, accounts: &Accounts) -> Result<usize> {
    let (admin, namespace) = (testbed.site().client(), testbed.namespace());
    let collection = Collection::leases(namespace);
    let pod = accounts.of("another Pod")?;
    let before = unheld().context("a Lease that nobody holds")?;
    let before = collection.reset(admin, &before).await?;
    let acquiring = |seconds| {
        term(
            Some(before.clone()),
            pod.identity,
            seconds,
            Some(TRUE_TOKEN),
        )
    };
    let mut acquisitions = 0;
    for (longest, accepted, refused) in HELD_FOR {
        annotate(admin, namespace, *longest).await?;
        let rows = accepted.iter().map(|seconds| (seconds, true));
        for (seconds, expected) in rows.chain(refused.iter().map(|seconds| (seconds, false))) {
            let is_in_force = until(&pod.client, &collection, &acquiring(*seconds), expected).await;
            is_in_force.with_context(|| {
                format!("{seconds} s in a Lease where the Namespace says {longest:?}")
            })?;
            acquisitions += 1;
        }
    }
    // A leader goes on when the bound has become lower, and its successor does not.
    annotate(admin, namespace, Some("2m")).await?;
    let write = acquiring(120);
    until(&pod.client, &collection, &write, true).await?;
    let mut led = write.object;
    let annotations = led["metadata"]["annotations"].take();
    led["metadata"] = json!({"name": "work", "annotations": annotations});
    let led = collection.reset(admin, &led).await?;
    annotate(admin, namespace, None).await?;
    until(
        &pod.client,
        &collection,
        &term(Some(led.clone()), pod.identity, 120, Some(TRUE_TOKEN)),
        false,
    )
    .await?;
    let renewal = put(Some(led), renew);
    let answer = collection.send(&pod.client, &renewal, true).await?;
    let holds = answer.is_accepted();
    ensure!(holds, "a renewal of an older term: {answer:?}");
    collection.remove(admin, "work").await?;
    Ok(acquisitions)
}

fn renew(object: &mut Value) {
    object["spec"]["renewTime"] = json!("2026-01-01T00:00:09.123456Z");
}

fn announcing(text: &str) -> ObjectWrite {
    let mut object = candidate(HOLDER);
    object["metadata"]["annotations"] = json!({"elector.dev/lease-duration": text});
    ObjectWrite::post(object)
}

async fn annotate(admin: &Client, namespace: &str, longest: Option<&str>) -> Result<()> {
    annotate_namespace(admin, namespace, "elector.dev/max-lease-duration", longest).await
}

/// Sets an annotation of a Namespace, or takes it off.
pub(super) async fn annotate_namespace(
    admin: &Client,
    namespace: &str,
    name: &str,
    value: Option<&str>,
) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {name: value}}});
    let request = Request::patch(format!("/api/v1/namespaces/{namespace}"))
        .header("Content-Type", "application/merge-patch+json")
        .body(serde_json::to_vec(&patch)?)?;
    admin
        .request::<Value>(request)
        .await
        .map(drop)
        .context("annotate the Namespace")
}
