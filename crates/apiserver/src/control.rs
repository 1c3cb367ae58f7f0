//! Operations on the server from outside of its API: the store read and written past every rule, put back, compacted,
//! and other LeaseCandidates served.

use http::Method;
use serde_json::{Map, Value, json};

use crate::config::{Config, NativeCandidates, OtherKinds};
use crate::definition::{DEFINITIONS, KindDefinition, established};
use crate::kind::{Bucket, Kind};
use crate::rules;
use crate::server::ApiServer;
use crate::store::{Backup, ChangeKind, ObjectTable, StoreKey, StoreState};

/// A change of an object, as the history of the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    /// The resource as `plural.group`.
    pub resource: String,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The object after the change, or as it last was. The fields `apiVersion` and `kind` are missing.
    pub object: Value,
}

// === impl ApiServer ===

/// Where these name a `resource`, it is a plural such as `leases`, or a plural with its group such as
/// `leasecandidates.elector.dev`; the plural `leasecandidates` alone means the built-in ones. Objects are given and
/// taken without `apiVersion` and `kind`, as they are stored. An object is named by its namespace, empty where it has
/// none, and its name.
impl ApiServer {
    /// The present revision of the store.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// Forgets all history: older revisions answer 410 from now on, as after a compaction of etcd.
    pub fn compact(&self) {
        self.inner.store.with(StoreState::compact);
    }

    /// The present contents of the store, to be [restored](Self::restore) later.
    #[must_use]
    pub fn backup(&self) -> Backup {
        self.inner.store.with(|state| state.backup())
    }

    /// Puts the store back to an older version, as a restore of etcd from a backup does: objects, revision and history
    /// are those of the backup, and what came later has never been. New objects get uids that were never given out.
    ///
    /// Watches that are open stay so and hear nothing any more, like those of an API server that has not noticed yet;
    /// [`Faults::break_watches`](crate::Faults::break_watches) ends those of a client, as the restart of its API server does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use elector_apiserver::{ApiServer, Config};
    ///
    /// let server = ApiServer::new(Config::default());
    /// let backup = server.backup();
    /// server.put("leases", ("default", "app"), |_| {});
    /// server.restore(&backup);
    /// assert_eq!(server.object("leases", ("default", "app")), None);
    /// assert_eq!(server.revision(), backup.revision());
    /// # }
    /// ```
    pub fn restore(&self, backup: &Backup) {
        self.inner.store.with(|state| state.restore(backup));
        self.inner.follow_definitions();
    }

    /// [Restores](Self::restore) an older version as `etcdutl snapshot restore --bump-revision N --mark-compacted` does:
    /// objects keep the revisions that they had, the next change has one that is `bump` higher than that of the backup,
    /// and who asks for anything between hears 410.
    pub fn restore_and_bump(&self, backup: &Backup, bump: u64) {
        let store = &self.inner.store;
        store.with(|state| state.restore_and_bump(backup, bump));
        self.inner.follow_definitions();
    }

    /// The number of open watches.
    #[must_use]
    pub fn watches(&self) -> usize {
        self.inner.store.with(|state| {
            let tables = state.tables();
            tables.map(|(_, table)| table.subscriptions()).sum()
        })
    }

    /// Serves other LeaseCandidates from now on. Discovery and the paths of objects follow; watches of what is no longer
    /// served end, once they have reported all that happened.
    ///
    /// Objects of built-in versions stay in the store, and are there again when one of these versions is. Custom
    /// objects go with their definition. A real server changes its built-in versions by a restart:
    /// [`Faults::break_watches`](crate::Faults::break_watches) does to a client's watches what that does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use elector_apiserver::{ApiServer, Config, NativeCandidates};
    ///
    /// let server = ApiServer::new(Config::default());
    /// server.serve_candidates(NativeCandidates::Absent, true);
    /// # }
    /// ```
    pub fn serve_candidates(&self, native: NativeCandidates, custom: bool) {
        self.inner.served.set(&Config {
            native,
            custom_candidates: custom,
            ..self.inner.config.clone()
        });
        if !custom {
            let custom = Bucket::CustomCandidates;
            self.inner.store.with(|state| state.clear(custom));
        }
        self.inner.faults.wake();
    }

