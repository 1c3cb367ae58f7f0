//! Kinds that this server was not made for: the other built-in ones, those of CustomResourceDefinitions, and those that a
//! path names.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::Method;
use serde_json::{Value, json};

use crate::fields::ANY_OBJECT;
use crate::kind::{BASE, Bucket, Kind, is_custom_group};
use crate::store::ObjectFields;

/// A kind in one version, as it is defined somewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KindDefinition {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) namespaced: bool,
    /// True if `/status` is a resource of its own.
    pub(crate) status: bool,
    /// True if the kind is guessed from the plural.
    pub(crate) guessed: bool,
}

/// The bucket of the definitions themselves.
pub(crate) const DEFINITIONS: Bucket =
    Bucket::Other("customresourcedefinitions.apiextensions.k8s.io");

/// The other built-in kinds that programs commonly use: group and version, plural and kind; `*` for one without a
/// namespace, `/` for one with a status, and the short names.
const BUILT_IN: &str = "\
v1 configmaps ConfigMap cm
v1 endpoints Endpoints ep
v1 limitranges LimitRange limits
v1 nodes Node * / no
v1 persistentvolumeclaims PersistentVolumeClaim / pvc
v1 persistentvolumes PersistentVolume * / pv
v1 pods Pod / po
v1 podtemplates PodTemplate
v1 replicationcontrollers ReplicationController / rc
v1 resourcequotas ResourceQuota / quota
v1 secrets Secret
v1 serviceaccounts ServiceAccount sa
v1 services Service / svc
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration *
admissionregistration.k8s.io/v1 validatingadmissionpolicies ValidatingAdmissionPolicy * /
admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding *
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration *
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition * / crd crds
apiregistration.k8s.io/v1 apiservices APIService * /
apps/v1 controllerrevisions ControllerRevision
apps/v1 daemonsets DaemonSet / ds
apps/v1 deployments Deployment / deploy
apps/v1 replicasets ReplicaSet / rs
apps/v1 statefulsets StatefulSet / sts
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler / hpa
batch/v1 cronjobs CronJob / cj
batch/v1 jobs Job /
discovery.k8s.io/v1 endpointslices EndpointSlice
networking.k8s.io/v1 ingressclasses IngressClass *
networking.k8s.io/v1 ingresses Ingress / ing
networking.k8s.io/v1 networkpolicies NetworkPolicy netpol
policy/v1 poddisruptionbudgets PodDisruptionBudget / pdb
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding *
rbac.authorization.k8s.io/v1 clusterroles ClusterRole *
rbac.authorization.k8s.io/v1 rolebindings RoleBinding
rbac.authorization.k8s.io/v1 roles Role
scheduling.k8s.io/v1 priorityclasses PriorityClass * pc
storage.k8s.io/v1 storageclasses StorageClass * sc
";

/// Every definition that any server of this process has had. A kind lives as long as the process, once however often it
/// is defined, because requests, watches and objects name it without keeping the server.
static KINDS: Mutex<BTreeMap<KindDefinition, &'static Kind>> = Mutex::new(BTreeMap::new());

// === impl KindDefinition ===

