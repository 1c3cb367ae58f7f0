//! A LeaseCandidate that belongs to the Pod of its process, for the garbage collector of Kubernetes to see.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{JournalMark, Suite, TestProcess, Testbed};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::Api;

use crate::{OURS, WITHOUT_GATE};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, WITHOUT_GATE);
    shared.add("candidate_belongs_to_its_pod", 20, belongs);
}

const NAME: &str = "owned-0";

async fn belongs(testbed: Arc<Testbed>) -> Result<()> {
    let (site, lease) = (testbed.site(), testbed.lease_name());
    let (namespace, client) = (testbed.namespace(), site.client().clone());
    let pod = site.pod_account(namespace, "web", NAME).await?;
    let pods = Api::<Pod>::namespaced(client, namespace);
    let uid = pods.get(NAME).await?.uid().context("a Pod without a uid")?;

    testbed.add_participant(NAME, OURS, lease);
    let mut command = pod.command(&site.programs().elector);
    command.args(["candidate", "--namespace", namespace, "--lease", lease]);
    command.args(["--name", NAME, "--binary-version=1.0.0", "--pod-uid", &uid]);
    let _candidate = TestProcess::spawn(NAME, command, testbed.folder(), |_| {})?;
    testbed.registered(NAME, JournalMark::BEGINNING).await?;
    let object = testbed.candidates().get(NAME).await?;
    let owners = object.owner_references();
    ensure!(
        matches!(owners, [pod] if (pod.api_version.as_str(), pod.kind.as_str()) == ("v1", "Pod")
            && pod.name == NAME && pod.uid == uid && pod.block_owner_deletion.is_none()),
        "{owners:?}"
    );
    Ok(())
}
