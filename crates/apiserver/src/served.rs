//! Which kinds are served at present.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Method;

use crate::config::{Config, OtherKinds};
use crate::definition::KindDefinition;
use crate::kind::Kind;

/// The kinds that are served at present.
#[derive(Debug)]
pub(crate) struct Served {
    other_kinds: OtherKinds,
    kinds: Mutex<ServedKinds>,
}

#[derive(Debug, Default)]
struct ServedKinds {
    /// Those that this server was made for.
    own: Vec<&'static Kind>,
    built_in: Vec<&'static Kind>,
    /// Those of CustomResourceDefinitions.
    defined: Vec<&'static Kind>,
    /// Those that requests have named.
    learned: Vec<&'static Kind>,
}

// === impl Served ===

impl Served {
    pub(crate) fn new(config: &Config) -> Self {
        let mut kinds = ServedKinds {
            own: Kind::served(config),
            ..ServedKinds::default()
        };
        if config.other_kinds != OtherKinds::Refused {
            let built_in = KindDefinition::built_in().map(KindDefinition::kind);
            kinds.built_in = built_in.collect();
        }
        Self {
            other_kinds: config.other_kinds,
            kinds: Mutex::new(kinds),
        }
    }

    pub(crate) fn kinds(&self) -> Vec<&'static Kind> {
        self.lock().all().collect()
    }

    /// The same kind as it is defined now, `None` where it is no longer served.
    pub(crate) fn present(&self, kind: &Kind) -> Option<&'static Kind> {
        self.lock().all().find(|served| served.is_same(kind))
    }

    pub(crate) fn set(&self, config: &Config) {
        self.lock().own = Kind::served(config);
    }

    /// Serves the kinds of these definitions from now on.
    pub(crate) fn define(&self, definitions: impl Iterator<Item = KindDefinition>) {
        if self.other_kinds == OtherKinds::Refused {
            return;
        }
        let mut kinds = self.lock();
        kinds.defined.clear();
        for kind in definitions.map(KindDefinition::kind) {
            kinds.learned.retain(|learned| !learned.is_same(kind));
            if !kinds.all().any(|served| served.is_same(kind)) {
                kinds.defined.push(kind);
            }
        }
    }

    /// Learns from a request for a kind that nothing has defined.
    pub(crate) fn learn_path(&self, method: &Method, segments: &[&str]) {
        if self.other_kinds == OtherKinds::Any
            && let Some((definition, shows_scope)) = KindDefinition::of_path(method, segments)
        {
            self.lock().learn(definition, shows_scope);
        }
    }

    /// Learns from an object of a kind that nothing has defined, and says what it is.
    pub(crate) fn learn_object(&self, definition: KindDefinition) -> &'static Kind {
        self.lock().learn(definition, true)
    }

    fn lock(&self) -> MutexGuard<'_, ServedKinds> {
        // Lists of kinds are whole at every moment.
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ServedKinds ===

impl ServedKinds {
    fn all(&self) -> impl Iterator<Item = &'static Kind> + '_ {
        let lists = [&self.own, &self.built_in, &self.defined, &self.learned];
        lists.into_iter().flatten().copied()
    }

    /// Takes in what a request shows of a kind. A definition knows better, a kind that an object has named stays, and so
    /// does a status.
    fn learn(&mut self, mut definition: KindDefinition, shows_scope: bool) -> &'static Kind {
        let shown = definition.clone().kind();
        let known = self.all().find(|known| known.is_same(shown));
        let place = self.learned.iter().position(|known| known.is_same(shown));
        let (known, place) = match (known, place) {
            (Some(known), Some(place)) => (known, place),
            (Some(known), None) => return known,
            (None, _) => {
                self.learned.push(shown);
                return shown;
            }
        };
        definition.status |= known.status;
        if !shows_scope {
            definition.namespaced = known.namespaced;
        }
        if definition.guessed {
            definition.kind = known.kind.to_owned();
            definition.guessed = known.guessed;
        }
        self.learned[place] = definition.kind();
        self.learned[place]
    }
}
