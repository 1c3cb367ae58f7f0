//! The rules of each kind for its objects, and the server's additions to them.

mod event;

use elector_api::{
    CandidateApi, FieldError, Lease, LeaseCandidate, Problem, names, validate_candidate,
    validate_candidate_update, validate_lease, validate_lease_update,
};
use serde_json::{Value, json};

use crate::config::Config;
use crate::definition::{DEFINITIONS, established};
use crate::fields::OWNER_REFERENCE;
use crate::kind::{Bucket, Kind};
use crate::store::{ObjectFields, metadata_text};

/// Brings a new object into the form in which it is stored, before it is checked.
pub(crate) fn prepare_create(kind: &Kind, config: &Config, new: &mut ObjectFields) {
    match kind.bucket {
        Bucket::Leases if !config.gate => {
            for name in GATED {
                spec(new).remove(name);
            }
        }
        Bucket::CustomCandidates => {
            new["metadata"]["generation"] = 1.into();
        }
        Bucket::Namespaces => {
            label_with_name(new);
            new.insert("spec".to_owned(), json!({"finalizers": ["kubernetes"]}));
            new.insert("status".to_owned(), json!({"phase": "Active"}));
        }
        Bucket::Other(_) => {
            if kind.status {
                new.remove("status");
            }
            if kind.has_generation() {
                new["metadata"]["generation"] = 1.into();
            }
            if kind.bucket == DEFINITIONS {
                let status = established(new, &config.clock.stamp());
                new.insert("status".to_owned(), status);
            }
        }
        Bucket::Leases | Bucket::Candidates | Bucket::Events => {}
    }
}

/// Brings an update of the status into the form in which it is stored: the rest stays as it was.
pub(crate) fn prepare_status(new: &mut ObjectFields, old: &ObjectFields) {
    let status = new.remove("status");
    *new = old.clone();
    match status {
        Some(status) => new.insert("status".to_owned(), status),
        None => new.remove("status"),
    };
}

/// Brings an update into the form in which it is stored, before it is checked.
pub(crate) fn prepare_update(
    kind: &Kind,
    config: &Config,
    new: &mut ObjectFields,
    old: &ObjectFields,
) {
    // Only the server sets these.
    for name in ["creationTimestamp", "generation"] {
        keep(new, old, name);
    }
    for name in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new["metadata"].get(name).is_none_or(Value::is_null) {
            keep(new, old, name);
        }
    }
    match kind.bucket {
        // A field that the stored object has may be changed; one that it has not stays out.
        Bucket::Leases if !config.gate => {
            for name in GATED
                .into_iter()
                .filter(|name| old["spec"].get(name).is_none())
            {
                spec(new).remove(name);
            }
        }
        Bucket::CustomCandidates if new.get("spec") != old.get("spec") => {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
            new["metadata"]["generation"] = (generation + 1).into();
        }
        Bucket::Namespaces => {
            label_with_name(new);
            for part in ["spec", "status"] {
                if let Some(value) = old.get(part) {
                    new.insert(part.to_owned(), value.clone());
                }
            }
        }
        Bucket::Other(_) => {
            if kind.status {
                match old.get("status") {
                    Some(status) => new.insert("status".to_owned(), status.clone()),
                    None => new.remove("status"),
                };
            }
            if kind.has_generation() && wished(kind, new) != wished(kind, old) {
                let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
                new["metadata"]["generation"] = (generation + 1).into();
            }
        }
        _ => {}
    }
}

/// The fields of an object that say what is wished for.
fn wished<'a>(kind: &Kind, object: &'a ObjectFields) -> Vec<(&'a String, &'a Value)> {
    let is_wish = |name: &str| name != "metadata" && !(kind.status && name == "status");
    let fields = object.iter().filter(|(name, _)| is_wish(name));
    fields.collect()
}

/// The errors of a new object.
pub(crate) fn create_errors(kind: &Kind, new: &ObjectFields) -> Vec<FieldError> {
    let errors = match kind.bucket {
        Bucket::Leases => {
            let lease = Lease::from_value(whole(new));
            beyond(lease.faults(), validate_lease(&lease))
        }
        Bucket::Candidates | Bucket::CustomCandidates => {
            let candidate = candidate(kind, whole(new));
            beyond(candidate.faults(), validate_candidate(&candidate))
        }
        Bucket::Namespaces => {
            let name = metadata_text(new, "name");
            let rules = match name {
                "" => Vec::new(),
                name if name.contains('.') => vec!["must not contain dots".to_owned()],
                name => names::dns_label(name),
            };
            let mut errors: Vec<_> = rules
                .into_iter()
                .map(|rule| FieldError::invalid("metadata.name", name, rule))
                .collect();
            errors.extend(
                metadata_errors(new)
                    .into_iter()
                    .filter(|error| name.is_empty() || error.field != "metadata.name"),
            );
            errors
        }
        Bucket::Events => {
            let mut errors = metadata_errors(new);
            errors.extend(event::create_errors(kind, new));
            errors
        }
        Bucket::Other(_) => metadata_errors(new),
    };
    in_the_order_of_go(new, errors)
}

