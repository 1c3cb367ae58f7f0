//! Arbitrary objects through the whole of Elector's pipeline, and what must hold for all of them.
//!
//! ```text
//!   bytes ─ script ─> JSON documents ─ decode, validate ─> records ─ Election ─> step, ranking, explain
//!                                                                 └─ Holder, Registration ─> step
//!                                                                                  │ each effect
//!                                                                                  v
//!                                                             audit · back to the wire and read again · bounded
//! ```
//!
//! A *script* is a stream of JSON documents: objects, lists and watch frames as a server sends them, and a few orders
//! to the driver, such as `{"pass": "5s"}`. So every entry of the corpus is readable, and every find of a fuzzer is a
//! test as it stands. [`drive_objects`], [`drive_candidate`] and, for recorded
//! histories, [`drive_history`] panic where something that must hold does not.
//!
//! ```
//! elector_model::drive_objects(br#"{"kind": "Lease", "spec": 7} {"pass": "5s"} {"kind": "#);
//! ```

mod candidate;
mod continuation;
mod history;
mod objects;
mod script;
mod time;
mod wire;

pub use candidate::drive_candidate;
pub use history::drive_history;
pub use objects::drive_objects;
