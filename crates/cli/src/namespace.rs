//! Which namespaces a sub-command looks at. Flags of kubectl's names.

use clap::Args;
use elector_runtime::Cluster;

/// Where to look.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NamespaceArgs {
    /// Namespace to look at [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,

    /// Look at all namespaces, whatever --namespace says
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

// === impl NamespaceArgs ===

impl NamespaceArgs {
    /// The namespace to look at in this cluster, `None` for all.
    pub(crate) fn in_cluster<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        if self.all_namespaces {
            return None;
        }
        Some(self.namespace.as_deref().unwrap_or(cluster.namespace()))
    }

    /// The namespace that is asked for, `None` for all: a file has no default.
    pub(crate) fn in_file(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| !self.all_namespaces)
    }
}
