//! The embedded API server against a real kube-apiserver, answer by answer.
//!
//! Without a real one the answers that it once gave are compared. With `--ignored` one is started, and the recorded
//! answers are checked too; `ELECTOR_RECORD=1` writes them anew.

use std::env;
use std::fs;
use std::future::pending;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use elector_apiserver::ApiServer;
use elector_tests::fidelity::{self, FidelityServer, Kubectl, Recording};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use xtask::binaries::{Binary, Toolbox};
use xtask::cluster::{Options, TestCluster};
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
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn the_embedded_server_answers_as_a_real_one_does() -> Result<()> {
    let cluster = |gate| {
        TestCluster::start(&Options {
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

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn kubectl_sees_no_difference() -> Result<()> {
    let program = Toolbox::new(Some(Release::DEFAULT))?.path(Binary::Kubectl)?;
    let folder = tempfile::tempdir()?;
    let kubectl = |name: &str, kubeconfig: PathBuf| -> Result<Kubectl> {
        let home = folder.path().join(name);
        fs::create_dir(&home)?;
        Ok(Kubectl {
            program: program.clone(),
            kubeconfig,
            home,
        })
    };
    let cluster = TestCluster::start(&Options {
        kubernetes: Some(Release::DEFAULT),
        ..Options::default()
    })?;
    let real = kubectl("real", cluster.kubeconfig())?.transcript()?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let kubeconfig = folder.path().join("embedded.yaml");
    fs::write(
        &kubeconfig,
        kubeconfig_of(&format!("http://{}", listener.local_addr()?)),
    )?;
    let server = ApiServer::new(elector_apiserver::Config::default());
    runtime.spawn(async move { server.serve(listener, pending()).await });
    let embedded = kubectl("embedded", kubeconfig)?.transcript()?;

    println!("{} commands on both servers", embedded.len());
    let differences: Vec<_> = real
        .iter()
        .zip(&embedded)
        .filter(|(real, embedded)| real != embedded)
        .map(|(real, embedded)| format!("--- real\n{real}\n--- embedded\n{embedded}"))
        .collect();
    ensure!(
        differences.is_empty(),
        "kubectl sees a difference:\n{}",
        differences.join("\n")
    );
    Ok(())
}

fn kubeconfig_of(url: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, clusters: [{{name: a, cluster: {{server: \"{url}\"}}}}], \
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}], users: [{{name: a, user: {{}}}}], \
         current-context: a}}"
    )
}

async fn embedded() -> Result<Recording> {
    let (plain, gated) = (
        FidelityServer::embedded(false),
        FidelityServer::embedded(true),
    );
    fidelity::run(&fidelity::cases(), &plain, &gated).await
}

async fn server(cluster: &TestCluster) -> Result<FidelityServer> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(FidelityServer::behind(Client::try_from(config)?))
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
