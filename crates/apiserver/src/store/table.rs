//! The objects of one bucket and their latest history.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::event::{ChangeKind, Event};
use super::object::{ObjectKey, Stored};
use super::watcher::{Scope, Subscription, Watchers};

/// The objects of one bucket, and the watchers that follow them.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    contents: Contents,
    /// How many events are kept.
    history: usize,
    watchers: Watchers,
}

/// The objects of one bucket and their latest history: what a backup keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    events: VecDeque<Arc<Event>>,
    /// Nothing is known of what happened up to this revision.
    forgotten: u64,
}

/// The past that was asked for is no longer known; what is known begins after this revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld(pub(crate) u64);

// === impl ObjectTable ===

impl ObjectTable {
    pub(super) fn new(history: usize, queue: usize) -> Self {
        Self {
            contents: Contents::default(),
            history,
            watchers: Watchers::new(queue),
        }
    }

    pub(crate) fn object(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.contents.objects.get(key)
    }

    /// The objects in order: of one namespace, or of all.
    pub(crate) fn objects<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> {
        let first = namespace.map_or(Bound::Unbounded, |namespace| {
            Bound::Included(ObjectKey::new(namespace, ""))
        });
        self.contents
            .objects
            .range((first, Bound::Unbounded))
            .map(|(_, object)| object)
            .take_while(move |object| {
                namespace.is_none_or(|namespace| object.key().namespace == namespace)
            })
    }

    /// All objects as they were at a revision.
    pub(crate) fn at(&self, revision: u64) -> Result<BTreeMap<ObjectKey, Arc<Stored>>, TooOld> {
        self.check(revision)?;
        let mut objects = self.contents.objects.clone();
        for event in self
            .contents
            .events
            .iter()
            .rev()
            .take_while(|event| event.revision() > revision)
        {
            let key = event.object.key();
            match &event.previous {
                Some(previous) => objects.insert(key.clone(), previous.clone()),
                None => objects.remove(key),
            };
        }
        Ok(objects)
    }

    /// What happened after a revision.
    pub(crate) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Event>>, TooOld> {
        self.check(revision)?;
        let first = self
            .contents
            .events
            .partition_point(|event| event.revision() <= revision);
        Ok(self.contents.events.range(first..))
    }

    /// Follows what happens from now on.
    pub(crate) fn subscribe(&mut self, scope: Scope) -> Subscription {
        self.watchers.subscribe(scope)
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&mut self, scope: &Scope, id: u64) {
        self.watchers.unsubscribe(scope, id);
    }

    /// How many follow it.
    pub(crate) fn subscriptions(&self) -> usize {
        self.watchers.len()
    }

    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Every change that is still known, oldest first.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.contents.events.iter()
    }

    /// Puts other contents in the place of these. The watchers hear nothing of it, nor of what comes.
    pub(super) fn restore(&mut self, contents: Contents) {
        self.contents = contents;
        self.watchers.silence();
    }

    pub(super) fn put(&mut self, object: Stored) -> Arc<Stored> {
        let object = Arc::new(object);
        let previous = self
            .contents
            .objects
            .insert(object.key().clone(), object.clone());
        let happened = if previous.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        self.record(Event::now(happened, object.clone(), previous));
        object
    }

    pub(super) fn remove(&mut self, last: Stored) {
        let previous = self.contents.objects.remove(last.key());
        let object = Arc::new(last);
        self.record(Event::now(ChangeKind::Deleted, object, previous));
    }

    pub(super) fn compact(&mut self, revision: u64) {
        let kept = self
            .contents
            .events
            .partition_point(|event| event.revision() <= revision);
        self.contents.events.drain(..kept);
        self.contents.forgotten = revision;
    }

    fn record(&mut self, event: Event) {
        let event = Arc::new(event);
        self.watchers.tell(&event);
        self.contents.events.push_back(event);
        while self.contents.events.len() > self.history {
            if let Some(event) = self.contents.events.pop_front() {
                self.contents.forgotten = event.revision();
            }
        }
    }

    fn check(&self, revision: u64) -> Result<(), TooOld> {
        if revision < self.contents.forgotten {
            return Err(TooOld(self.contents.forgotten));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn table(history: usize) -> ObjectTable {
        let mut table = ObjectTable::new(history, 9);
        let object =
            |name: &str, revision| Stored::new(ObjectKey::new("ns", name), Map::new(), revision);
        table.put(object("a", 2));
        table.put(object("b", 3));
        table.put(object("a", 4));
        table.remove(object("b", 5));
        table
    }

    fn names_at(table: &ObjectTable, revision: u64) -> Vec<(String, u64)> {
        let objects = table.at(revision).unwrap();
        objects
            .into_values()
            .map(|object| (object.key().name.clone(), object.revision()))
            .collect()
    }

    #[test]
    fn the_past_can_be_seen() {
        let table = table(9);
        let a = |revision| ("a".to_owned(), revision);
        let b = || ("b".to_owned(), 3);
        assert_eq!(names_at(&table, 1), []);
        assert_eq!(names_at(&table, 2), [a(2)]);
        assert_eq!(names_at(&table, 3), [a(2), b()]);
        assert_eq!(names_at(&table, 4), [a(4), b()]);
        assert_eq!(names_at(&table, 5), [a(4)]);
        let since: Vec<_> = table
            .since(3)
            .unwrap()
            .map(|event| (event.happened, event.revision()))
            .collect();
        assert_eq!(since, [(ChangeKind::Modified, 4), (ChangeKind::Deleted, 5)]);
    }

    #[test]
    fn history_is_bounded_and_says_so() {
        let mut table = table(2);
        assert_eq!(table.since(3).unwrap().count(), 2);
        assert_eq!(table.since(2).err(), Some(TooOld(3)));
        assert_eq!(table.at(2).err(), Some(TooOld(3)));
        table.compact(5);
        assert_eq!(table.since(4).err(), Some(TooOld(5)));
        assert_eq!(table.since(5).unwrap().count(), 0);
    }

    #[test]
    fn one_namespace_does_not_run_into_the_next() {
        let mut table = ObjectTable::new(9, 9);
        for (revision, (namespace, name)) in [("a", "x"), ("a-b", "x"), ("b", "x")]
            .into_iter()
            .enumerate()
        {
            table.put(Stored::new(
                ObjectKey::new(namespace, name),
                Map::new(),
                revision as u64,
            ));
        }
        assert_eq!(table.objects(Some("a")).count(), 1);
        assert_eq!(table.objects(Some("c")).count(), 0);
        assert_eq!(table.objects(None).count(), 3);
    }
}
