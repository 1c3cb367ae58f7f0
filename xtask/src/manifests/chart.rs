//! The Helm chart of `manifests/chart`. Its templates of what an operator shapes (Pods, what watches over them, monitoring)
//! are written by hand; roles, policies and the definition, where nothing but names and switches differ, are made of the
//! overlays here. A test holds what Helm renders against the overlays, object by object.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::manifests::overlays;
use crate::yaml;

/// The overlays that the chart renders, by the value `mode`. A static Pod is nothing that Helm installs.
pub const MODES: [&str; 5] = [
    "crd",
    "native",
    "replace-builtin",
    "namespaced",
    CLUSTER_WIDE,
];

/// The overlay of the objects that all electors of a cluster share.
const CLUSTER_WIDE: &str = "cluster-wide";
/// The namespaces of the overlays: of the elector, and the one that `namespaced` serves.
const NAMESPACE: &str = "elector-system";
const SERVED_NAMESPACE: &str = "default";
/// The name of the elector's objects in the overlays, on its own or before a dash.
const NAME: &str = "elector";

/// The kinds with templates that are written by hand. Helm makes the namespace, if it is asked to.
const BY_HAND: [&str; 7] = [
    "Namespace",
    "ServiceAccount",
    "Deployment",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "ResourceQuota",
    "FlowSchema",
];

/// Words that stand for values until the YAML is written, which leaves a word without quotes, and what takes their place.
const VALUES: [(&str, &str); 7] = [
    (
        "ValueOfLabels: ValueOfLabels",
        "{{- include \"elector.chartLabels\" $ | nindent 4 }}",
    ),
    (
        "ValueOfJudged",
        "{{ append $.Values.namespaces (include \"elector.namespace\" $) | toJson }}",
    ),
    ("ValueOfNamespace", "{{ include \"elector.namespace\" $ }}"),
    ("ValueOfServedNamespace", "{{ $namespace | quote }}"),
    ("ValueOfName", "{{ include \"elector.fullname\" $ }}"),
    (
        "ValueOfAccount",
        "{{ include \"elector.serviceAccountName\" $ }}",
    ),
    (
        "ValueOfActions",
        "{{ include \"elector.validationActions\" $ }}",
    ),
];

/// The file of the chart that an object is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// The definition of LeaseCandidates.
    Definitions,
    /// The policies and their roles: beside the definition all that electors share.
    Policies,
    /// The rights of one elector.
    Rights,
}

/// An object as some of the modes have it.
struct Variant {
    key: [String; 3],
    home: Home,
    object: Value,
    /// There is one in each namespace that is served.
    in_each: bool,
    modes: Vec<&'static str>,
}

/// The generated templates: the path of each in the chart, and its text.
///
/// # Errors
/// When kubectl cannot be had, or an overlay holds what the chart cannot say.
pub(crate) fn templates(workspace: &Path) -> Result<Vec<(&'static str, String)>> {
    let shared: BTreeSet<[String; 3]> = objects(workspace, CLUSTER_WIDE)?.iter().map(key).collect();
    let mut variants: Vec<Variant> = Vec::new();
    for mode in MODES {
        for object in objects(workspace, mode)? {
            let kind = object["kind"].as_str().unwrap_or_default();
            if BY_HAND.contains(&kind) {
                continue;
            }
            let mut variant = Variant::new(object, mode, &shared);
            variant.parametrize(&shared)?;
            match variants
                .iter_mut()
                .find(|known| known.object == variant.object)
            {
                Some(known) => known.modes.push(mode),
                None => variants.push(variant),
            }
        }
    }
    // The order in which kubectl applies them: that of the first overlay that has the object, its variants beside it.
    let order = |variant: &Variant| variants.iter().position(|first| first.key == variant.key);
    let mut sorted: Vec<(Option<usize>, &Variant)> = variants
        .iter()
        .map(|variant| (order(variant), variant))
        .collect();
    sorted.sort_by_key(|(order, _)| *order);
    let of_home = |home: Home| -> Result<(&'static str, String)> {
        let objects = sorted.iter().filter(|(_, variant)| variant.home == home);
        let text: String = objects
            .map(|(_, variant)| variant.template())
            .collect::<Result<_>>()?;
        Ok(home.template(&text))
    };
    [Home::Definitions, Home::Policies, Home::Rights]
        .into_iter()
        .map(of_home)
        .collect()
}

/// `files/monitoring.yaml`: what the overlay `monitoring` has beside the elector. A template reads it, and so takes nothing
/// in it for its own.
///
/// # Errors
/// When kubectl cannot be had.
pub(crate) fn monitoring(workspace: &Path) -> Result<String> {
    let without: BTreeSet<[String; 3]> = objects(workspace, "native")?.iter().map(key).collect();
    let mut more = objects(workspace, "monitoring")?;
    more.retain(|object| !without.contains(&key(object)));
    let text = yaml::document(&json!({"objects": more}))?;
    Ok(format!(
        "# Generated by `cargo xtask codegen` from manifests/overlays/monitoring.\n{text}"
    ))
}

/// `Chart.yaml`.
pub(crate) fn chart() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "\
# Generated by `cargo xtask codegen`.
apiVersion: v2
name: elector
description: Coordinated leader election for Kubernetes
type: application
version: {version}
appVersion: {version}
kubeVersion: '>=1.31.0-0'
keywords: [leader-election, lease, coordination]
annotations:
  artifacthub.io/license: Apache-2.0
"
    )
}

/// The objects of an overlay.
fn objects(workspace: &Path, overlay: &str) -> Result<Vec<Value>> {
    let text = overlays::kustomize(&overlays::folder_in(workspace, overlay))?;
    overlays::objects(&text)
}

