//! Resources in kubectl's words, `RESOURCE` or `RESOURCE.GROUP`.

use std::fmt;
use std::str::FromStr;

use elector_api::names::{dns_label, dns_subdomain};

/// A resource of an API group, in any version. Ordered by group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resource {
    /// Empty for the core group.
    pub(super) group: String,
    /// Its plural name, in lower case.
    pub(super) name: String,
}

/// The groups without a dot, which are Kubernetes' own, and their resources that hold objects. A name that is not here
/// exists in no cluster: a policy for it would never match and refuse nothing.
const BUILT_IN: [(&str, &str); 5] = [
    (
        "",
        "configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods \
         podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services",
    ),
    (
        "apps",
        "controllerrevisions daemonsets deployments replicasets statefulsets",
    ),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs jobs"),
    ("policy", "poddisruptionbudgets"),
];

// === impl Resource ===

impl FromStr for Resource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Err(
                "a write to a subresource cannot be fenced: the API server drops the annotations in it".into(),
            );
        }
        let (name, group) = text.split_once('.').unwrap_or((text, ""));
        if !dns_label(name).is_empty()
            || (!group.is_empty() || text.contains('.')) && !dns_subdomain(group).is_empty()
        {
            return Err(
                "must be RESOURCE or RESOURCE.GROUP, a plural name in lower case and an API group, as in configmaps or \
                 deployments.apps"
                    .into(),
            );
        }
        if let Some((version, group)) = group.split_once('.').or(Some((group, "")))
            && is_version(version)
        {
            let dot = if group.is_empty() { "" } else { "." };
            return Err(format!(
                "the policies hold for all versions: write {name}{dot}{group}"
            ));
        }
        check(name, group)?;
        Ok(Self {
            group: group.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, name } = self;
        match &**group {
            "" => write!(f, "{name}"),
            _ => write!(f, "{name}.{group}"),
        }
    }
}

/// An error where policies cannot fence such a resource, as far as that is known without a cluster.
fn check(name: &str, group: &str) -> Result<(), String> {
    match (name, group) {
        ("leases", "coordination.k8s.io") | ("leasecandidates", _) => {
            return Err("what elects the leader is written before there is a token".into());
        }
        (_, "admissionregistration.k8s.io") => {
            return Err("the API server applies no policy to policies".into());
        }
        _ => {}
    }
    // All groups but Kubernetes' oldest are domains; which resources those have, only a cluster knows.
    if group.contains('.') {
        return Ok(());
    }
    let mut groups = BUILT_IN.iter();
    let elsewhere = groups.find(|(_, names)| names.split(' ').any(|known| known == name));
    if elsewhere.is_some_and(|(of, _)| *of == group) {
        return Ok(());
    }
    Err(match (group, elsewhere) {
        (_, Some(("", _))) => format!("{name} belongs to the core group: write {name}"),
        (_, Some((other, _))) => {
            format!("{name} belongs to the group {other}: write {name}.{other}")
        }
        ("", None) => format!(
            "the core group has no resource {name}: write RESOURCE.GROUP, with the plural name of kubectl api-resources"
        ),
        (_, None) => format!("the group {group} has no resource {name}: see kubectl api-resources"),
    })
}

/// True for the version in kubectl's RESOURCE.VERSION.GROUP: `v1`, `v1beta2`.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    ["alpha", "beta"]
        .iter()
        .find_map(|stage| rest.split_once(stage))
        .map_or(digits(rest), |(major, minor)| {
            digits(major) && digits(minor)
        })
}
