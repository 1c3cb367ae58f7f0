//! The objects, their revisions, and what happened to them lately.
//!
//! One lock guards everything, as one etcd does: a write reads, checks and commits under it, and each commit takes the
//! next of one sequence of revisions.

mod event;
mod object;
mod table;
mod watcher;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;

use crate::kind::Bucket;

pub use event::ChangeKind;
pub(crate) use event::Event;
pub(crate) use object::{ObjectFields, StoreKey, Stored, metadata_text};
use table::Contents;
pub(crate) use table::{ObjectTable, TooOld};
pub(crate) use watcher::Scope;

/// The store of a server.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    state: Mutex<StoreState>,
    /// The present revision, for tasks that wait for one.
    revision: watch::Sender<u64>,
}

/// The state behind the lock.
#[derive(Debug)]
pub(crate) struct StoreState {
    revision: u64,
    /// The tables of buckets that something was ever stored in, or that were watched.
    tables: BTreeMap<Bucket, ObjectTable>,
    /// The table of the others.
    empty: ObjectTable,
    /// The source of uids and name endings.
    names: StdRng,
    /// The number of restores of an older version.
    restores: u64,
}

/// The contents of the store at a revision, to be put back later ([`ApiServer::restore`](crate::ApiServer::restore)).
#[derive(Clone, Debug)]
pub struct Backup {
    revision: u64,
    tables: BTreeMap<Bucket, Contents>,
}

// === impl ObjectStore ===

impl ObjectStore {
    pub(crate) fn new(history: usize, queue: usize, seed: u64) -> Self {
        let state = StoreState {
            // An empty etcd is at revision 1.
            revision: 1,
            tables: BTreeMap::new(),
            empty: ObjectTable::new(history, queue),
            names: StdRng::seed_from_u64(seed),
            restores: 0,
        };
        Self {
            state: Mutex::new(state),
            revision: watch::Sender::new(1),
        }
    }

    /// Runs one transaction. Nothing in it waits.
    pub(crate) fn with<T>(&self, transaction: impl FnOnce(&mut StoreState) -> T) -> T {
        let mut state = self.lock();
        let outcome = transaction(&mut state);
        // Under the lock, so that revisions are reported in their order.
        self.revision.send_if_modified(|revision| {
            std::mem::replace(revision, state.revision) != state.revision
        });
        outcome
    }

    /// The present revision.
    pub(crate) fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Waits until that revision is reached.
    pub(crate) async fn reached(&self, revision: u64) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self
            .revision
            .subscribe()
            .wait_for(|now| *now >= revision)
            .await;
    }

    /// Waits until the present revision is another one.
    pub(crate) async fn changed(&self, seen: u64) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.revision.subscribe().wait_for(|now| *now != seen).await;
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        // A transaction that panicked has committed nothing or everything of its one write.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StoreState ===

impl StoreState {
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn table(&self, bucket: Bucket) -> &ObjectTable {
        self.tables.get(&bucket).unwrap_or(&self.empty)
    }

    /// The tables that hold something, or are watched.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (Bucket, &ObjectTable)> {
        self.tables.iter().map(|(bucket, table)| (*bucket, table))
    }

    pub(crate) fn table_mut(&mut self, bucket: Bucket) -> &mut ObjectTable {
        let empty = &self.empty;
        self.tables.entry(bucket).or_insert_with(|| empty.another())
    }

    /// Writes an object and gives it its revision.
    pub(crate) fn put(
        &mut self,
        bucket: Bucket,
        key: StoreKey,
        fields: ObjectFields,
    ) -> std::sync::Arc<Stored> {
        self.revision += 1;
        let revision = self.revision;
        self.table_mut(bucket)
            .put(Stored::new(key, fields, revision))
    }

    /// Removes an object. What watchers are told is its last state, at the revision of the removal.
    pub(crate) fn remove(
        &mut self,
        bucket: Bucket,
        key: &StoreKey,
    ) -> Option<std::sync::Arc<Stored>> {
        let last = self.table(bucket).object(key)?.clone();
        self.revision += 1;
        let revision = self.revision;
        self.table_mut(bucket)
            .remove(Stored::new(key.clone(), last.fields().clone(), revision));
        Some(last)
    }

    /// Removes every object of a bucket.
    pub(crate) fn clear(&mut self, bucket: Bucket) {
        let objects = self.table(bucket).objects(None);
        let keys: Vec<_> = objects.map(|object| object.key().clone()).collect();
        for key in keys {
            self.remove(bucket, &key);
        }
    }

    /// Forgets what happened before the present revision, as a compaction of etcd does.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        self.empty.compact(revision);
        for table in self.tables.values_mut() {
            table.compact(revision);
        }
    }

    /// A copy of its contents.
    pub(crate) fn backup(&self) -> Backup {
        Backup {
            revision: self.revision,
            tables: self
                .tables()
                .map(|(bucket, table)| (bucket, table.contents().clone()))
                .collect(),
        }
    }

    /// Goes back to what a backup holds, its revision included. Uids are not given out a second time.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        self.revision = backup.revision;
        self.restores += 1;
        for bucket in backup.tables.keys() {
            self.table_mut(*bucket);
        }
        for (bucket, table) in &mut self.tables {
            table.restore(backup.tables.get(bucket).cloned().unwrap_or_default());
        }
    }

    /// The same, and counts on from the revision that is this much higher, before which nothing is known.
    pub(crate) fn restore_and_bump(&mut self, backup: &Backup, bump: u64) {
        self.restore(backup);
        self.revision = self.revision.saturating_add(bump);
        self.compact();
    }

    /// The number of restores of an older version.
    pub(crate) fn restores(&self) -> u64 {
        self.restores
    }

    /// A new uid, a UUID of version 4.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low): (u64, u64) = self.names.random();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }

    /// Five characters that complete a generated name. Vowels are missing, so that no words come out.
    pub(crate) fn name_ending(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut number: u64 = self.names.random();
        let mut ending = String::new();
        for _ in 0..5 {
            let letter = LETTERS[(number % LETTERS.len() as u64) as usize];
            ending.push(char::from(letter));
            number /= LETTERS.len() as u64;
        }
        ending
    }
}

// === impl Backup ===

impl Backup {
    /// The revision of the store when it was made.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn uids_are_uuids_and_follow_the_seed() {
        let draw = |seed| {
            let store = ObjectStore::new(1, 1, seed);
            store.with(|state| (0..100).map(|_| state.uid()).collect::<BTreeSet<_>>())
        };
        assert_eq!(draw(7), draw(7));
        assert_eq!(draw(7).union(&draw(8)).count(), 200);
        for uid in draw(7) {
            assert_eq!(uid.len(), 36);
            assert_eq!(&uid[14..15], "4");
            assert!("89ab".contains(&uid[19..20]), "{uid}");
        }
    }
}
