//! The rules for the metadata of any namespaced object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

use super::names::{dns_label, label_value, qualified_name};
use crate::field::FieldError;

/// The most that all annotations may hold together, keys and values, in bytes.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Checks the metadata of an object to be created. `name_rule` is that of the kind; a generated name is in its place
/// already, as the server generates it first.
pub(super) fn validate_metadata(
    metadata: &ObjectMeta,
    name_rule: impl Fn(&str) -> Vec<String>,
    errors: &mut Vec<FieldError>,
) {
    let mut rules = |path: &str, text: &str, rules: Vec<String>| {
        errors.extend(
            rules
                .into_iter()
                .map(|rule| FieldError::invalid(path, text, rule)),
        );
    };
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    if !name.is_empty() {
        rules("metadata.name", name, name_rule(name));
    }
    if !namespace.is_empty() {
        rules("metadata.namespace", namespace, dns_label(namespace));
    }
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    }
    if namespace.is_empty() {
        errors.push(FieldError::required("metadata.namespace", ""));
    }
    validate_maps(metadata, errors);
    validate_owners(
        metadata.owner_references.as_deref().unwrap_or_default(),
        errors,
    );
    for finalizer in metadata.finalizers.iter().flatten() {
        let rules = qualified_name(finalizer).into_iter();
        errors.extend(
            rules.map(|rule| FieldError::invalid("metadata.finalizers", finalizer.as_str(), rule)),
        );
    }
}

/// Checks the metadata of an object that replaces another. Where a write leaves uid or deletionTimestamp out, the
/// server keeps its own; creationTimestamp and generation are kept, with whatever values a write has.
pub(super) fn validate_metadata_update(
    metadata: &ObjectMeta,
    old: &ObjectMeta,
    errors: &mut Vec<FieldError>,
) {
    let mut immutable = |path: &str, same: bool, value: Value| {
        if !same {
            errors.push(FieldError::immutable(path, value));
        }
    };
    immutable(
        "metadata.name",
        metadata.name == old.name,
        text_value(metadata.name.as_ref()),
    );
    let namespace = text_value(metadata.namespace.as_ref());
    immutable(
        "metadata.namespace",
        metadata.namespace == old.namespace,
        namespace,
    );
    let kept = metadata
        .uid
        .as_ref()
        .is_none_or(|uid| uid.is_empty() || Some(uid) == old.uid.as_ref());
    immutable("metadata.uid", kept, text_value(metadata.uid.as_ref()));
    if let Some(time) = &metadata.deletion_timestamp {
        let same = metadata.deletion_timestamp == old.deletion_timestamp;
        immutable(
            "metadata.deletionTimestamp",
            same,
            time.0.to_string().into(),
        );
    }
    if metadata
        .resource_version
        .as_ref()
        .is_none_or(String::is_empty)
    {
        // The server prints the number that it made of an empty text.
        let rule = "must be specified for an update";
        errors.push(FieldError::invalid("metadata.resourceVersion", 0, rule));
    }
    validate_maps(metadata, errors);
    validate_owners(
        metadata.owner_references.as_deref().unwrap_or_default(),
        errors,
    );
    if old.deletion_timestamp.is_some() {
        let had = old.finalizers.as_deref().unwrap_or_default();
        let added: Vec<_> = metadata
            .finalizers
            .iter()
            .flatten()
            .filter(|one| !had.contains(one))
            .collect();
        if !added.is_empty() {
            let added: Vec<_> = added.iter().map(|one| format!("{one:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
}

fn validate_maps(metadata: &ObjectMeta, errors: &mut Vec<FieldError>) {
    let invalid = |path: &'static str, text: &str, rules: Vec<String>| {
        let text = text.to_owned();
        rules
            .into_iter()
            .map(move |rule| FieldError::invalid(path, text.as_str(), rule))
    };
    for (key, value) in metadata.labels.iter().flatten() {
        errors.extend(invalid("metadata.labels", key, qualified_name(key)));
        errors.extend(invalid("metadata.labels", value, label_value(value)));
    }
    let mut size = 0;
    for (key, value) in metadata.annotations.iter().flatten() {
        errors.extend(invalid(
            "metadata.annotations",
            key,
            qualified_name(&key.to_lowercase()),
        ));
        size += key.len() + value.len();
    }
    if size > MOST_ANNOTATIONS {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            MOST_ANNOTATIONS,
        ));
    }
}

fn validate_owners(owners: &[OwnerReference], errors: &mut Vec<FieldError>) {
    for owner in owners {
        let version = owner.api_version.rsplit('/').next();
        if version.is_none_or(str::is_empty) {
            let field = "metadata.ownerReferences.apiVersion";
            let rule = "version must not be empty";
            errors.push(FieldError::invalid(field, owner.api_version.as_str(), rule));
        }
        for (field, text, rule) in [
            ("kind", owner.kind.as_str(), "must not be empty"),
            ("name", owner.name.as_str(), "must not be empty"),
            ("uid", owner.uid.as_str(), "must not be empty"),
        ] {
            if text.is_empty() {
                errors.push(FieldError::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    text,
                    rule,
                ));
            }
        }
    }
    let mut controllers = owners.iter().filter(|owner| owner.controller == Some(true));
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let rule = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            first.kind, first.name, second.kind, second.name
        );
        let value = serde_json::to_value(owners).unwrap_or_default();
        errors.push(FieldError::invalid("metadata.ownerReferences", value, rule));
    }
}

