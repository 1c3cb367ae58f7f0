//! The test cluster itself, and the manifests, on a real kube-apiserver.
//!
//! `cargo xtask test` runs these when a kube-apiserver is to be had; without `--ignored` they are left out. Those with
//! `client_go` in their names also need a Go toolchain, and those with `helm` run with `--long` alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod helm;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use elector_cluster::binaries::{self, Binary, Toolbox};
use elector_cluster::child_guard::ChildGuard;
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::release::Release;
use rustix::process::Signal;
use xtask::manifests;

fn kubectl() -> PathBuf {
    Toolbox::new(None).unwrap().path(Binary::Kubectl).unwrap()
}

fn ask(kubeconfig: &Path, arguments: &[&str]) -> Output {
    Command::new(kubectl())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Waits for what must come about within 30 s.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn the_gate_and_the_users_are_as_asked_for() {
    let cluster = RealCluster::start(&Options {
        gate: true,
        ..Options::default()
    })
    .unwrap();
    let groups = ask(
        &cluster.kubeconfig(),
        &["get", "--raw", "/apis/coordination.k8s.io"],
    );
    assert!(
        said(&groups).contains("coordination.k8s.io/v1beta1"),
        "{}",
        said(&groups)
    );

    // Only the built-in controller takes this lock, and only with the gate on.
    let lock = [
        "get",
        "leases",
        "leader-election-controller",
        "--namespace=kube-system",
    ];
    eventually("the built-in controller's lock", || {
        ask(&cluster.kubeconfig(), &lock).status.success()
    });

    let refused = ask(&cluster.user_kubeconfig(), &lock);
    assert!(!refused.status.success());
    assert!(
        said(&refused).contains("User \"unprivileged\" cannot get resource \"leases\""),
        "{}",
        said(&refused)
    );

    let folder = cluster.kubeconfig().parent().unwrap().to_owned();
    cluster.stop().unwrap();
    assert!(!folder.exists());
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn without_the_api_no_candidates_are_served() {
    let cluster = RealCluster::start(&Options {
        serve_candidates: false,
        ..Options::default()
    })
    .unwrap();
    let groups = ask(
        &cluster.kubeconfig(),
        &["get", "--raw", "/apis/coordination.k8s.io"],
    );
    assert!(groups.status.success());
    assert!(!said(&groups).contains("v1beta1"), "{}", said(&groups));
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn the_manifests_are_accepted_and_grant_the_least() {
    let cluster = RealCluster::start(&Options::default()).unwrap();
    let said = manifests::apply(&kubectl(), &cluster.kubeconfig()).unwrap();
    // Ten of the base and twenty of the policies, the CRD, three Roles with their bindings, and a FlowSchema.
    assert_eq!(said.matches(" created").count(), 38, "{said}");
    manifests::check_rights(&kubectl(), &cluster.kubeconfig()).unwrap();
    manifests::check_flow(&kubectl(), &cluster.kubeconfig()).unwrap();
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn a_killed_owner_takes_its_cluster_along() {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args([
            "cluster",
            "run",
            "--",
            "/bin/sh",
            "-c",
            "echo \"$KUBECONFIG\"; read -r line",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut kubeconfig = String::new();
    BufReader::new(owner.stdout.take().unwrap())
        .read_line(&mut kubeconfig)
        .unwrap();
    let kubeconfig = PathBuf::from(kubeconfig.trim_end());
    let ready = || {
        ask(
            &kubeconfig,
            &["get", "--raw", "/readyz", "--request-timeout=5s"],
        )
        .status
        .success()
    };
    assert!(ready());
    let server = std::fs::read_to_string(&kubeconfig).unwrap();
    let address = server
        .split_once("https://")
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .0
        .to_owned();

    owner.kill().unwrap(); // SIGKILL: nothing of the owner gets to run any more
    owner.wait().unwrap();
    eventually("the API server is gone", || {
        std::net::TcpStream::connect(&address).is_err()
    });
    eventually("its folder is gone", || {
        !kubeconfig.parent().unwrap().exists()
    });
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn a_client_go_candidate_tells_its_whole_story() {
    let cluster = RealCluster::start(&Options::default()).unwrap();
    let mut command = Command::new(binaries::client_go_candidate(Release::DEFAULT).unwrap());
    command
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .args([
            "--lease=story",
            "--name=one",
            "--coordinated=false",
            "--release-on-cancel",
        ])
        .stdout(Stdio::piped());
    let mut candidate = ChildGuard::spawn(&mut command).unwrap();
    let mut lines = BufReader::new(candidate.child_mut().stdout.take().unwrap()).lines();
    let mut event = || {
        let line = lines
            .next()
            .expect("the candidate ended without a word")
            .unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["name"], "one");
        assert_eq!(
            event["time"].as_str().unwrap().len(),
            "2026-11-20T05:15:02.607069Z".len()
        );
        event["event"].as_str().unwrap().to_owned()
    };
    assert_eq!([event(), event()], ["start", "leading"]);
    candidate.signal(Signal::TERM).unwrap();
    assert_eq!([event(), event()], ["work-stopped", "lost"]);
    let status = candidate
        .wait_for(Duration::from_secs(30))
        .unwrap()
        .expect("it ends after SIGTERM");
    assert!(status.success(), "{status}");
    let holder = ask(
        &cluster.kubeconfig(),
        &[
            "get",
            "lease",
            "story",
            "-o",
            "jsonpath={.spec.holderIdentity}",
        ],
    );
    // Its release is one write after a read; a renewal that is still under way when it is asked to stop can come between,
    // and client-go does not try again.
    assert!(["", "one"].contains(&said(&holder).as_str()), "{holder:?}");
}
