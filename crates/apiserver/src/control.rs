//! Operations on the server from outside of its API: the store read and written past every rule, put back, compacted,
//! and other LeaseCandidates served.

use serde_json::{Map, Value};

use crate::config::{Config, NativeCandidates};
use crate::kind::{Bucket, Kind};
use crate::server::ApiServer;
use crate::store::{Backup, ChangeKind, ObjectKey, StoreState};

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
/// taken without `apiVersion` and `kind`, as they are stored. An object is named by its namespace and its name.
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
    /// [`Switches::break_watches`](crate::Switches::break_watches) ends those of a client, as the restart of its API server does.
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
    }

    /// The number of open watches.
    #[must_use]
    pub fn watches(&self) -> usize {
        self.inner.store.with(|state| {
            let buckets = Bucket::ALL;
            buckets
                .into_iter()
                .map(|bucket| state.table(bucket).subscriptions())
                .sum()
        })
    }

    /// Serves other LeaseCandidates from now on. Discovery and the paths of objects follow; watches of what is no longer
    /// served end, once they have reported all that happened.
    ///
    /// Objects of built-in versions stay in the store, and are there again when one of these versions is. Custom
    /// objects go with their definition. A real server changes its built-in versions by a restart:
    /// [`Switches::break_watches`](crate::Switches::break_watches) does to a client's watches what that does.
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
            self.inner.store.with(|state| {
                let table = state.table(Bucket::CustomCandidates);
                let keys: Vec<_> = table
                    .objects(None)
                    .map(|object| object.key().clone())
                    .collect();
                for key in keys {
                    state.remove(Bucket::CustomCandidates, &key);
                }
            });
        }
        self.inner.book.wake();
    }

    /// An object as it is stored.
    #[must_use]
    pub fn object(&self, resource: &str, name: (&str, &str)) -> Option<Value> {
        self.inner.store.with(|state| {
            let (bucket, key) = find(state, resource, name)?;
            let object = state.table(bucket).object(&key)?;
            Some(Value::Object(object.fields().clone()))
        })
    }

    /// Creates an object or changes the one that is there, past every rule, as a program does that writes to etcd, or an
    /// API server of another release. What is created has `namespace`, `name`, `uid` and `creationTimestamp`, and an
    /// empty `spec`. Revision and watches follow as after any write.
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
        let bucket = *Kind::buckets(resource)
            .first()
            .expect("a resource that exists");
        let now = self.inner.config.clock.stamp();
        self.inner.store.with(|state| {
            let key = ObjectKey::new(namespace, name);
            let known = state.table(bucket).object(&key).map(|object| object.fields().clone());
            let mut fields = known.unwrap_or_else(|| {
                let metadata = serde_json::json!({
                    "namespace": namespace, "name": name, "uid": state.uid(), "creationTimestamp": now,
                });
                let spec = Value::Object(Map::new());
                [("metadata".to_owned(), metadata), ("spec".to_owned(), spec)].into_iter().collect()
            });
            change(&mut fields);
            state.put(bucket, key, fields);
        });
    }

    /// Changes an object that is there, as [`put`](Self::put) does. False where there is no such object.
    pub fn corrupt(
        &self,
        resource: &str,
        name: (&str, &str),
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> bool {
        self.inner.store.with(|state| {
            let Some((bucket, key)) = find(state, resource, name) else {
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
        self.inner.store.with(|state| {
            let found = find(state, resource, name);
            found.is_some_and(|(bucket, key)| state.remove(bucket, &key).is_some())
        })
    }

    /// Every change that the store still knows of ([`Config::history`]), oldest first.
    #[must_use]
    pub fn changes(&self) -> Vec<ObjectChange> {
        let mut changes: Vec<_> = self.inner.store.with(|state| {
            let of_bucket = |bucket: Bucket| {
                let events = state.table(bucket).changes();
                events
                    .map(move |event| (event.revision(), bucket, event.clone()))
                    .collect::<Vec<_>>()
            };
            Bucket::ALL.into_iter().flat_map(of_bucket).collect()
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
}

/// Where an object is, or would be.
fn find(
    state: &StoreState,
    resource: &str,
    (namespace, name): (&str, &str),
) -> Option<(Bucket, ObjectKey)> {
    let key = ObjectKey::new(namespace, name);
    let buckets = Kind::buckets(resource);
    let bucket = buckets
        .into_iter()
        .find(|bucket| state.table(*bucket).object(&key).is_some())?;
    Some((bucket, key))
}