    /// Stores an object of any kind that is served, whole and with its `apiVersion` and `kind`, in the place of the one of
    /// its name: as [`put`](Self::put), past every rule. The namespace is `default` where a kind with namespaces names none.
    ///
    /// Where the configuration takes any kind ([`OtherKinds::Any`]), a custom kind that nothing has defined is served from
    /// then on, under `plural`, and has namespaces if the object has one.
    ///
    /// # Panics
    ///
    /// When it has no `apiVersion`, `kind` or name, or its kind is not served and cannot be.
    pub fn store(&self, object: &Value, plural: &str) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, named) = (text(&object["apiVersion"]), text(&object["kind"]));
        let metadata = &object["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        assert!(
            !api_version.is_empty() && !named.is_empty() && !name.is_empty(),
            "an object needs an apiVersion, a kind and a name: {object}"
        );
        let kind = self.kind_of(&api_version, &named, plural, !namespace.is_empty());
        let namespace = match (kind.namespaced, namespace.as_str()) {
            (true, "") => "default",
            (true, namespace) => namespace,
            (false, _) => "",
        };
        self.put(&kind.resource(), (namespace, &name), |fields| {
            let given = object.as_object().into_iter().flatten();
            let given = given.filter(|(field, _)| !matches!(field.as_str(), "apiVersion" | "kind"));
            let stored = std::mem::replace(
                fields,
                given
                    .map(|(field, value)| (field.clone(), value.clone()))
                    .collect(),
            );
            let metadata = rules::meta(fields);
            for (field, value) in stored["metadata"].as_object().into_iter().flatten() {
                if matches!(field.as_str(), "namespace" | "uid" | "creationTimestamp") {
                    metadata.insert(field.clone(), value.clone());
                }
            }
        });
    }

    /// The kind of an object, learned where nothing has defined it.
    fn kind_of(
        &self,
        api_version: &str,
        kind: &str,
        plural: &str,
        namespaced: bool,
    ) -> &'static Kind {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let mut served = self.inner.served.kinds().into_iter();
        let is_same = |served: &&Kind| {
            (served.group, served.version, served.kind) == (group, version, kind) && !served.guessed
        };
        if let Some(served) = served.find(is_same) {
            return served;
        }
        let path: &[_] = match namespaced {
            true => &["apis", group, version, "namespaces", "", plural],
            false => &["apis", group, version, plural, ""],
        };
        let shown = match self.inner.config.other_kinds {
            OtherKinds::Any => KindDefinition::of_path(&Method::GET, path),
            OtherKinds::Refused | OtherKinds::Defined => None,
        };
        let (guess, _) = shown.unwrap_or_else(|| {
            panic!(
                "{api_version} {kind} is no kind of this server: it is not built in, and not of a group of its own"
            )
        });
        let definition = KindDefinition::named(guess.kind(), kind);
        self.inner.served.learn_object(definition)
    }

    /// An object as [`object`](Self::object) has it, with its `apiVersion` and `kind`.
    #[must_use]
    pub fn stored(&self, resource: &str, name: (&str, &str)) -> Option<Value> {
        let bucket = self
            .inner
            .store
            .with(|state| self.find(state, resource, name))?
            .0;
        let kinds = self
            .inner
            .served
            .kinds()
            .into_iter()
            .chain(Kind::own(resource));
        let kind = kinds
            .filter(|kind| kind.bucket == bucket)
            .find(|kind| kind.is_named(resource))?;
        let mut object = self.object(resource, name)?;
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.into();
        Some(object)
    }

    /// An object as it is stored.
    #[must_use]
    pub fn object(&self, resource: &str, name: (&str, &str)) -> Option<Value> {
        self.inner.store.with(|state| {
            let (bucket, key) = self.find(state, resource, name)?;
            let object = state.table(bucket).object(&key)?;
            Some(Value::Object(object.fields().clone()))
        })
    }

    /// Creates an object or changes the one that is there, past every rule, as a program does that writes to etcd, or an
    /// API server of another release. What is created has `namespace`, `name`, `uid` and `creationTimestamp`, and an
    /// empty `spec` where this server was made for the kind. Revision and watches follow as after any write. An object
    /// without a namespace has an empty one.
    ///
    /// # Panics
    ///
    /// When there is no such resource.
    pub fn put(
        &self,
        resource: &str,
        (namespace, name): (&str, &str),
        change: impl FnOnce(&mut Map<String, Value>),
    ) {
        let bucket = self.buckets(resource).next();
        let bucket = bucket.unwrap_or_else(|| panic!("{resource} is no resource of this server"));
        let now = self.inner.config.clock.stamp();
        self.inner.store.with(|state| {
            let key = StoreKey::new(namespace, name);
            let known = state
                .table(bucket)
                .object(&key)
                .map(|object| object.fields().clone());
            let mut fields = known.unwrap_or_else(|| {
                let mut metadata =
                    json!({"name": name, "uid": state.uid(), "creationTimestamp": now});
                let mut fields = Map::new();
                if !matches!(bucket, Bucket::Other(_)) {
                    fields.insert("spec".to_owned(), json!({}));
                }
                if !namespace.is_empty() || fields.contains_key("spec") {
                    metadata["namespace"] = namespace.into();
                }
                fields.insert("metadata".to_owned(), metadata);
                fields
            });
            change(&mut fields);
            if bucket == DEFINITIONS {
                fields.insert("status".to_owned(), established(&fields, &now));
            }
            state.put(bucket, key, fields);
        });
        if bucket == DEFINITIONS {
            self.inner.follow_definitions();
        }
    }

    /// Changes an object that is there, as [`put`](Self::put) does. False where there is no such object.
    pub fn corrupt(
        &self,
        resource: &str,
        name: (&str, &str),
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> bool {
        self.inner.store.with(|state| {
            let Some((bucket, key)) = self.find(state, resource, name) else {
                return false;
            };
            let Some(object) = state.table(bucket).object(&key) else {
                return false;
            };
            let mut fields = object.fields().clone();
            change(&mut fields);
            state.put(bucket, key, fields);
            true
        })
    }

    /// Removes an object past every rule, finalizers included. False where there is no such object.
    pub fn remove(&self, resource: &str, name: (&str, &str)) -> bool {
        let removed = self.inner.store.with(|state| {
            let found = self.find(state, resource, name);
            found.is_some_and(|(bucket, key)| state.remove(bucket, &key).is_some())
        });
        self.inner.follow_definitions();
        removed
    }

    /// Every change that the store still knows of ([`Config::history`]), oldest first.
    #[must_use]
    pub fn changes(&self) -> Vec<ObjectChange> {
        let mut changes: Vec<_> = self.inner.store.with(|state| {
            let of_table = |(bucket, table): (Bucket, &ObjectTable)| {
                let events = table.changes();
                events
                    .map(move |event| (event.revision(), bucket, event.clone()))
                    .collect::<Vec<_>>()
            };
            state.tables().flat_map(of_table).collect()
        });
        changes.sort_by_key(|(revision, ..)| *revision);
        let changes = changes.into_iter().map(|(_, bucket, event)| ObjectChange {
            resource: bucket.resource(),
            kind: event.happened,
            object: Value::Object(event.object.fields().clone()),
        });
        changes.collect()
    }

    /// Waits until the store is at another revision than `seen`.
    pub async fn changed(&self, seen: u64) {
        self.inner.store.changed(seen).await;
    }

    /// Where an object is.
    fn find(
        &self,
        state: &StoreState,
        resource: &str,
        (namespace, name): (&str, &str),
    ) -> Option<(Bucket, StoreKey)> {
        let key = StoreKey::new(namespace, name);
        let mut buckets = self.buckets(resource);
        let bucket = buckets.find(|bucket| state.table(*bucket).object(&key).is_some())?;
        Some((bucket, key))
    }

    /// Where the objects of a resource may be kept; those that this server was made for are so, served or not.
    fn buckets(&self, resource: &str) -> impl Iterator<Item = Bucket> {
        let served = self.inner.served.kinds().into_iter();
        let named = served.filter(move |kind| kind.is_named(resource));
        let kinds = Kind::own(resource).chain(named);
        kinds.map(|kind| kind.bucket)
    }
}
