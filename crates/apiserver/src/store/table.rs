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
    /// The number of events that are kept.
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
        let first = namespace.map(|namespace| ObjectKey::new(namespace, ""));
        self.contents
            .from(first.as_ref())
            .map(|(_, object)| object)
            .take_while(is_in(namespace))
    }

    /// One object as it was at a revision.
    pub(crate) fn object_at(
        &self,
        revision: u64,
        key: &ObjectKey,
    ) -> Result<Option<&Arc<Stored>>, TooOld> {
        let change = self
            .since(revision)?
            .find(|event| event.object.key() == key);
        Ok(match change {
            Some(event) => event.previous.as_ref(),
            None => self.object(key),
        })
    }

    /// The objects as they were at a revision, in order: of one namespace, or of all, from the first key on that is not
    /// below `from`. The work is that of the objects that are taken and of the changes since, so that a list in many
    /// pages costs little more than one in one.
    pub(crate) fn at<'a>(
        &'a self,
        revision: u64,
        namespace: Option<&'a str>,
        from: Option<&ObjectKey>,
    ) -> Result<impl Iterator<Item = &'a Arc<Stored>>, TooOld> {
        let first = namespace.map(|namespace| ObjectKey::new(namespace, ""));
        let first = first.as_ref().max(from);
        let mut changed = BTreeMap::new();
        for event in self.since(revision)? {
            // The first change knows what there was before all of them.
            changed
                .entry(event.object.key())
                .or_insert(event.previous.as_ref());
        }
        let changed = match first {
            Some(first) => changed.split_off(first),
            None => changed,
        };
        let mut changed = changed.into_iter().peekable();
        let mut present = self.contents.from(first).peekable();
        let merged = std::iter::from_fn(move || {
            loop {
                let key = present.peek().map(|(key, _)| *key);
                match changed.next_if(|(changed, _)| key.is_none_or(|key| *changed <= key)) {
                    Some((changed, past)) => {
                        present.next_if(|(key, _)| *key == changed);
                        if past.is_some() {
                            return past;
                        }
                    }
                    None => return present.next().map(|(_, object)| object),
                }
            }
        });
        Ok(merged.take_while(is_in(namespace)))
    }

    /// The events after a revision.
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

    /// The number of its followers.
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

// === impl Contents ===

impl Contents {
    /// The objects from this key on.
    fn from(
        &self,
        first: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&ObjectKey, &Arc<Stored>)> + use<'_> {
        let first = first.map_or(Bound::Unbounded, Bound::Included);
        self.objects
            .range::<ObjectKey, _>((first, Bound::Unbounded))
    }
}

/// A test for objects of that namespace, where one is named.
fn is_in(namespace: Option<&str>) -> impl FnMut(&&Arc<Stored>) -> bool {
    move |object| namespace.is_none_or(|namespace| object.key().namespace == namespace)
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
        let objects = table.at(revision, None, None).unwrap();
        objects
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
    fn the_past_can_be_seen_from_any_key_on() {
        let mut table = ObjectTable::new(99, 9);
        let mut revision = 0;
        let mut put = |table: &mut ObjectTable, namespace: &str, name: &str| {
            revision += 1;
            let key = ObjectKey::new(namespace, name);
            table.put(Stored::new(key, Map::new(), revision));
        };
        for name in ["a", "c", "e"] {
            put(&mut table, "one", name);
            put(&mut table, "two", name);
        }
        // After revision 6: one before and one behind those that were there, one between them, one gone, one changed
        // twice.
        for name in ["0", "b", "f", "c", "c"] {
            put(&mut table, "one", name);
        }
        table.remove(Stored::new(ObjectKey::new("one", "e"), Map::new(), 12));
        let names = |namespace, from: Option<(&str, &str)>| {
            let from = from.map(|(namespace, name)| ObjectKey::new(namespace, name));
            let objects = table.at(6, namespace, from.as_ref()).unwrap();
            let names = objects.map(|object| {
                assert!(object.revision() <= 6, "{object:?}");
                format!("{}/{}", object.key().namespace, object.key().name)
            });
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(None, None), "one/a one/c one/e two/a two/c two/e");
        assert_eq!(names(Some("one"), None), "one/a one/c one/e");
        assert_eq!(names(Some("one"), Some(("one", "a\0"))), "one/c one/e");
        assert_eq!(names(None, Some(("one", "c\0"))), "one/e two/a two/c two/e");
        assert_eq!(names(None, Some(("two", "b"))), "two/c two/e");
        assert_eq!(names(Some("one"), Some(("one", "e\0"))), "");
    }

    #[test]
    fn history_is_bounded_and_says_so() {
        let mut table = table(2);
        assert_eq!(table.since(3).unwrap().count(), 2);
        assert_eq!(table.since(2).err(), Some(TooOld(3)));
        assert_eq!(table.at(2, None, None).err(), Some(TooOld(3)));
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
