//! Which namespaces have a label value of their own.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The namespaces that have a label of their own: the first that are met, and those for good, so that a counter goes on.
pub(super) struct NamespaceLabels {
    named: BTreeSet<Arc<str>>,
    limit: usize,
}

// === impl NamespaceLabels ===

impl NamespaceLabels {
    /// The label of all other namespaces; no namespace can have this name.
    pub(super) const OTHER: &str = "_other_";

    pub(super) const fn new(limit: usize) -> Self {
        Self {
            named: BTreeSet::new(),
            limit,
        }
    }

    /// The label value of a namespace.
    pub(super) fn value(&mut self, namespace: &Arc<str>) -> Cow<'static, str> {
        if !self.named.contains(namespace) {
            if self.named.len() >= self.limit {
                return Cow::Borrowed(Self::OTHER);
            }
            self.named.insert(Arc::clone(namespace));
        }
        Cow::Owned(namespace.as_ref().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_shares_one_value_and_the_first_keep_theirs() {
        let mut labels = NamespaceLabels::new(2);
        let mut value = |name: &str| labels.value(&Arc::from(name)).into_owned();
        let values = ["a", "b", "c", "d", "a", "b", "c"].map(&mut value);
        assert_eq!(
            values,
            ["a", "b", "_other_", "_other_", "a", "b", "_other_"]
        );
    }
}
