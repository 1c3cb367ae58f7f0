//! The label on the Pod of a leader.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use elector_protocol::LeaseKey;
use elector_runtime::{Cluster, RequestError, Target, Verb};
use serde_json::{Value, json};

/// The label of the leader of a lease, and the Pod of this process.
#[derive(Clone, Debug)]
pub(super) struct PodLabel {
    namespace: String,
    lease: String,
    pod: String,
}

/// The label.
pub(super) const LABEL: &str = "elector.dev/leader";

/// The longest value of a label.
const LONGEST_VALUE: usize = 63;

// === impl PodLabel ===

impl PodLabel {
    pub(super) fn new(lease: &LeaseKey, pod: Option<&str>) -> anyhow::Result<Self> {
        let pod =
            pod.context("use --label-pod: the environment variable POD_NAME must name the Pod")?;
        ensure!(
            lease.name.len() <= LONGEST_VALUE,
            "use --label-pod: the name of the lease must fit into a label, which has at most {LONGEST_VALUE} characters"
        );
        Ok(Self {
            namespace: lease.namespace.to_string(),
            lease: lease.name.to_string(),
            pod: pod.to_owned(),
        })
    }

    /// Labels this Pod and no other one, or no Pod of this process.
    pub(super) async fn write(&self, cluster: &Cluster, leads: bool) -> Result<(), RequestError> {
        if !leads {
            return self.remove_own(cluster).await;
        }
        for pod in self
            .labelled(cluster)
            .await?
            .iter()
            .filter(|pod| **pod != self.pod)
        {
            self.patch(cluster, pod, &Value::Null).await?;
        }
        self.patch(cluster, &self.pod, &self.lease.as_str().into())
            .await
    }

    /// Removes the label from the Pod of this process, if it has it.
    pub(super) async fn remove_own(&self, cluster: &Cluster) -> Result<(), RequestError> {
        if self.labelled(cluster).await?.contains(&self.pod) {
            self.patch(cluster, &self.pod, &Value::Null).await?;
        }
        Ok(())
    }

    /// The Pods that are labelled as the leader.
    async fn labelled(&self, cluster: &Cluster) -> Result<Vec<String>, RequestError> {
        let selector = format!("{}%3D{}", LABEL.replace('/', "%2F"), self.lease);
        let path = format!("{}?labelSelector={selector}", self.path());
        let list: Value = cluster
            .request(self.target(Verb::List, None), &path, None)
            .await?;
        let items = list["items"].as_array().map(Vec::as_slice);
        let names = items.unwrap_or_default().iter();
        let names = names.filter_map(|pod| pod["metadata"]["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    async fn patch(&self, cluster: &Cluster, pod: &str, value: &Value) -> Result<(), RequestError> {
        let body = json!({"metadata": {"labels": {LABEL: value}}});
        let path = format!("{}/{pod}", self.path());
        let target = self.target(Verb::Patch, Some(pod));
        match cluster.request::<Value>(target, &path, Some(&body)).await {
            // A Pod that is gone has no label.
            Err(error) if error.code() == Some(404) && value.is_null() => Ok(()),
            patched => patched.map(drop),
        }
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    fn target(&self, verb: Verb, pod: Option<&str>) -> Target {
        Target {
            verb,
            resource: "pods".into(),
            namespace: Some(Arc::from(self.namespace.as_str())),
            name: pod.map(Arc::from),
        }
    }
}
