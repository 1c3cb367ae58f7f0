//! Creates and updates.

use http::StatusCode;
use serde_json::Value;

use crate::config::Config;
use crate::failure::Failure;
use crate::kind::{Bucket, Kind};
use crate::options;
use crate::rules;
use crate::store::{ObjectFields, StoreKey, StoreState, Stored, metadata_text};

use elector_api::FieldError;

/// The answer to a write.
#[derive(Debug)]
pub(crate) struct WrittenObject {
    pub(crate) code: StatusCode,
    pub(crate) fields: ObjectFields,
}

/// One transaction that writes, dry or not.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    pub(crate) state: &'a mut StoreState,
    pub(crate) config: &'a Config,
    pub(crate) kind: &'static Kind,
    /// True if it is about the status alone.
    pub(crate) status: bool,
    pub(crate) dry_run: bool,
}

/// The origin of an update; they differ in their treatment of a uid, and of an object that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Put,
    Patch,
    Apply,
}

/// The longest beginning of a generated name.
const LONGEST_GENERATED: usize = 58;

// === impl Transaction ===

impl Transaction<'_> {
    /// Makes a new object.
    pub(crate) fn create(
        &mut self,
        namespace: &str,
        mut new: ObjectFields,
    ) -> Result<WrittenObject, Failure> {
        self.place(namespace, &mut new)?;
        self.admit(namespace)?;
        let beginning = metadata_text(&new, "generateName").to_owned();
        if metadata_text(&new, "name").is_empty() && !beginning.is_empty() {
            let cut = beginning
                .char_indices()
                .nth(LONGEST_GENERATED)
                .map_or(beginning.len(), |(end, _)| end);
            let name = format!("{}{}", &beginning[..cut], self.state.name_ending());
            new["metadata"]["name"] = name.into();
        }
        let uid = self.state.uid();
        let now = self.config.clock.stamp();
        let revision = metadata_text(&new, "resourceVersion")
            .parse::<u64>()
            .unwrap_or_default();
        let meta = rules::meta(&mut new);
        for name in [
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            meta.remove(name);
        }
        meta.insert("uid".to_owned(), uid.into());
        meta.insert("creationTimestamp".to_owned(), now.into());
        rules::prepare_create(self.kind, self.config, &mut new);

        let name = metadata_text(&new, "name").to_owned();
        let errors = rules::create_errors(self.kind, &new);
        if !errors.is_empty() {
            return Err(Failure::invalid(self.kind, &name, &errors));
        }
        if revision != 0 {
            return Err(Failure::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let key = self.key(namespace, &name);
        if let Some(existing) = self.current(&key) {
            return Err(Failure::already_exists(
                self.kind,
                &name,
                existing.is_deleting(),
            ));
        }
        if !self.dry_run {
            new = self.state.put(self.kind.bucket, key, new).fields().clone();
        }
        Ok(WrittenObject {
            code: StatusCode::CREATED,
            fields: new,
        })
    }

    /// Replaces an object, or makes it where the kind allows that.
    pub(crate) fn update(
        &mut self,
        namespace: &str,
        name: &str,
        mut new: ObjectFields,
        how: Update,
    ) -> Result<WrittenObject, Failure> {
        self.place(namespace, &mut new)?;
        match metadata_text(&new, "name") {
            "" => {
                return Err(Failure::bad_request(format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be provided"
                )));
            }
            given if given != name => {
                return Err(Failure::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({name})"
                )));
            }
            _ => {}
        }
        self.admit(namespace)?;
        let key = self.key(namespace, name);
        let given = metadata_text(&new, "uid");
        let Some(old) = self.current(&key) else {
            let creates = match how {
                Update::Put => self.kind.put_creates,
                Update::Patch => false,
                Update::Apply => true,
            };
            if !creates || self.status {
                return Err(Failure::not_found(self.kind, name));
            }
            if !given.is_empty() && how == Update::Apply {
                let why = format!(
                    "uid mismatch: the provided object specified uid {given}, and no existing object was found"
                );
                return Err(Failure::conflict(self.kind, name, &why));
            }
            if !given.is_empty() {
                return Err(self.other_uid(&key, given, ""));
            }
            rules::meta(&mut new).remove("resourceVersion");
            return self.create(namespace, new);
        };
        if how == Update::Put && !given.is_empty() && given != old.meta("uid") {
            return Err(self.other_uid(&key, given, old.meta("uid")));
        }
        self.check_revision(&old, &mut new)?;
        if self.status {
            rules::prepare_status(&mut new, old.fields());
        } else {
            rules::prepare_update(self.kind, self.config, &mut new, old.fields());
        }
        let errors = rules::update_errors(self.kind, &new, old.fields());
        if !errors.is_empty() {
            return Err(Failure::invalid(self.kind, name, &errors));
        }
        let finalized = new["metadata"].get("finalizers").is_none();
        if old.is_deleting() && finalized {
            // The last finalizer is gone, and so is the object. The answer keeps the old revision.
            if !self.dry_run {
                self.state.remove(self.kind.bucket, &key);
            }
        } else if new != *old.fields() && !self.dry_run {
            new = self.state.put(self.kind.bucket, key, new).fields().clone();
        }
        Ok(WrittenObject {
            code: StatusCode::OK,
            fields: new,
        })
    }

    pub(crate) fn current(&self, key: &StoreKey) -> Option<std::sync::Arc<Stored>> {
        self.state.table(self.kind.bucket).object(key).cloned()
    }

    pub(crate) fn key(&self, namespace: &str, name: &str) -> StoreKey {
        StoreKey::new(if self.kind.namespaced { namespace } else { "" }, name)
    }

    /// Puts an object into the namespace of its path.
    fn place(&self, namespace: &str, new: &mut ObjectFields) -> Result<(), Failure> {
        let given = metadata_text(new, "namespace");
        if !given.is_empty() && given != namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if self.kind.namespaced {
            rules::meta(new).insert("namespace".to_owned(), namespace.into());
        }
        Ok(())
    }

    /// Checks that the namespace exists and takes objects; makes it where that is so configured.
    fn admit(&mut self, namespace: &str) -> Result<(), Failure> {
        if !self.kind.namespaced {
            return Ok(());
        }
        let key = StoreKey::new("", namespace);
        let namespaces = self.state.table(Bucket::Namespaces);
        match namespaces.object(&key) {
            Some(_) => Ok(()),
            None if self.config.auto_namespaces => {
                add_namespace(self.state, self.config, namespace);
                Ok(())
            }
            None => Err(Failure::not_found(Kind::namespace(), namespace)),
        }
    }

    /// Compares the revision of an update with the stored one.
    fn check_revision(&self, old: &Stored, new: &mut ObjectFields) -> Result<(), Failure> {
        let name = &old.key().name;
        let given = metadata_text(new, "resourceVersion");
        let revision = if given.is_empty() {
            0
        } else {
            given.parse().map_err(|_| {
                let error = options::revision(given).err().unwrap_or_default();
                // The update's own parser does not name the field.
                Failure::internal(
                    error
                        .rsplit_once(": strconv")
                        .map_or(error.clone(), |(_, end)| format!("strconv{end}")),
                )
            })?
        };
        match revision {
            0 if self.kind.blind_updates => {
                let meta = rules::meta(new);
                meta.insert(
                    "resourceVersion".to_owned(),
                    old.revision().to_string().into(),
                );
                Ok(())
            }
            0 => {
                let rule = "must be specified for an update";
                let error = FieldError::invalid("metadata.resourceVersion", 0, rule);
                Err(Failure::invalid_resource(self.kind, name, &[error]))
            }
            revision if revision != old.revision() => Err(Failure::modified(self.kind, name)),
            _ => Ok(()),
        }
    }

    fn other_uid(&self, key: &StoreKey, given: &str, stored: &str) -> Failure {
        let path = format!(
            "/registry/{}/{}/{}",
            self.kind.bucket.path(),
            key.namespace,
            key.name
        );
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {given}, UID in object meta: {stored}"
        );
        Failure::conflict(self.kind, &key.name, &why)
    }
}

/// Makes a namespace.
pub(crate) fn add_namespace(state: &mut StoreState, config: &Config, name: &str) {
    let kind = Kind::namespace();
    let mut fields = ObjectFields::new();
    let uid = state.uid();
    let metadata =
        serde_json::json!({"name": name, "uid": uid, "creationTimestamp": config.clock.stamp()});
    fields.insert("metadata".to_owned(), metadata);
    rules::prepare_create(kind, config, &mut fields);
    state.put(Bucket::Namespaces, StoreKey::new("", name), fields);
}

/// The metadata value of that name, `Null` where it is absent.
pub(crate) fn meta<'a>(fields: &'a ObjectFields, name: &str) -> &'a Value {
    &fields["metadata"][name]
}
