//! Deletes.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::kind::Bucket;
use crate::options::DeleteOptions;
use crate::rules;
use crate::selector::Selector;
use crate::store::{ObjectFields, StoreKey, Stored};
use crate::write::{Transaction, meta};

/// The answer to a delete.
#[derive(Debug)]
pub(crate) enum Removed {
    /// It is gone: a `Status`.
    Gone(Value),
    /// It stays until its finalizers are gone.
    Waiting(ObjectFields),
}

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

// === impl Transaction ===

impl Transaction<'_> {
    /// Deletes an object, or asks its finalizers to let it go.
    pub(crate) fn delete(
        &mut self,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Removed, Failure> {
        let key = self.key(namespace, name);
        if self.kind.bucket == Bucket::Namespaces && IMMORTAL.contains(&name) {
            return Err(Failure::forbidden(
                self.kind,
                name,
                "this namespace may not be deleted",
            ));
        }
        let Some(object) = self.current(&key) else {
            return Err(Failure::not_found(self.kind, name));
        };
        self.check_preconditions(&object, options)?;
        if !meta(object.fields(), "finalizers").is_null() {
            return Ok(Removed::Waiting(self.mark(&key, &object)));
        }
        if !self.dry_run {
            if self.kind.bucket == Bucket::Namespaces {
                self.empty(name);
            }
            self.state.remove(self.kind.bucket, &key);
        }
        if self.kind.bucket == Bucket::Namespaces {
            let mut fields = object.fields().clone();
            fields.insert("status".to_owned(), json!({"phase": "Terminating"}));
            return Ok(Removed::Waiting(fields));
        }
        let mut details =
            json!({"name": name, "kind": self.kind.plural, "uid": object.meta("uid")});
        if !self.kind.group.is_empty() {
            details["group"] = self.kind.group.into();
        }
        Ok(Removed::Gone(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        })))
    }

    /// Deletes the selected objects and returns them.
    pub(crate) fn delete_all(
        &mut self,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<ObjectFields> {
        let objects: Vec<_> = self
            .state
            .table(self.kind.bucket)
            .objects(namespace)
            .filter(|object| selector.matches(object.fields()))
            .cloned()
            .collect();
        for object in &objects {
            let StoreKey { namespace, name } = object.key();
            // These objects cannot be missing, and there are no preconditions.
            let _ = self.delete(namespace, name, &DeleteOptions::default());
        }
        objects
            .iter()
            .map(|object| object.fields().clone())
            .collect()
    }

    fn check_preconditions(&self, object: &Stored, options: &DeleteOptions) -> Result<(), Failure> {
        let name = &object.key().name;
        if let Some(given) = options
            .uid
            .as_deref()
            .filter(|uid| *uid != object.meta("uid"))
        {
            let stored = object.meta("uid");
            let why = format!(
                "the UID in the precondition ({given}) does not match the UID in record ({stored}). The object might \
                 have been deleted and then recreated"
            );
            return Err(Failure::delete_precondition(self.kind, name, &why));
        }
        let stored = object.meta("resourceVersion");
        if let Some(given) = options
            .resource_version
            .as_deref()
            .filter(|version| *version != stored)
        {
            let why = format!(
                "the ResourceVersion in the precondition ({given}) does not match the ResourceVersion in record \
                 ({stored}). The object might have been modified"
            );
            return Err(Failure::delete_precondition(self.kind, name, &why));
        }
        Ok(())
    }

    /// Notes that the deletion was asked for; the first time counts.
    fn mark(&mut self, key: &StoreKey, object: &Stored) -> ObjectFields {
        let mut fields = object.fields().clone();
        if object.is_deleting() {
            return fields;
        }
        let now = self.config.clock.stamp();
        let metadata = rules::meta(&mut fields);
        metadata.insert("deletionTimestamp".to_owned(), now.into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), (generation + 1).into());
        }
        if self.dry_run {
            return fields;
        }
        self.state
            .put(self.kind.bucket, key.clone(), fields)
            .fields()
            .clone()
    }

    /// Removes everything in a namespace, as the namespace controller of a whole cluster would.
    fn empty(&mut self, namespace: &str) {
        let buckets: Vec<_> = self.state.tables().map(|(bucket, _)| bucket).collect();
        for bucket in buckets {
            let keys: Vec<_> = self
                .state
                .table(bucket)
                .objects(Some(namespace))
                .map(|object| object.key().clone())
                .collect();
            for key in keys {
                self.state.remove(bucket, &key);
            }
        }
    }
}
