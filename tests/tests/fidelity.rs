//! The embedded API server against a real kube-apiserver, answer by answer.
//!
//! Without a real one the answers that it once gave are compared. With `--ignored` one is started, and the recorded
//! answers are checked too; `ELECTOR_RECORD=1` writes them anew.

use std::env;
use std::fs;
use std::future::pending;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use elector_apiserver::ApiServer;
use elector_cluster::binaries::{Binary, Toolbox};
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::release::Release;
use elector_tests::fidelity::{self, FidelityServer, Kubectl, Recording};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The least number of cases.
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
    let cluster = |gate: bool| {
        // A second version of the same objects.
        let runtime = "--runtime-config=coordination.k8s.io/v1alpha2=true".to_owned();
        RealCluster::start(&Options {
            gate,
            kubernetes: Some(Release::DEFAULT),
            apiserver_flags: vec![
                runtime,
                format!("--feature-gates=ShardedListAndWatch={gate}"),
            ],
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
fn a_page_of_a_forgotten_revision_is_refused_alike() -> Result<()> {
    let cluster = RealCluster::start(&Options {
        kubernetes: Some(Release::DEFAULT),
        apiserver_flags: vec!["--etcd-compaction-interval=1s".to_owned()],
        ..Options::default()
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let real = runtime.block_on(async {
        let client = client(&cluster).await?;
        forgotten_page(&client, async || {
            tokio::time::sleep(Duration::from_millis(200)).await;
        })
        .await
    })?;
    let embedded = runtime.block_on(async {
        let server = ApiServer::new(elector_apiserver::Config::default());
        let client = Client::new(server.service("test"), "default");
        forgotten_page(&client, async || server.compact()).await
    })?;
    println!("{real:#}");
    let holds = real == embedded;
    ensure!(holds, "- real\n{real:#}\n+ embedded\n{embedded:#}");
    Ok(())
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
    let cluster = RealCluster::start(&Options {
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

/// The answer of a server that has forgotten the revision of a list in pages, and its list by the token in that answer.
/// `forget` is called until it has forgotten it.
async fn forgotten_page(client: &Client, mut forget: impl AsyncFnMut()) -> Result<Value> {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for name in ["a", "b", "c"] {
        ask(client, Method::POST, LEASES, &lease(name)).await?;
    }
    let (_, page) = ask(client, Method::GET, &format!("{LEASES}?limit=1"), "").await?;
    let token = |answer: &Value| {
        let token = answer["metadata"]["continue"].as_str();
        anyhow::Ok(format!("{LEASES}?continue={}", token.context("no token")?))
    };
    let next = token(&page)?;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut written = 0;
    let (status, mut refusal) = loop {
        // A compaction has something to forget only where something was written.
        written += 1;
        ask(
            client,
            Method::POST,
            LEASES,
            &lease(&format!("d{written:05}")),
        )
        .await?;
        forget().await;
        let (status, answer) = ask(client, Method::GET, &next, "").await?;
        if !status.is_success() {
            break (status, answer);
        }
        ensure!(Instant::now() < deadline, "it forgot nothing in a minute");
    };
    let rest = token(&refusal)?;
    refusal["metadata"]["continue"] = "<token>".into();
    let (_, rest) = ask(client, Method::GET, &rest, "").await?;
    let items = rest["items"].as_array().context("no items")?;
    let names = items.iter().map(|item| item["metadata"]["name"].clone());
    let all_there = items.len() == written + 2;
    let names: Vec<_> = names.take(3).collect();
    let status = status.as_u16();
    Ok(json!({"status": status, "refusal": refusal, "rest": names, "all": all_there}))
}

fn lease(name: &str) -> String {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}})
        .to_string()
}

async fn ask(
    client: &Client,
    method: Method,
    path: &str,
    body: &str,
) -> Result<(StatusCode, Value)> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let body = body.as_bytes().to_vec();
    let answer = client.send(request.body(Body::from(body))?).await?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes)?))
}

async fn server(cluster: &RealCluster) -> Result<FidelityServer> {
    Ok(FidelityServer::behind(client(cluster).await?))
}

async fn client(cluster: &RealCluster) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
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
