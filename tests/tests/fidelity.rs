//! The embedded API server against a real kube-apiserver, answer by answer.
//!
//! Without a real one the answers that it once gave are compared. With `ELECTOR_REAL=1` one is started, and the
//! recorded answers are checked too; `ELECTOR_RECORD=1` writes them anew.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use elector_tests::fidelity::{self, Recording, Server};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use xtask::cluster::{Cluster, Options};
use xtask::release::Release;

/// As many cases as there must be at least.
const ENOUGH: usize = 150;

#[tokio::test(start_paused = true)]
async fn the_embedded_server_answers_as_a_real_one_did() -> Result<()> {
    let recorded = Recording::parse(&fs::read_to_string(recording())?);
    let embedded = embedded().await?;
    assert!(embedded.len() >= ENOUGH, "only {} cases", embedded.len());
    assert_equal(&recorded, &embedded)
}

#[test]
fn the_embedded_server_answers_as_a_real_one_does() -> Result<()> {
    if env::var_os("ELECTOR_REAL").is_none_or(|value| value != "1") {
        println!("left out: the comparison with a real kube-apiserver (ELECTOR_REAL=1)");
        return Ok(());
    }
    let cluster = |gate| {
        Cluster::start(&Options {
            gate,
            kubernetes: Some(Release::DEFAULT),
            // A second version of the same objects.
            apiserver_flags: vec!["--runtime-config=coordination.k8s.io/v1alpha2=true".to_owned()],
            ..Options::default()
        })
    };
    let (plain, gated) = (cluster(false)?, cluster(true)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let real = runtime.block_on(async {
        let (plain, gated) = (server(&plain).await?, server(&gated).await?);
        fidelity::run(&fidelity::cases(), &plain, &gated).await
    })?;
    if env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1") {
        fs::write(recording(), real.to_string())?;
    }
    let paused = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let embedded = paused.block_on(embedded())?;
    println!("{} cases on both servers", embedded.len());
    assert_equal(&real, &embedded)?;
    let recorded = Recording::parse(&fs::read_to_string(recording())?);
    assert_equal(&real, &recorded).context("the recorded answers are out of date")
}

async fn embedded() -> Result<Recording> {
    let (plain, gated) = (Server::embedded(false), Server::embedded(true));
    fidelity::run(&fidelity::cases(), &plain, &gated).await
}

async fn server(cluster: &Cluster) -> Result<Server> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Server::behind(Client::try_from(config)?))
}

fn assert_equal(real: &Recording, embedded: &Recording) -> Result<()> {
    let differences = real.differences(embedded);
    ensure!(
        differences.is_empty(),
        "{} of {} cases differ (- real, + embedded):\n{}",
        differences.len(),
        real.len(),
        differences.join("\n")
    );
    Ok(())
}

fn recording() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/fidelity/recorded.txt")
}