/// The errors of an update. The API server checks the metadata twice, and says so twice.
pub(crate) fn update_errors(
    kind: &Kind,
    new: &ObjectFields,
    old: &ObjectFields,
) -> Vec<FieldError> {
    let errors = match kind.bucket {
        Bucket::Leases => {
            let (lease, old) = (Lease::from_value(whole(new)), Lease::from_value(whole(old)));
            beyond(lease.faults(), validate_lease_update(&lease, &old))
        }
        Bucket::Candidates | Bucket::CustomCandidates => {
            let (new, old) = (candidate(kind, whole(new)), candidate(kind, whole(old)));
            beyond(new.faults(), validate_candidate_update(&new, &old))
        }
        Bucket::Namespaces | Bucket::Events | Bucket::Other(_) => {
            let (lease, before) = (Lease::from_value(bare(new)), Lease::from_value(bare(old)));
            let mut errors = beyond(lease.faults(), validate_lease_update(&lease, &before));
            if kind.bucket == Bucket::Events {
                errors.extend(event::update_errors(kind, new, old));
            }
            errors
        }
    };
    let errors = in_the_order_of_go(new, errors);
    if kind.custom {
        return errors;
    }
    let (again, rest): (Vec<_>, Vec<_>) = errors
        .into_iter()
        .partition(|error| error.field.starts_with("metadata."));
    // First the rules of any object, then twice those of an update.
    let of_any = |error: &&FieldError| {
        let fields = [
            "metadata.labels",
            "metadata.annotations",
            "metadata.ownerReferences",
        ];
        fields.iter().any(|field| error.field.starts_with(field))
    };
    let mut metadata: Vec<_> = again.iter().filter(of_any).cloned().collect();
    metadata.extend(finalizer_errors(new));
    metadata.extend(again.clone());
    metadata.extend(again);
    metadata.extend(rest);
    metadata
}

/// The errors in the names of finalizers.
fn finalizer_errors(new: &ObjectFields) -> Vec<FieldError> {
    let finalizers = new["metadata"]["finalizers"].as_array();
    let names = finalizers.into_iter().flatten().filter_map(Value::as_str);
    names
        .flat_map(|name| {
            let rules = names::qualified_name(name).into_iter();
            rules.map(move |rule| FieldError::invalid("metadata.finalizers", name, rule))
        })
        .collect()
}

/// Owners that an error repeats have their fields in Go's order.
fn in_the_order_of_go(new: &ObjectFields, mut errors: Vec<FieldError>) -> Vec<FieldError> {
    for error in &mut errors {
        if let Problem::Invalid { value, .. } = &mut error.problem
            && error.field == "metadata.ownerReferences"
            && let Some(owners) = new["metadata"]["ownerReferences"].as_array()
        {
            *value = OWNER_REFERENCE.list_in_order(owners);
        }
    }
    errors
}

/// A namespace carries its name as a label, so that selectors can tell it.
fn label_with_name(namespace: &mut ObjectFields) {
    let name = namespace["metadata"]["name"].clone();
    let labels = meta(namespace).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name;
}

/// The fields of a Lease that the gate guards.
const GATED: [&str; 2] = ["strategy", "preferredHolder"];

/// The errors after the faults: decoding, with its wider limits, has refused what could not be read.
fn beyond(faults: &[FieldError], errors: Vec<FieldError>) -> Vec<FieldError> {
    errors.into_iter().skip(faults.len()).collect()
}

fn candidate(kind: &Kind, object: Value) -> LeaseCandidate {
    let mut candidate = LeaseCandidate::from_value(object);
    candidate.api = CandidateApi::of_api_version(&kind.api_version()).unwrap_or_default();
    candidate
}

/// The errors of the metadata alone, by the rules that all kinds share.
fn metadata_errors(new: &ObjectFields) -> Vec<FieldError> {
    let lease = Lease::from_value(bare(new));
    beyond(lease.faults(), validate_lease(&lease))
}

/// The object as a Lease without a spec; what has no namespace is lent one.
fn bare(object: &ObjectFields) -> Value {
    let mut metadata = object["metadata"].clone();
    if metadata.get("namespace").is_none() {
        metadata["namespace"] = "none".into();
    }
    json!({"metadata": metadata})
}

fn whole(object: &ObjectFields) -> Value {
    Value::Object(object.clone())
}

fn keep(new: &mut ObjectFields, old: &ObjectFields, name: &str) {
    let value = old["metadata"].get(name).cloned();
    match value {
        Some(value) => meta(new).insert(name.to_owned(), value),
        None => meta(new).remove(name),
    };
}

/// The metadata, which every decoded object has.
pub(crate) fn meta(object: &mut ObjectFields) -> &mut ObjectFields {
    part(object, "metadata")
}

fn spec(object: &mut ObjectFields) -> &mut ObjectFields {
    part(object, "spec")
}

fn part<'a>(object: &'a mut ObjectFields, name: &str) -> &'a mut ObjectFields {
    let part = object.entry(name).or_insert_with(|| json!({}));
    if !part.is_object() {
        *part = json!({});
    }
    part.as_object_mut()
        .expect("it was made an object just now")
}
