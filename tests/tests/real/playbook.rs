//! Transcripts of the pages for operators, where a server decides what their commands do: the chart with monitoring and a
//! scrape of its elector, and a leader whose renewals are refused until the policies are lifted. `ELECTOR_RECORD=1` has them
//! written anew.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::{binaries, paths};
use elector_tests::rig::{Suite, TestProcess, TestSite, Testbed, eventually};
use elector_verify::EventKind;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::installed::RIGHTS_OF_THE_SITE;
use crate::transcript::Transcript;
use crate::{GATE_OFF, LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("policies_that_refuse_a_leader_are_lifted", 60, lift);
    let name = "chart_is_installed_and_its_elector_scraped";
    own.add_long(name, 60, chart);
}

/// The remark before the transcript.
const MARK: &str =
    "Run and compared by tests/tests/real/playbook.rs; ELECTOR_RECORD=1 writes it anew";

/// The address of an elector's figures in a transcript.
const FIGURES: &str = "localhost:8080";

/// The namespace and the lease of the transcripts.
const NAMESPACE: &str = "shop";
const LEASE: &str = "web";

/// A leader that is not named for its Pod led before there were policies.
async fn lift(outer: Arc<Testbed>) -> Result<()> {
    let site = Arc::clone(outer.site());
    let testbed = Testbed::open_for(Arc::clone(&site), NAMESPACE, LEASE, OURS).await?;
    let flags = ["--absent-lease-grace=0s"];
    let _elector = site.elector("elector-0", flags).await?;
    let account = site.pod_account(NAMESPACE, "web", "web-0").await?;
    let mut leader = testbed.candidate("chosen").account(&account).start()?;
    leader.leads(LEASE_DURATION + PROMPTLY).await?;
    let native = paths::workspace().join("manifests/overlays/native");
    let applied = testbed.note("apply the policies");
    site.apply("-k", &native).await?;
    let refusal =
        "ValidatingAdmissionPolicy 'elector-lease' with binding 'elector-lease' denied request: ";
    leader.process.writes(&[refusal], PROMPTLY * 2).await?;
    let patience = PROMPTLY * 2;
    (leader.says(EventKind::WorkStopped, applied, patience)).await?;

    let page = paths::workspace().join("docs/operate.md");
    let transcript = Transcript::read(&page, MARK)?;
    let mut said = Vec::new();
    for step in &transcript.steps {
        let from = testbed.note(&step.command);
        said.push(site.shell(&step.command).await?);
        if step.command.contains("\"Audit\"") {
            leader.leads_since(from, LEASE_DURATION * 2).await?;
            testbed.stays("chosen", 1).await?;
        } else if step.command.contains("\"Deny\"") {
            (leader.says(EventKind::WorkStopped, from, patience)).await?;
        }
    }
    transcript.settle(&page, &said)
}

/// Helm installs the chart with monitoring. The elector is run as its account, for want of a kubelet.
async fn chart(outer: Arc<Testbed>) -> Result<()> {
    let site = Arc::clone(outer.site());
    make_room_for_helm(&site).await?;
    let page = paths::workspace().join("docs/install.md");
    let transcript = Transcript::read(&page, MARK)?;
    let mut figures = None;
    let mut said = Vec::new();
    for step in &transcript.steps {
        if step.command.starts_with("curl ") {
            let (address, _processes) = scraped(&site).await?;
            let command = step.command.replace(FIGURES, &address);
            let ask = || async {
                let text = site.shell(&command).await?;
                ensure!(text.contains("state=\"led\"} 1"), "{text}");
                Ok(text)
            };
            figures = Some(eventually(PROMPTLY * 2, ask).await?);
            said.extend(figures.clone());
        } else {
            said.push(site.shell(&step.command).await?);
        }
    }
    ensure!(figures.is_some(), "the transcript has no scrape");
    transcript.settle(&page, &said)
}

/// Takes away what a site installs for electors of other scenarios, and adds the kinds of the Prometheus Operator.
async fn make_room_for_helm(site: &TestSite) -> Result<()> {
    let helm = spawn_blocking(binaries::helm).await??;
    site.finding_programs(Path::new("helm"))?;
    symlink(helm, site.programs_folder().join("helm"))?;
    let mut rights = vec!["delete", "--namespace=elector-system", "--ignore-not-found"];
    rights.push("serviceaccount/elector");
    rights.extend(RIGHTS_OF_THE_SITE);
    site.kubectl(&rights).await?;
    let kinds = [
        ("PodMonitor", "podmonitors"),
        ("PrometheusRule", "prometheusrules"),
    ];
    let kinds = kinds.map(|(kind, plural)| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {
                "group": "monitoring.coreos.com", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
                ],
            },
        })
    });
    let path = site.folder().join("kinds.json");
    let kinds = json!({"apiVersion": "v1", "kind": "List", "items": kinds});
    std::fs::write(&path, kinds.to_string())?;
    site.apply("-f", &path).await?;
    let established = ["wait", "crd", "--all", "--for=condition=Established"];
    site.kubectl(&established).await.map(drop)
}

/// The address of the figures of an elector that has elected a leader, which goes on for as long as what is beside it.
async fn scraped(site: &Arc<TestSite>) -> Result<(String, [TestProcess; 2])> {
    let testbed = Testbed::open_for(Arc::clone(site), NAMESPACE, LEASE, OURS).await?;
    let flags = [
        "--leader-elect",
        "--leader-elect-resource-namespace=elector-system",
        "--metrics-bind-address=127.0.0.1:0",
        "--absent-lease-grace=0s",
    ];
    let mut elector = site.elector("elector-0", flags).await?;
    let line = elector.writes(&["serving metrics"], PROMPTLY).await?;
    let (_, address) = line.split_once("address=").context("no address")?;
    let address = address.split_whitespace().next().unwrap_or_default();
    let account = site.pod_account(NAMESPACE, "web", "web-0").await?;
    let leader = testbed.candidate("web-0").account(&account).start()?;
    leader.leads(LEASE_DURATION + PROMPTLY).await?;
    Ok((address.to_owned(), [elector, leader.process]))
}