impl KindDefinition {
    /// The built-in kinds.
    pub(crate) fn built_in() -> impl Iterator<Item = Self> {
        BUILT_IN.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let api_version = words.next()?;
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let (plural, kind) = (words.next()?, words.next()?);
            let rest: Vec<_> = words.collect();
            let short_names = rest.iter().filter(|word| !matches!(**word, "*" | "/"));
            Some(Self {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                short_names: short_names.map(|name| (*name).to_owned()).collect(),
                namespaced: !rest.contains(&"*"),
                status: rest.contains(&"/"),
                guessed: false,
            })
        })
    }

    /// The kinds of a CustomResourceDefinition: one for each version that is served, the preferred version first.
    pub(crate) fn of_object(definition: &ObjectFields) -> Vec<Self> {
        let spec = definition.get("spec").unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = &spec["names"];
        let short_names = names["shortNames"].as_array().into_iter().flatten();
        let short_names: Vec<_> = short_names.map(text).collect();
        let versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] != false);
        let kinds = served.map(|version| Self {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&names["kind"]),
            plural: text(&names["plural"]),
            short_names: short_names.clone(),
            namespaced: spec["scope"] != "Cluster",
            status: version["subresources"].get("status").is_some(),
            guessed: false,
        });
        let mut kinds: Vec<_> = kinds.filter(Self::is_whole).collect();
        kinds.sort_by(|one, other| by_version(&one.version, &other.version));
        kinds
    }

    /// The kind that a path is for, if it may be one of a custom group, and true if the path shows its scope.
    pub(crate) fn of_path(method: &Method, segments: &[&str]) -> Option<(Self, bool)> {
        let ["apis", group, version, rest @ ..] = segments else {
            return None;
        };
        let rest = match rest {
            ["watch", rest @ ..] => rest,
            rest => rest,
        };
        let (plural, namespaced, status) = match rest {
            ["namespaces", _, plural] | ["namespaces", _, plural, _] => (plural, true, false),
            ["namespaces", _, plural, _, "status"] => (plural, true, true),
            // Read without a namespace, it may be the collection of all namespaces.
            [plural] => (plural, method != Method::POST, false),
            [plural, _] => (plural, false, false),
            [plural, _, "status"] => (plural, false, true),
            _ => return None,
        };
        let kind = Self {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: guessed_kind(plural),
            plural: (*plural).to_owned(),
            short_names: Vec::new(),
            namespaced,
            status,
            guessed: true,
        };
        let shows_scope = rest.len() > 1 || !kind.namespaced;
        let is_custom = is_custom_group(group) && !Kind::is_own_group(group);
        (kind.is_whole() && is_custom).then_some((kind, shows_scope))
    }

    /// A kind that an object has named, where a path had named the plural alone.
    pub(crate) fn named(guessed: &Kind, kind: &str) -> Self {
        Self {
            group: guessed.group.to_owned(),
            version: guessed.version.to_owned(),
            kind: kind.to_owned(),
            plural: guessed.plural.to_owned(),
            short_names: Vec::new(),
            namespaced: guessed.namespaced,
            status: guessed.status,
            guessed: false,
        }
    }

    /// The kind, the same one each time.
    pub(crate) fn kind(self) -> &'static Kind {
        // A table of kinds is whole at every moment.
        let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = kinds.get(&self) {
            return kind;
        }
        let built_in = !is_custom_group(&self.group);
        let resource = match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        };
        let short_names: Vec<_> = self.short_names.iter().map(|name| lasting(name)).collect();
        let kind = Kind {
            group: lasting(&self.group),
            version: lasting(&self.version),
            kind: lasting(&self.kind),
            plural: lasting(&self.plural),
            singular: lasting(&self.kind.to_lowercase()),
            short_names: short_names.leak(),
            namespaced: self.namespaced,
            blind_updates: built_in,
            custom: !built_in,
            status: self.status,
            guessed: self.guessed,
            bucket: Bucket::Other(lasting(&resource)),
            schema: &ANY_OBJECT,
            ..BASE
        };
        let kind: &'static Kind = Box::leak(Box::new(kind));
        kinds.insert(self, kind);
        kind
    }

    /// True if paths and objects can name it.
    fn is_whole(&self) -> bool {
        let is_label = |text: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            !text.is_empty() && text.bytes().all(|byte| inner(byte) || byte == b'-')
        };
        is_label(&self.version)
            && is_label(&self.plural)
            && self.group.split('.').all(is_label)
            && !self.kind.is_empty()
    }
}

