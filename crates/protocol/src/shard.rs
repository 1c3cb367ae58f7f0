//! Ranges of objects with a leader each: which range a key falls into, and the text by which an API server sends one alone.
//!
//! Kubernetes 1.36 lists and watches by ranges of a hash (KEP-5866, feature gate ShardedListAndWatch). The hash, the
//! fields and the text are its own, so that a process and the API server agree on who owns an object.

mod field;
mod layout;
mod layout_watch;
mod range;
mod selector;

pub use field::ShardField;
pub use layout::ShardLayout;
pub use layout_watch::{LayoutVerdict, LayoutWatch};
pub use range::{ShardRange, shard_hash};
pub use selector::{ShardSelector, ShardSelectorError};

#[cfg(test)]
mod tests;
