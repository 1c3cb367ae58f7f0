//! A change of one annotation, of the very revision that was looked at.

use std::sync::Arc;

use anyhow::{anyhow, ensure};
use clap::{Args, ValueEnum};
use elector_protocol::LeaseKey;
use elector_runtime::{ClientArgs, Cluster, Target, Verb};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Where an operator's override is written, and whether it is.
#[derive(Args, Debug)]
pub(super) struct OverrideArgs {
    /// Namespace of the object [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub(super) namespace: Option<String>,

    /// With `server`, have the server check the change and not keep it
    #[arg(long, value_enum, default_value_t = DryRun::None)]
    pub(super) dry_run: DryRun,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// Whether a change is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DryRun {
    None,
    Server,
}

/// An object that has annotations: its kind and where it stands.
#[derive(Clone, Debug)]
pub(super) struct AnnotatedObject {
    /// Such as `coordination.k8s.io/v1`.
    pub(super) api_version: &'static str,
    /// In the plural and with the group, such as `leases.coordination.k8s.io`.
    pub(super) resource: &'static str,
    /// Namespace and name.
    pub(super) key: LeaseKey,
}

/// The most tries of a change that others get ahead of: a leader writes its Lease every few seconds.
const ATTEMPTS: usize = 5;

// === impl OverrideArgs ===

impl OverrideArgs {
    /// The namespace of the object.
    pub(super) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> &'a str {
        self.namespace.as_deref().unwrap_or(cluster.namespace())
    }
}

// === impl AnnotatedObject ===

impl AnnotatedObject {
    /// Such an object, unless no object can have that name.
    pub(super) fn new(
        api_version: &'static str,
        resource: &'static str,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Self> {
        for part in [namespace, name] {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let is_name = part.starts_with(|c: char| c.is_ascii_alphanumeric());
            ensure!(
                is_name && part.chars().all(fits),
                "use {part:?}: no object can have that name"
            );
        }
        let key = LeaseKey::new(namespace, name);
        Ok(Self {
            api_version,
            resource,
            key,
        })
    }

    /// The object as it is.
    pub(super) async fn read<T: DeserializeOwned>(&self, cluster: &Cluster) -> anyhow::Result<T> {
        self.find(cluster).await?.ok_or_else(|| self.is_missing())
    }

    /// The object as it is, `None` where there is none.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        cluster: &Cluster,
    ) -> anyhow::Result<Option<T>> {
        let target = self.target(Verb::Get);
        match cluster.request(target, &self.path(""), None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn is_missing(&self) -> anyhow::Error {
        anyhow!("find {} in namespace {}", self.shown(), self.key.namespace)
    }

    /// Gives an annotation this value, `None` to remove it, in the very revision that was read. Whether anything was
    /// written: not where the annotation has that value already.
    pub(super) async fn annotate(
        &self,
        cluster: &Cluster,
        name: &str,
        value: Option<&str>,
        dry_run: DryRun,
    ) -> anyhow::Result<bool> {
        let changed = self.change(cluster, name, value, dry_run).await?;
        changed.ok_or_else(|| self.is_missing())
    }

    /// The same, `None` where there is no such object.
    pub(super) async fn change(
        &self,
        cluster: &Cluster,
        name: &str,
        value: Option<&str>,
        dry_run: DryRun,
    ) -> anyhow::Result<Option<bool>> {
        let query = match dry_run {
            DryRun::None => "?fieldManager=kubectl-elector",
            DryRun::Server => "?fieldManager=kubectl-elector&dryRun=All",
        };
        let mut attempts = 0;
        loop {
            let Some(object) = self.find::<Value>(cluster).await? else {
                return Ok(None);
            };
            let metadata = &object["metadata"];
            if metadata["annotations"][name].as_str() == value {
                return Ok(Some(false));
            }
            let patch = patch(metadata, name, value);
            let (target, path) = (self.target(Verb::Patch), self.path(query));
            attempts += 1;
            match cluster.request::<Value>(target, &path, Some(&patch)).await {
                Ok(_) => return Ok(Some(true)),
                Err(error) if error.code() == Some(409) && attempts < ATTEMPTS => {}
                Err(error) if error.code() == Some(404) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Its name in kubectl: `lease.coordination.k8s.io/web`.
    pub(super) fn shown(&self) -> String {
        let (plural, group) = self.resource.split_once('.').unwrap_or((self.resource, ""));
        format!("{}.{group}/{}", plural.trim_end_matches('s'), self.key.name)
    }

    fn path(&self, query: &str) -> String {
        let plural = self.resource.split('.').next().unwrap_or_default();
        let (namespace, name) = (&self.key.namespace, &self.key.name);
        format!(
            "/apis/{}/namespaces/{namespace}/{plural}/{name}{query}",
            self.api_version
        )
    }

    fn target(&self, verb: Verb) -> Target {
        Target {
            verb,
            resource: self.resource.into(),
            namespace: Some(Arc::clone(&self.key.namespace)),
            name: Some(Arc::clone(&self.key.name)),
        }
    }
}

/// The merge patch that gives an annotation of this very revision another value: on any other the server answers 409.
fn patch(metadata: &Value, name: &str, value: Option<&str>) -> Value {
    json!({"metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "annotations": {name: value},
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_the_revision_and_one_annotation() {
        let metadata =
            json!({"name": "web", "uid": "u", "resourceVersion": "7", "annotations": {"a": "b"}});
        let named = |value: Value| json!({"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {"c": value}}});
        assert_eq!(patch(&metadata, "c", Some("d")), named("d".into()));
        assert_eq!(patch(&metadata, "c", None), named(Value::Null));
    }

    #[test]
    fn a_name_that_would_lead_elsewhere_is_refused() {
        let resource = "leases.coordination.k8s.io";
        let object = |name| AnnotatedObject::new("v1", resource, "default", name);
        let expected = "lease.coordination.k8s.io/web-0.b_C";
        assert_eq!(object("web-0.b_C").unwrap().shown(), expected);
        for name in ["", "..", "a/b", "a?b", "a%2fb", "a b", "-a", "\u{1b}"] {
            let error = object(name).unwrap_err().to_string();
            assert_eq!(error, format!("use {name:?}: no object can have that name"));
        }
    }
}
