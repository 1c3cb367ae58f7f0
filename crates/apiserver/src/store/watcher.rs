//! The watchers of a table, each with a bounded queue of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::event::Event;
use super::object::StoreKey;

/// Which objects are followed. A watcher of one object is not woken by others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

/// The events of one follower. The channel closes when the follower is too slow.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: u64,
    pub(crate) events: mpsc::Receiver<Arc<Event>>,
}

/// The watchers of a table.
#[derive(Debug)]
pub(super) struct Watchers {
    scopes: BTreeMap<Scope, BTreeMap<u64, mpsc::Sender<Arc<Event>>>>,
    /// The watchers of a store that is gone: their channels stay open, and nothing comes.
    silent: BTreeMap<u64, mpsc::Sender<Arc<Event>>>,
    next: u64,
    queue: usize,
}

// === impl Scope ===

impl Scope {
    /// The scopes that an object is in.
    fn of(key: &StoreKey) -> [Self; 4] {
        let (namespace, name) = (Some(key.namespace.clone()), Some(key.name.clone()));
        [
            Self::default(),
            Self {
                namespace: namespace.clone(),
                name: None,
            },
            Self {
                namespace: None,
                name: name.clone(),
            },
            Self { namespace, name },
        ]
    }
}

// === impl Watchers ===

impl Watchers {
    pub(super) fn new(queue: usize) -> Self {
        Self {
            scopes: BTreeMap::new(),
            silent: BTreeMap::new(),
            next: 0,
            queue: queue.max(1),
        }
    }

    /// None yet, with queues of the same length.
    pub(super) fn another(&self) -> Self {
        Self::new(self.queue)
    }

    pub(super) fn subscribe(&mut self, scope: Scope) -> Subscription {
        let (sender, events) = mpsc::channel(self.queue);
        let id = self.next;
        self.next += 1;
        self.scopes.entry(scope).or_default().insert(id, sender);
        Subscription { id, events }
    }

    pub(super) fn unsubscribe(&mut self, scope: &Scope, id: u64) {
        self.silent.remove(&id);
        if let Some(watchers) = self.scopes.get_mut(scope) {
            watchers.remove(&id);
            if watchers.is_empty() {
                self.scopes.remove(scope);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.silent.len() + self.scopes.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Tells the present watchers nothing any more, and leaves their channels open.
    pub(super) fn silence(&mut self) {
        let scopes = std::mem::take(&mut self.scopes);
        self.silent.extend(scopes.into_values().flatten());
    }

    /// Tells the watchers of the object. A watcher with a full queue is cut off: its channel closes once it has read the
    /// rest.
    pub(super) fn tell(&mut self, event: &Arc<Event>) {
        for scope in Scope::of(event.object.key()) {
            if let Some(watchers) = self.scopes.get_mut(&scope) {
                watchers.retain(|_, sender| match sender.try_send(event.clone()) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
                });
            }
        }
    }
}
