//! The objects of one bucket and their latest history.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::event::{ChangeKind, Event};
use super::object::{StoreKey, Stored};
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
    objects: BTreeMap<StoreKey, Arc<Stored>>,
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

    /// A table of another bucket, whose past goes back as far as that of this one, an empty one.
    pub(super) fn another(&self) -> Self {
        Self {
            contents: self.contents.clone(),
            history: self.history,
            watchers: self.watchers.another(),
        }
    }

    pub(crate) fn object(&self, key: &StoreKey) -> Option<&Arc<Stored>> {
        self.contents.objects.get(key)
    }

    /// The objects in order: of one namespace, or of all.
    pub(crate) fn objects<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> {
        let first = namespace.map(|namespace| StoreKey::new(namespace, ""));
        self.contents
            .from(first.as_ref())
            .map(|(_, object)| object)
            .take_while(is_in(namespace))
    }

    /// One object as it was at a revision.
    pub(crate) fn object_at(
        &self,
        revision: u64,
        key: &StoreKey,
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
        from: Option<&StoreKey>,
    ) -> Result<impl Iterator<Item = &'a Arc<Stored>>, TooOld> {
        let first = namespace.map(|namespace| StoreKey::new(namespace, ""));
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
        first: Option<&StoreKey>,
    ) -> impl Iterator<Item = (&StoreKey, &Arc<Stored>)> + use<'_> {
        let first = first.map_or(Bound::Unbounded, Bound::Included);
        self.objects.range::<StoreKey, _>((first, Bound::Unbounded))
    }
}

/// A test for objects of that namespace, where one is named.
fn is_in(namespace: Option<&str>) -> impl FnMut(&&Arc<Stored>) -> bool {
    move |object| namespace.is_none_or(|namespace| object.key().namespace == namespace)
}
