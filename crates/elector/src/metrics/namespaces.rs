//! The namespaces that have a label value of their own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespaces that are in the figures, each with the label that it has for as long: of its own, up to a number of
/// them, or that of all others.
pub(super) struct NamespaceLabels {
    namespaces: BTreeMap<Arc<str>, NamespaceLabel>,
    named: usize,
    limit: usize,
}

/// The label of one namespace.
struct NamespaceLabel {
    is_named: bool,
    leases: usize,
}

// === impl NamespaceLabels ===

impl NamespaceLabels {
    /// The label of all other namespaces; no namespace can have this name.
    pub(super) const OTHER: &str = "_other_";

    pub(super) const fn new(limit: usize) -> Self {
        Self {
            namespaces: BTreeMap::new(),
            named: 0,
            limit,
        }
    }

    /// The label value of a namespace.
    pub(super) fn value(&mut self, namespace: &Arc<str>) -> Cow<'static, str> {
        match self.label(namespace).is_named {
            true => Cow::Owned(namespace.as_ref().to_owned()),
            false => Cow::Borrowed(Self::OTHER),
        }
    }

    /// A lease of this namespace comes into the figures.
    pub(super) fn add_lease(&mut self, namespace: &Arc<str>) {
        self.label(namespace).leases += 1;
    }

    /// A lease of this namespace leaves the figures. True if the label of the namespace goes with it.
    pub(super) fn remove_lease(&mut self, namespace: &Arc<str>) -> bool {
        let Some(label) = self.namespaces.get_mut(namespace) else {
            return false;
        };
        label.leases = label.leases.saturating_sub(1);
        label.leases == 0 && self.remove(namespace)
    }

    /// No lease is in the figures; the labels stay until [`Self::remove_unused`], so that counters go on.
    pub(super) fn remove_leases(&mut self) {
        for label in self.namespaces.values_mut() {
            label.leases = 0;
        }
    }

    /// Removes the namespaces without leases, and returns those that had a label of their own.
    pub(super) fn remove_unused(&mut self) -> Vec<Arc<str>> {
        let unused = self.namespaces.iter().filter(|(_, it)| it.leases == 0);
        let mut unused: Vec<_> = unused.map(|(name, _)| Arc::clone(name)).collect();
        unused.retain(|name| self.remove(name));
        unused
    }

    fn label(&mut self, namespace: &Arc<str>) -> &mut NamespaceLabel {
        let entry = self.namespaces.entry(Arc::clone(namespace));
        entry.or_insert_with(|| {
            let is_named = self.named < self.limit;
            self.named += usize::from(is_named);
            NamespaceLabel {
                is_named,
                leases: 0,
            }
        })
    }

    /// True if it had a label of its own, which another namespace may have now.
    fn remove(&mut self, namespace: &Arc<str>) -> bool {
        let removed = self.namespaces.remove(namespace);
        let was_named = removed.is_some_and(|label| label.is_named);
        self.named -= usize::from(was_named);
        was_named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(labels: &mut NamespaceLabels, names: &[&str]) -> Vec<String> {
        let values = names.iter().map(|name| {
            let name = Arc::from(*name);
            labels.add_lease(&name);
            labels.value(&name).into_owned()
        });
        values.collect()
    }

    #[test]
    fn beyond_the_limit_one_value_is_shared_and_a_namespace_keeps_its_own() {
        let mut labels = NamespaceLabels::new(2);
        let values = values(&mut labels, &["a", "b", "c", "d", "a", "b", "c"]);
        let expected = ["a", "b", "_other_", "_other_", "a", "b", "_other_"];
        assert_eq!(values, expected);
    }

    #[test]
    fn a_namespace_without_leases_gives_its_place_to_the_next_that_comes() {
        let mut labels = NamespaceLabels::new(1);
        assert_eq!(values(&mut labels, &["a", "a", "b"]), ["a", "a", "_other_"]);
        let [a, b] = ["a", "b"].map(Arc::from);
        assert!(!labels.remove_lease(&a), "it has another one");
        assert!(labels.remove_lease(&a));
        assert_eq!(labels.value(&b), "_other_", "where its figures are");
        assert_eq!(values(&mut labels, &["c"]), ["c"]);
        assert!(!labels.remove_lease(&b), "it had no place");
    }

    #[test]
    fn a_session_that_begins_takes_over_the_labels_of_the_namespaces_that_it_finds() {
        let mut labels = NamespaceLabels::new(2);
        assert_eq!(values(&mut labels, &["gone", "here"]), ["gone", "here"]);
        labels.remove_leases();
        assert_eq!(values(&mut labels, &["here"]), ["here"]);
        assert_eq!(labels.remove_unused(), [Arc::from("gone")]);
        assert_eq!(values(&mut labels, &["new"]), ["new"]);
    }
}
