//! The part of an object that says which process of a group it belongs to.

use elector_protocol::shard::{ShardField, shard_hash};

/// An object, as a group of ranges asks for it: the group takes from it what its
/// [`Parts`](crate::Parts) go by, the uid or the namespace.
///
/// ```
/// use elector_candidate::ObjectKey;
///
/// let key = ObjectKey::new("5b4eba3a-7b7f-4b5e-a1d6-7d9bf07a6c0e").in_namespace("shop");
/// # let _ = key;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey<'a> {
    uid: &'a str,
    namespace: &'a str,
}

// === impl ObjectKey ===

impl<'a> ObjectKey<'a> {
    /// The object of that `metadata.uid`, which has no namespace.
    #[must_use]
    pub const fn new(uid: &'a str) -> Self {
        Self { uid, namespace: "" }
    }

    /// The same in a namespace.
    #[must_use]
    pub const fn in_namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// The hash of that field.
    pub(crate) const fn hash(self, field: ShardField) -> u64 {
        match field {
            ShardField::Uid => shard_hash(self.uid),
            ShardField::Namespace => shard_hash(self.namespace),
        }
    }
}
