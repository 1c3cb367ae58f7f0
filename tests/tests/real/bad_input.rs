//! Faults from outside: servers, tokens, permissions, objects. One clear line each, and no other lease is affected.

mod permission;
mod program;
mod unwatched;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::{Lease, LeaseCandidate, parse_time};
use elector_protocol::{Identity, LeaseKey};
use elector_tests::rig::{ClusterChoice, ClusterMode, LONGEST_LEASE, Suite, Testbed, now};
use kube::api::PostParams;
use serde_json::{Value, json};

use self::program::{complaint, end, kubeconfig, start};
use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let off = &[ClusterMode::GateOff];
    let mut add = |name, cluster_choice, modes: &[ClusterMode], seconds, run| {
        suite.add(
            name,
            cluster_choice,
            OURS,
            modes,
            Duration::from_secs(seconds),
            run,
        );
    };
    add(
        "server_is_unreachable",
        ClusterChoice::Shared,
        off,
        10,
        |testbed| Box::pin(unreachable(testbed)),
    );
    add(
        "token_is_refused",
        ClusterChoice::Shared,
        off,
        10,
        |testbed| Box::pin(refused_token(testbed)),
    );
    add(
        "permission_is_missing",
        ClusterChoice::Own,
        off,
        60,
        |testbed| Box::pin(permission::missing(testbed)),
    );
    add(
        "permission_to_watch_is_missing",
        ClusterChoice::Shared,
        off,
        25,
        |testbed| Box::pin(unwatched::lists(testbed)),
    );
    add(
        "objects_are_malformed",
        ClusterChoice::Shared,
        MODES,
        45,
        |testbed| Box::pin(malformed(testbed)),
    );
    add(
        "version_is_malformed",
        ClusterChoice::Shared,
        off,
        5,
        |testbed| Box::pin(malformed_version(testbed)),
    );
}

async fn unreachable(testbed: Arc<Testbed>) -> Result<()> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let url = format!("https://127.0.0.1:{port}");
    let real = testbed.site().url().to_owned();
    let path = kubeconfig(&testbed, "unreachable", |text| text.replace(&real, &url))?;
    let mut elector = start(&testbed, "elector", &path, &["run"])?;
    let mut candidate = start(&testbed, "candidate", &path, CANDIDATE)?;
    let mut explain = start(&testbed, "explain", &path, &["explain"])?;
    for process in [&mut elector, &mut candidate, &mut explain] {
        complaint(process, &[&url]).await?;
    }
    ensure!(
        !explain.exit(PROMPTLY).await?.success(),
        "explain calls that a success"
    );
    for process in [elector, candidate, explain] {
        end(process, 20).await?;
    }
    Ok(())
}

async fn refused_token(testbed: Arc<Testbed>) -> Result<()> {
    let path = kubeconfig(&testbed, "token", |text| {
        let replaced = |line: &str| match line.split_once("token:") {
            Some((before, _)) => format!("{before}token: \"expired\"\n"),
            None => format!("{line}\n"),
        };
        text.lines().map(replaced).collect()
    })?;
    let mut elector = start(&testbed, "elector", &path, &["run"])?;
    let mut candidate = start(&testbed, "candidate", &path, CANDIDATE)?;
    let mut explain = start(&testbed, "explain", &path, &["explain"])?;
    for process in [&mut elector, &mut candidate, &mut explain] {
        complaint(process, &["401"]).await?;
    }
    ensure!(
        !explain.exit(PROMPTLY).await?.success(),
        "explain calls that a success"
    );
    for process in [elector, candidate, explain] {
        end(process, 20).await?;
    }
    Ok(())
}

/// A candidate without a name of its own.
const CANDIDATE: &[&str] = &[
    "candidate",
    "--lease=work",
    "--binary-version=1.0.0",
    "--emulation-version=1.0.0",
    "--",
    "sleep",
    "1000",
];

/// Everything that the server lets in and that makes no sense.
async fn malformed(testbed: Arc<Testbed>) -> Result<()> {
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
        let created = testbed
            .candidates()
            .create(&PostParams::default(), &candidate)
            .await;
        if name == "no-such-name" && testbed.site().mode() == ClusterMode::Custom {
            ensure!(
                created.is_err(),
                "the definition takes a lease name that no Lease can have"
            );
        } else {
            created?;
        }
    }
    let odd: Value = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "odd", "namespace": testbed.namespace(),
            "annotations": {"elector.dev/token": "none", "elector.dev/token-term": "-", "elector.dev/strategy": "/"},
        },
        "spec": {
            "holderIdentity": "\u{1f451} \n", "leaseDurationSeconds": 1, "leaseTransitions": i32::MAX,
            "renewTime": "9999-12-31T23:59:59.999999Z", "acquireTime": "0001-01-01T00:00:01.000000Z",
        },
    });
    let odd: Lease = serde_json::from_value(odd)?;
    testbed.write(&odd).await?;

    let sane = testbed.candidate("sane").start()?;
    testbed.admit(&["odd"]).await?;
    let next = testbed.candidate("next").lease("odd").start()?;
    sane.leads(PROMPTLY).await?;
    next.leads(LONGEST_LEASE + PROMPTLY).await?;
    testbed.stays("sane", 3).await?;

    let log = fs::read_to_string(testbed.site().folder().join("elector.log"))?;
    let about = |word: &str| {
        log.lines()
            .filter(|line| line.contains(testbed.namespace()) && line.contains(word))
            .count()
    };
    let lines = about("Not A Name!");
    // The server takes it into its own kind, and the elector refuses it once; the custom resource keeps it out.
    let expected = usize::from(testbed.site().mode() != ClusterMode::Custom);
    ensure!(
        lines == expected,
        "{lines} lines about a lease that cannot exist, not {expected}"
    );
    ensure!(!log.contains("panicked"), "the elector panicked");
    Ok(())
}

/// A version that no server takes is refused before anything is asked of one.
async fn malformed_version(testbed: Arc<Testbed>) -> Result<()> {
    let path = testbed.site().kubeconfig();
    let arguments = [
        "candidate",
        "--lease=work",
        "--binary-version=1.2",
        "--emulation-version=1.0.0",
        "--",
        "true",
    ];
    let mut process = start(&testbed, "candidate", &path, &arguments)?;
    let status = process.exit(PROMPTLY).await?;
    ensure!(
        status.code().is_some_and(|code| code != 0),
        "it ended with {status}"
    );
    complaint(&mut process, &["1.2"]).await?;
    end(process, 6).await?;
    ensure!(
        testbed.journal().len() == 1,
        "something was written all the same"
    );
    Ok(())
}
