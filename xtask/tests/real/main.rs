//! The test cluster itself, and the manifests, on a real kube-apiserver.
//!
//! `cargo xtask test` runs these when a kube-apiserver is to be had; without `--ignored` they are left out. Those with
//! `client_go` in their names also need a Go toolchain, and those with `helm` run with `--long` alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod alerts;
mod helm;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use elector_cluster::binaries::{self, Binary, Toolbox};
use elector_cluster::child_guard::ChildGuard;
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::overlays;
use elector_cluster::release::Release;
use rustix::process::Signal;
use serde_json::json;
use xtask::manifests;

fn kubectl() -> PathBuf {
    Toolbox::new(None).unwrap().path(Binary::Kubectl).unwrap()
}

fn ask(kubeconfig: &Path, arguments: &str) -> Output {
    Command::new(kubectl())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments.split_whitespace())
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
    let groups = ask(&cluster.kubeconfig(), "get --raw /apis/coordination.k8s.io");
    assert!(
        said(&groups).contains("coordination.k8s.io/v1beta1"),
        "{}",
        said(&groups)
    );

    // Only the built-in controller takes this lock, and only with the gate on.
    let lock = "get leases leader-election-controller --namespace=kube-system";
    eventually("the built-in controller's lock", || {
        ask(&cluster.kubeconfig(), lock).status.success()
    });

    let refused = ask(&cluster.user_kubeconfig(), lock);
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
    let groups = ask(&cluster.kubeconfig(), "get --raw /apis/coordination.k8s.io");
    assert!(groups.status.success());
    assert!(!said(&groups).contains("v1beta1"), "{}", said(&groups));
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn the_manifests_are_accepted_and_grant_the_least() {
    let cluster = RealCluster::start(&Options::default()).unwrap();
    let said = manifests::apply(&kubectl(), &cluster.kubeconfig()).unwrap();
    // Those of the base and of the policies, the CRD, seven Roles with their bindings, a Service and two FlowSchemas.
    assert_eq!(said.matches(" created").count(), 47, "{said}");
    manifests::check_rights(&kubectl(), &cluster.kubeconfig()).unwrap();
    manifests::check_flow(&kubectl(), &cluster.kubeconfig()).unwrap();
}

/// The admission of GKE: Pods of the highest priorities need a ResourceQuota of their namespace.
const QUOTA_FOR_PRIORITY: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: ResourceQuota
    configuration:
      apiVersion: apiserver.config.k8s.io/v1
      kind: ResourceQuotaConfiguration
      limitedResources:
        - resource: pods
          matchScopes:
            - scopeName: PriorityClass
              operator: In
              values: [system-node-critical, system-cluster-critical]
";

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn the_pods_are_admitted_where_their_priority_needs_a_quota() {
    let folder = tempfile::tempdir().unwrap();
    let admission = folder.path().join("admission.yaml");
    std::fs::write(&admission, QUOTA_FOR_PRIORITY).unwrap();
    let flag = format!("--admission-control-config-file={}", admission.display());
    let cluster = RealCluster::start(&Options {
        apiserver_flags: vec![flag],
        ..Options::default()
    })
    .unwrap();
    let kubeconfig = cluster.kubeconfig();
    let asked = |arguments: &str| {
        let output = ask(&kubeconfig, arguments);
        assert!(output.status.success(), "{arguments}: {}", said(&output));
    };
    let file = overlays::install_file("native");
    asked(&format!("apply --filename {}", file.display()));
    // The Pod that the Deployment would make, which no controller does here.
    let objects = overlays::objects(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let template =
        &overlays::object(&objects, "Deployment", "elector").unwrap()["spec"]["template"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "elector-0", "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    });
    let path = folder.path().join("pod.json");
    std::fs::write(&path, pod.to_string()).unwrap();
    let create = |namespace: &str| {
        let create = format!(
            "create --namespace={namespace} --filename {}",
            path.display()
        );
        ask(&kubeconfig, &create)
    };
    let refused = create("default");
    assert!(!refused.status.success());
    let why = "insufficient quota to match these scopes: [{PriorityClass In";
    assert!(said(&refused).contains(why), "{}", said(&refused));
    // Written by the controller of quotas, in a cluster that has one.
    let counted = r#"{"status":{"hard":{"pods":"100"},"used":{"pods":"0"}}}"#;
    let patch =
        format!("patch resourcequota elector --subresource=status --type=merge --patch {counted}");
    asked(&format!("{patch} --namespace=elector-system"));
    eventually("the Pod is admitted", || {
        create("elector-system").status.success()
    });
    let priority = "--output=jsonpath={.spec.priorityClassName} --namespace=elector-system";
    let found = ask(&kubeconfig, &format!("get pod elector-0 {priority}"));
    assert_eq!(said(&found), "system-cluster-critical");
}

#[test]
#[ignore = "it needs a real kube-apiserver: `cargo xtask test`"]
fn a_killed_owner_takes_its_cluster_along() {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["cluster", "run", "--", "/bin/sh", "-c"])
        .arg("echo \"$KUBECONFIG\"; read -r line")
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
        let ready = "get --raw /readyz --request-timeout=5s";
        ask(&kubeconfig, ready).status.success()
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
        .args("--lease=story --name=one --coordinated=false --release-on-cancel".split(' '))
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
        let expected = "2026-11-20T05:15:02.607069Z".len();
        assert_eq!(event["time"].as_str().unwrap().len(), expected);
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
    let holder = "get lease story -o jsonpath={.spec.holderIdentity}";
    let holder = ask(&cluster.kubeconfig(), holder);
    // Its release is one write after a read; a renewal that is still under way when it is asked to stop can come between,
    // and client-go does not try again.
    assert!(["", "one"].contains(&said(&holder).as_str()), "{holder:?}");
}