/// The name of the elector in a name of an object, replaced.
fn replace_name(name: &mut Value) {
    let rest = name.as_str().and_then(|name| name.strip_prefix(NAME));
    if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('-')) {
        *name = json!(format!("ValueOfName{rest}"));
    }
}

fn replace_namespaces(value: &mut Value, in_each: bool) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if name == "namespace" && value == NAMESPACE {
                    *value = json!("ValueOfNamespace");
                } else if name == "namespace" && in_each && value == SERVED_NAMESPACE {
                    *value = json!("ValueOfServedNamespace");
                } else if name == "values" && *value == json!([SERVED_NAMESPACE, NAMESPACE]) {
                    // A selector of the namespaces that policies judge.
                    *value = json!("ValueOfJudged");
                } else {
                    replace_namespaces(value, in_each);
                }
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| replace_namespaces(value, in_each)),
        _ => {}
    }
}

/// The identity of an object among others in one overlay. A Role takes the place of a ClusterRole, in `namespaced`.
fn key(object: &Value) -> [String; 3] {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    [
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"]),
    ]
}

/// True if the account of the elector is one of its subjects.
fn is_for_the_account(object: &Value) -> bool {
    let subjects = object["subjects"].as_array();
    subjects
        .into_iter()
        .flatten()
        .any(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == NAME)
}

// === impl Home ===

impl Home {
    /// The path of its file, and the text of that with these objects.
    fn template(self, objects: &str) -> (&'static str, String) {
        const HEADER: &str =
            "{{- /* Generated by `cargo xtask codegen` from manifests/overlays. */ -}}\n";
        let (path, condition) = match self {
            Self::Definitions => ("templates/crds.yaml", Some(".Values.crds.enabled")),
            Self::Policies => ("templates/policies.yaml", Some(".Values.policies.enabled")),
            Self::Rights => ("templates/rbac.yaml", None),
        };
        let text = match condition {
            Some(condition) => {
                format!("{HEADER}{{{{- if {condition} }}}}\n{objects}{{{{- end }}}}\n")
            }
            None => format!("{HEADER}{objects}"),
        };
        (path, text)
    }
}

// === impl Variant ===

impl Variant {
    fn new(object: Value, mode: &'static str, shared: &BTreeSet<[String; 3]>) -> Self {
        let key = key(&object);
        let home = if object["kind"] == "CustomResourceDefinition" {
            Home::Definitions
        } else if shared.contains(&key) && !is_for_the_account(&object) {
            Home::Policies
        } else {
            Home::Rights
        };
        Self {
            in_each: mode == "namespaced" && object["metadata"]["namespace"] == SERVED_NAMESPACE,
            key,
            home,
            object,
            modes: vec![mode],
        }
    }

    /// Puts words for values into the object.
    fn parametrize(&mut self, shared: &BTreeSet<[String; 3]>) -> Result<()> {
        let object = &mut self.object;
        let text = object.to_string();
        ensure!(
            !text.contains("{{"),
            "{:?} holds what a template would take for its own",
            self.key
        );
        object["metadata"]["labels"]["ValueOfLabels"] = json!("ValueOfLabels");
        if object["kind"] == "ValidatingAdmissionPolicyBinding" {
            let actions = &mut object["spec"]["validationActions"];
            ensure!(
                *actions == json!(["Deny"]),
                "{:?} does not deny, as the value policies.mode has it",
                self.key
            );
            *actions = json!("ValueOfActions");
        }
        if self.home == Home::Rights {
            replace_name(&mut object["metadata"]["name"]);
            // A Role that all electors share keeps its name.
            if let Some(role) = object.get_mut("roleRef") {
                let is_shared =
                    |known: &[String; 3]| role["kind"] == known[0] && role["name"] == known[2];
                if !shared.iter().any(is_shared) {
                    replace_name(&mut role["name"]);
                }
            }
            let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
            for subject in subjects.into_iter().flatten() {
                if subject["kind"] == "ServiceAccount" && subject["name"] == NAME {
                    subject["name"] = json!("ValueOfAccount");
                }
            }
            // The lock of the electors has their name.
            let rules = object.get_mut("rules").and_then(Value::as_array_mut);
            for rule in rules.into_iter().flatten() {
                let names = rule.get_mut("resourceNames").and_then(Value::as_array_mut);
                names.into_iter().flatten().for_each(replace_name);
            }
        }
        replace_namespaces(object, self.in_each);
        ensure!(
            !object.to_string().contains(NAMESPACE),
            "{:?}: the namespace is left somewhere",
            self.key
        );
        Ok(())
    }

    fn template(&self) -> Result<String> {
        let mut text = yaml::document(&self.object).with_context(|| format!("{:?}", self.key))?;
        for (word, template) in VALUES {
            text = text.replace(word, template);
        }
        if self.home == Home::Definitions {
            let metadata = "metadata:\n";
            let keep = "metadata:\n  {{- if .Values.crds.keep }}\n  annotations:\n    helm.sh/resource-policy: keep\n  {{- end }}\n";
            text = text.replacen(metadata, keep, 1);
        }
        text = format!("---\n{text}");
        if self.in_each {
            text = format!(
                "{{{{- range $namespace := .Values.namespaces }}}}\n{text}{{{{- end }}}}\n"
            );
        }
        if self.modes == MODES {
            return Ok(text);
        }
        let modes: Vec<_> = self
            .modes
            .iter()
            .map(|mode| format!("\"{mode}\""))
            .collect();
        let modes = modes.join(" ");
        Ok(format!(
            "{{{{- if has .Values.mode (list {modes}) }}}}\n{text}{{{{- end }}}}\n"
        ))
    }
}
