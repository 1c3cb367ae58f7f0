//! Which LeaseCandidate a cluster serves.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;

/// The group and version that LeaseCandidates are read from and written to, found out at run time.
///
/// One type, [`LeaseCandidate`](crate::LeaseCandidate), serves them all: their specs are the same, but for the list of
/// strategies that [`Self::V1Alpha1`] has in place of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CandidateApi {
    /// `coordination.k8s.io/v1beta1`: Kubernetes 1.33 and later, where kube-apiserver is asked to serve it.
    #[default]
    V1Beta1,
    /// `coordination.k8s.io/v1alpha2`: Kubernetes 1.32 and later, the same.
    V1Alpha2,
    /// `coordination.k8s.io/v1alpha1`: Kubernetes 1.31, with `preferredStrategies`, and both versions optional.
    V1Alpha1,
    /// `elector.dev/v1alpha1`: a CRD with the same spec, for every other cluster.
    Elector,
}

/// A cluster that serves no LeaseCandidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "neither coordination.k8s.io LeaseCandidate (v1beta1, v1alpha2, v1alpha1) nor elector.dev/v1alpha1 LeaseCandidate \
     is served; enable the first with --runtime-config=coordination.k8s.io/v1beta1=true on kube-apiserver \
     (v1alpha2 in Kubernetes 1.32, v1alpha1 in 1.31), or install the CRD leasecandidates.elector.dev"
)]
pub struct NotServed;

// === impl CandidateApi ===

impl CandidateApi {
    /// Every variant, the one to prefer first.
    pub const ALL: [Self; 4] = [Self::V1Beta1, Self::V1Alpha2, Self::V1Alpha1, Self::Elector];
    /// The plural of the kind, in every group.
    pub const PLURAL: &str = "leasecandidates";

    /// True if it is Kubernetes' own, and no custom resource.
    pub const fn is_native(self) -> bool {
        !matches!(self, Self::Elector)
    }

    /// The API group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::V1Beta1 | Self::V1Alpha2 | Self::V1Alpha1 => "coordination.k8s.io",
            Self::Elector => "elector.dev",
        }
    }

    /// The version in the group.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Alpha2 => "v1alpha2",
            Self::V1Alpha1 | Self::Elector => "v1alpha1",
        }
    }

    /// `group/version`, as objects name it.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1Beta1 => "coordination.k8s.io/v1beta1",
            Self::V1Alpha2 => "coordination.k8s.io/v1alpha2",
            Self::V1Alpha1 => "coordination.k8s.io/v1alpha1",
            Self::Elector => "elector.dev/v1alpha1",
        }
    }

    /// The variant that an object's `apiVersion` names.
    pub fn of_api_version(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.api_version() == text)
    }

    /// True if candidates have a list of strategies, and not one.
    pub const fn lists_strategies(self) -> bool {
        matches!(self, Self::V1Alpha1)
    }

    /// Those to prefer to this one, the best first.
    pub fn better(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().take_while(move |api| *api != self)
    }

    /// True if the resources of this group version, `GET /apis/{group}/{version}`, include LeaseCandidates.
    pub fn is_served_by(self, document: &APIResourceList) -> bool {
        document.group_version == self.api_version()
            && document
                .resources
                .iter()
                .any(|resource| resource.name == Self::PLURAL)
    }
}

impl fmt::Display for CandidateApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.api_version())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(group_version: &str, plurals: &[&str]) -> APIResourceList {
        let resources: Vec<_> = plurals
            .iter()
            .map(|name| json!({"name": name, "kind": "X", "namespaced": true, "singularName": "", "verbs": []}))
            .collect();
        let document = json!({
            "apiVersion": "v1", "kind": "APIResourceList",
            "groupVersion": group_version, "resources": resources,
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn it_is_served_where_its_resources_say_so() {
        let leases = document("coordination.k8s.io/v1", &["leases"]);
        let none = document("coordination.k8s.io/v1beta1", &["leases"]);
        let some = document(
            "coordination.k8s.io/v1beta1",
            &["leasecandidates", "leasecandidates/status"],
        );
        let crd = document("elector.dev/v1alpha1", &["leasecandidates"]);
        let served = [&leases, &none, &some, &crd].map(|document| {
            let api = |api: &CandidateApi| api.is_served_by(document);
            CandidateApi::ALL.into_iter().find(api)
        });
        assert_eq!(
            served,
            [
                None,
                None,
                Some(CandidateApi::V1Beta1),
                Some(CandidateApi::Elector)
            ]
        );
    }

    #[test]
    fn each_api_is_found_by_its_name() {
        for api in CandidateApi::ALL {
            let expected = format!("{}/{}", api.group(), api.version());
            assert_eq!(api.api_version(), expected);
            assert_eq!(CandidateApi::of_api_version(&api.to_string()), Some(api));
            assert_eq!(api.is_native(), api.group() == "coordination.k8s.io");
        }
        assert_eq!(CandidateApi::of_api_version("coordination.k8s.io/v1"), None);
    }

    #[test]
    fn what_is_better_stands_before() {
        let better = |api: CandidateApi| api.better().collect::<Vec<_>>();
        assert_eq!(better(CandidateApi::V1Beta1), []);
        let expected = [CandidateApi::V1Beta1, CandidateApi::V1Alpha2];
        assert_eq!(better(CandidateApi::V1Alpha1), expected);
        assert_eq!(better(CandidateApi::Elector), CandidateApi::ALL[..3]);
    }
}
