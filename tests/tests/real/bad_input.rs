//! Faults from outside: servers, tokens, permissions, objects. One clear line each, and no other lease is affected.

mod permission;
mod program;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::{Lease, LeaseCandidate, parse_time};
use elector_protocol::{Identity, LeaseKey};
use elector_tests::rig::{ClusterMode, LONGEST_LEASE, Suite, Testbed, now};
use kube::api::PostParams;
use serde_json::json;

use self::program::{complaint, end, kubeconfig, start};
use crate::{GATE_OFF, MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("server_is_unreachable", 10, unreachable);
    shared.add("token_is_refused", 10, refused_token);
    shared.add("permission_to_watch_is_missing", 25, permission::unwatched);
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("permission_is_missing", 60, permission::missing);
    let mut modes = suite.shared(OURS, MODES);
    modes.add("objects_are_malformed", 45, malformed);
}

async fn unreachable(testbed: Arc<Testbed>) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let url = format!("https://127.0.0.1:{}", listener.local_addr()?.port());
    drop(listener);
    let real = testbed.site().url().to_owned();
    complain(&testbed, &url, |text| text.replace(&real, &url)).await
}

async fn refused_token(testbed: Arc<Testbed>) -> Result<()> {
    let expired = |line: &str| match line.split_once("token:") {
        Some((before, _)) => format!("{before}token: \"expired\"\n"),
        None => format!("{line}\n"),
    };
    complain(&testbed, "401", |text| text.lines().map(expired).collect()).await
}

/// Each program says what is wrong with that kubeconfig, and goes on; `explain` fails.
async fn complain(
    testbed: &Testbed,
    words: &str,
    change: impl FnOnce(String) -> String,
) -> Result<()> {
    let path = kubeconfig(testbed, "faulty", change)?;
    let candidate = [
        "candidate",
        "--lease=work",
        "--binary-version=1.0.0",
        "--",
        "sleep",
        "1000",
    ];
    for arguments in [&["run"][..], &candidate, &["explain"]] {
        let mut process = start(testbed, arguments[0], &path, arguments)?;
        complaint(&mut process, &[words]).await?;
        if arguments[0] == "explain" {
            let status = process.exit(PROMPTLY).await?;
            ensure!(!status.success(), "explain calls that a success");
        }
        end(process, 20).await?;
    }
    Ok(())
}

/// Everything that the server lets in and that makes no sense.
async fn malformed(testbed: Arc<Testbed>) -> Result<()> {
    let is_custom = testbed.site().mode() == ClusterMode::Custom;
    let end_of_time = parse_time("9999-12-31T23:59:59.999999Z")?;
    for (name, lease, renewed) in [
        ("no-such-name", "Not A Name!", now()),
        ("end-of-time", testbed.lease_name(), end_of_time),
    ] {
        let identity = Identity::new(name).context("an empty name")?;
        let key = LeaseKey::new(testbed.namespace(), lease);
        let mut candidate = LeaseCandidate::named(testbed.site().candidate_api(), &key, &identity);
        candidate.spec.binary_version = "0.0.1".to_owned();
        candidate.spec.emulation_version = "0.0.1".to_owned();
        candidate.spec.renew_time = Some(renewed);
        let candidate = candidate.with_strategy("OldestEmulationVersion");
        let (candidates, parameters) = (testbed.candidates(), PostParams::default());
        let created = candidates.create(&parameters, &candidate).await;
        let refused = name == "no-such-name" && is_custom;
        ensure!(created.is_err() == refused, "{name}: {created:?}");
    }
    let odd: Lease = serde_json::from_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "odd", "namespace": testbed.namespace(),
            "annotations": {"elector.dev/token": "none", "elector.dev/token-term": "-", "elector.dev/strategy": "/"},
        },
        "spec": {
            "holderIdentity": "\u{1f451} \n", "leaseDurationSeconds": 1, "leaseTransitions": i32::MAX,
            "renewTime": "9999-12-31T23:59:59.999999Z", "acquireTime": "0001-01-01T00:00:01.000000Z",
        },
    }))?;
    testbed.write(&odd).await?;

    let sane = testbed.candidate("sane").start()?;
    testbed.admit(&["odd"]).await?;
    let next = testbed.candidate("next").lease("odd").start()?;
    sane.leads(PROMPTLY).await?;
    next.leads(LONGEST_LEASE + PROMPTLY).await?;
    testbed.stays("sane", 3).await?;

    let log = fs::read_to_string(testbed.site().folder().join("elector.log"))?;
    let ours = log
        .lines()
        .filter(|line| line.contains(testbed.namespace()));
    let lines = ours.filter(|line| line.contains("Not A Name!")).count();
    // The server takes it into its own kind, and the elector refuses it once; the custom resource keeps it out.
    let expected = usize::from(!is_custom);
    ensure!(
        lines == expected,
        "{lines} lines about a lease that cannot exist, not {expected}"
    );
    ensure!(!log.contains("panicked"), "the elector panicked");
    Ok(())
}