/// A text or `null` as a value of an error.
fn text_value(text: Option<&String>) -> Value {
    text.map_or(Value::Null, |text| Value::from(text.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{validate_lease, validate_lease_update};
    use crate::field::FieldError;
    use crate::lease::Lease;

    #[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
    fn lease(metadata: Value) -> Lease {
        let mut wire = json!({"namespace": "ns", "name": "l", "uid": "u", "resourceVersion": "1"});
        for (name, value) in metadata.as_object().unwrap() {
            wire[name] = value.clone();
        }
        let lease = Lease::from_value(json!({ "metadata": wire }));
        assert_eq!(lease.faults(), []);
        lease
    }

    /// Compares the beginnings: the rules for names are long, and have tests of their own.
    fn assert_begin(errors: &[FieldError], expected: &[&str]) {
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let alike = |(text, start): (&String, &&str)| text.starts_with(start);
        let holds = texts.len() == expected.len() && texts.iter().zip(expected).all(alike);
        assert!(holds, "{texts:#?} do not begin with {expected:#?}");
    }

    #[test]
    fn the_metadata_of_a_new_object() {
        let owner =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true});
        let cases: [(Value, &[&str]); 12] = [
            (
                json!({"labels": {"a/b": "c", "d": ""}, "annotations": {"A.b/C": "x\n"}, "finalizers": ["a/b"]}),
                &[],
            ),
            (json!({"ownerReferences": [owner], "generation": -1}), &[]),
            (
                json!({"name": ""}),
                &["metadata.name: Required value: name or generateName is required"],
            ),
            (
                json!({"namespace": null}),
                &["metadata.namespace: Required value"],
            ),
            (
                json!({"name": "A"}),
                &[
                    "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alp",
                ],
            ),
            (
                json!({"namespace": "a.b"}),
                &[
                    "metadata.namespace: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case ",
                ],
            ),
            (
                json!({"labels": {"-": "-"}}),
                &[
                    "metadata.labels: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' o",
                    "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanume",
                ],
            ),
            (
                json!({"annotations": {"a": "x".repeat(256 * 1024 - 1)}}),
                &[],
            ),
            (
                json!({"annotations": {"a": "x".repeat(256 * 1024)}}),
                &["metadata.annotations: Too long: may not be more than 262144 bytes"],
            ),
            (
                json!({"finalizers": ["a b"]}),
                &[
                    "metadata.finalizers: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-",
                ],
            ),
            (
                json!({"ownerReferences": [{"apiVersion": "apps/", "kind": "", "name": "", "uid": ""}]}),
                &[
                    "metadata.ownerReferences.apiVersion: Invalid value: \"apps/\": version must not be empty",
                    "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                    "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                    "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
                ],
            ),
            (
                json!({"ownerReferences": [owner, owner]}),
                &["metadata.ownerReferences: Invalid value: [{"],
            ),
        ];
        for (metadata, expected) in cases {
            assert_begin(&validate_lease(&lease(metadata)), expected);
        }
    }

    #[test]
    fn the_metadata_of_a_new_revision() {
        let old = lease(json!({
            "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2,
            "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["a/b"],
        }));
        let cases: [(Value, &[&str]); 8] = [
            (
                json!({"resourceVersion": "7", "uid": null, "finalizers": []}),
                &[],
            ),
            (
                json!({"creationTimestamp": "2026-01-01T00:00:01Z", "generation": 1, "finalizers": ["a/b"]}),
                &[],
            ),
            (
                json!({"name": "m"}),
                &["metadata.name: Invalid value: \"m\": field is immutable"],
            ),
            (
                json!({"namespace": "m"}),
                &["metadata.namespace: Invalid value: \"m\": field is immutable"],
            ),
            (
                json!({"uid": "v"}),
                &["metadata.uid: Invalid value: \"v\": field is immutable"],
            ),
            (
                json!({"deletionTimestamp": "2026-01-03T00:00:00Z"}),
                &[
                    "metadata.deletionTimestamp: Invalid value: \"2026-01-03T00:00:00Z\": field is immutable",
                ],
            ),
            (
                json!({"resourceVersion": ""}),
                &["metadata.resourceVersion: Invalid value: 0: must be specified for an update"],
            ),
            (
                json!({"finalizers": ["a/b", "c/d"]}),
                &[
                    "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being delete",
                ],
            ),
        ];
        for (metadata, expected) in cases {
            assert_begin(&validate_lease_update(&lease(metadata), &old), expected);
        }
    }
}