/// The status of a definition that the server has taken: programs wait for it.
pub(crate) fn established(definition: &ObjectFields, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now,
        })
    };
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let versions = spec["versions"].as_array();
    let stored = versions.into_iter().flatten();
    let stored = stored.filter(|version| version["storage"] == true);
    let stored: Vec<_> = stored.map(|version| version["name"].clone()).collect();
    json!({
        "acceptedNames": spec["names"],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    })
}

/// A kind as its plural most likely has it, until an object names it.
fn guessed_kind(plural: &str) -> String {
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    let mut letters = singular.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The order in which versions are preferred: `v2`, `v1`, `v1beta1`, `v1alpha1`, others by name.
fn by_version(one: &str, other: &str) -> std::cmp::Ordering {
    let rank = |text: &str| {
        let rest = text.strip_prefix('v')?;
        let digits = rest.find(|letter: char| !letter.is_ascii_digit());
        let (major, rest) = rest.split_at(digits.unwrap_or(rest.len()));
        let (stage, minor) = match rest.strip_prefix("beta") {
            Some(minor) => (1, minor),
            None => match rest.strip_prefix("alpha") {
                Some(minor) => (0, minor),
                None if rest.is_empty() => (2, "0"),
                None => return None,
            },
        };
        Some((
            stage,
            major.parse::<u32>().ok()?,
            minor.parse::<u32>().ok()?,
        ))
    };
    rank(other).cmp(&rank(one)).then_with(|| one.cmp(other))
}

fn lasting(text: &str) -> &'static str {
    text.to_owned().leak()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_custom_group_names_a_kind() {
        let of = |method: &Method, path: &str| {
            let segments: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
            let (kind, _) = KindDefinition::of_path(method, &segments)?;
            Some((kind.kind, kind.namespaced, kind.status))
        };
        let widget = |namespaced, status| Some(("Widget".to_owned(), namespaced, status));
        for (method, path, expected) in [
            (
                Method::GET,
                "/apis/example.com/v1/widgets",
                widget(true, false),
            ),
            (
                Method::POST,
                "/apis/example.com/v1/widgets",
                widget(false, false),
            ),
            (
                Method::GET,
                "/apis/example.com/v1/widgets/a",
                widget(false, false),
            ),
            (
                Method::POST,
                "/apis/example.com/v1/namespaces/ns/widgets",
                widget(true, false),
            ),
            (
                Method::PUT,
                "/apis/example.com/v1/namespaces/ns/widgets/a/status",
                widget(true, true),
            ),
            (Method::GET, "/apis/example.com/v1", None),
            (Method::GET, "/apis/example.com/v1/Widgets", None),
            // Groups of Kubernetes and those that this server was made for say what they have.
            (Method::GET, "/apis/apps/v1/widgets", None),
            (Method::GET, "/apis/batch.k8s.io/v1/widgets", None),
            (
                Method::GET,
                "/apis/coordination.k8s.io/v1beta1/leasecandidates",
                None,
            ),
            (
                Method::GET,
                "/apis/elector.dev/v1alpha1/leasecandidates",
                None,
            ),
            (Method::GET, "/api/v1/widgets", None),
        ] {
            assert_eq!(of(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_definition_has_a_kind_for_each_version_that_is_served() {
        let definition = json!({"spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {"name": "v1beta2", "served": true},
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}},
                {"name": "v1beta1", "served": false},
                {"name": "v2", "served": true},
            ],
        }});
        let kinds = KindDefinition::of_object(definition.as_object().unwrap());
        let shown: Vec<_> = kinds
            .iter()
            .map(|it| (it.version.as_str(), it.status))
            .collect();
        assert_eq!(shown, [("v2", false), ("v1", true), ("v1beta2", false)]);
        let (one, other) = (kinds[0].clone().kind(), kinds[0].clone().kind());
        assert!(std::ptr::eq(one, other), "a kind is made once");
        assert!(!one.namespaced && one.custom);
        assert_eq!(one.bucket, Bucket::Other("widgets.example.com"));
    }
}
