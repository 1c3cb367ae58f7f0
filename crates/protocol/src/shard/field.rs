//! The fields by which objects are divided.

use std::fmt;

/// The field of an object whose hash says which range the object is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShardField {
    /// `metadata.uid`: objects spread evenly.
    Uid,
    /// `metadata.namespace`: the objects of a namespace stay together, and so do all those without one.
    Namespace,
}

// === impl ShardField ===

impl ShardField {
    /// The field as a selector names it.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

impl fmt::Display for ShardField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}
