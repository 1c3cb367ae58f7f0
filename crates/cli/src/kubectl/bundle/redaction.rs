//! The parts of objects that a bundle leaves out.

use std::collections::BTreeMap;

use serde_json::Value;

/// The names of namespaces, each with the one that is written in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct NamespaceAliases(BTreeMap<String, String>);

/// The text in the place of a value that is left out.
const CUT: &str = "<cut>";
/// The container of the electors.
const OWN_CONTAINER: &str = "elector";
/// Whose annotations are no secrets.
const PLAIN: [&str; 2] = ["elector.dev/", "deployment.kubernetes.io/"];

/// Leaves out what may be secret, and what only fills pages: values of environment variables, annotations of others,
/// commands of other containers, and the managers of fields.
pub(super) fn cut_secrets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            for (name, field) in fields {
                match name.as_str() {
                    "annotations" => cut_annotations(field),
                    "env" => cut_environment(field),
                    "containers" | "initContainers" | "ephemeralContainers" => cut_commands(field),
                    _ => {}
                }
                cut_secrets(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_secrets),
        _ => {}
    }
}

fn cut_annotations(annotations: &mut Value) {
    for (name, value) in annotations.as_object_mut().into_iter().flatten() {
        if !PLAIN.iter().any(|plain| name.starts_with(plain)) {
            *value = CUT.into();
        }
    }
}

fn cut_environment(variables: &mut Value) {
    for variable in variables.as_array_mut().into_iter().flatten() {
        if let Some(value) = variable.get_mut("value") {
            *value = CUT.into();
        }
    }
}

fn cut_commands(containers: &mut Value) {
    let containers = containers.as_array_mut().into_iter().flatten();
    for container in containers.filter(|each| each["name"] != OWN_CONTAINER) {
        for part in [
            "command",
            "args",
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if let Some(value) = container.get_mut(part) {
                *value = CUT.into();
            }
        }
    }
}

// === impl NamespaceAliases ===

impl NamespaceAliases {
    /// Adds the namespaces of these objects.
    pub(super) fn collect(&mut self, value: &Value, kept: &str) {
        match value {
            Value::Object(fields) => {
                let is_namespace = fields.get("kind").is_some_and(|kind| kind == "Namespace");
                let named = is_namespace.then(|| &value["metadata"]["name"]);
                for name in fields.get("namespace").into_iter().chain(named) {
                    self.add(name.as_str().unwrap_or_default(), kept);
                }
                fields.values().for_each(|field| self.collect(field, kept));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, kept)),
            _ => {}
        }
    }

    fn add(&mut self, name: &str, kept: &str) {
        // Every cluster has these.
        let is_usual = name == "default" || name.starts_with("kube-");
        if name.is_empty() || name == kept || is_usual || self.0.contains_key(name) {
            return;
        }
        let alias = format!("namespace-{}", self.0.len() + 1);
        self.0.insert(name.to_owned(), alias);
    }

    /// Replaces the names in all texts of a value. Names of fields stay.
    pub(super) fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.replaced(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.replace(field)),
            _ => {}
        }
    }

    /// A text in which each name that is a word of its own is another.
    pub(super) fn replaced(&self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let mut found = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            found.push_str(before);
            found.push_str(self.0.get(word).map_or(word, String::as_str));
            rest = after;
        }
        found + rest
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_be_secret_is_cut_and_the_rest_stays() {
        let mut pod = json!({
            "metadata": {
                "name": "elector-0", "managedFields": [{"manager": "x"}],
                "annotations": {"elector.dev/token": "7", "vault.example/secret": "s3cret"},
            },
            "spec": {"containers": [
                {"name": "elector", "args": ["--leader-elect"], "env": [
                    {"name": "HTTPS_PROXY", "value": "http://u:s3cret@p"},
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ]},
                {"name": "sidecar", "args": ["--password=s3cret"], "image": "sidecar:1"},
            ]},
        });
        cut_secrets(&mut pod);
        assert!(!pod.to_string().contains("s3cret"), "{pod}");
        assert_eq!(pod["metadata"]["annotations"]["elector.dev/token"], "7");
        assert_eq!(pod["metadata"]["managedFields"], Value::Null);
        let containers = &pod["spec"]["containers"];
        assert_eq!(containers[0]["args"], json!(["--leader-elect"]));
        assert_eq!(
            containers[0]["env"][1]["valueFrom"]["fieldRef"]["fieldPath"],
            "metadata.name"
        );
        assert_eq!(containers[1]["image"], "sidecar:1");
    }

    #[test]
    fn names_of_namespaces_are_replaced_as_words_of_their_own() {
        let mut aliases = NamespaceAliases::default();
        let objects = json!([
            {"metadata": {"namespace": "shop", "name": "web"}},
            {"metadata": {"namespace": "kube-system"}},
            {"metadata": {"namespace": "elector-system"}},
            {"kind": "Namespace", "metadata": {"name": "till"}},
        ]);
        aliases.collect(&objects, "elector-system");
        let said = "shop/web of system:serviceaccount:shop:web, shop-0, till. kube-system elector-system workshop";
        let expected = "namespace-1/web of system:serviceaccount:namespace-1:web, shop-0, namespace-2. kube-system \
                        elector-system workshop";
        assert_eq!(aliases.replaced(said), expected);
        let mut value = json!({"shop": ["shop", {"till": "ü till"}]});
        aliases.replace(&mut value);
        let expected = json!({"shop": ["namespace-1", {"till": "ü namespace-2"}]});
        assert_eq!(value, expected);
    }
}
