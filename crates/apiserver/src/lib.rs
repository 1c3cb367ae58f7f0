//! An in-memory coordination API server: Leases, LeaseCandidates, Namespaces and Events, as a Kubernetes API server
//! serves them.

mod body;
mod clock;
mod config;
mod discovery;
mod events;
mod failure;
mod faults;
mod fields;
mod gotime;
mod json;
mod kind;
mod openapi;
mod options;
mod patch;
mod path;
mod protobuf;
mod query;
mod read;
mod remove;
mod reply;
mod resource;
mod rules;
mod schema;
mod selector;
mod server;
mod show;
mod store;
mod stream;
mod table;
mod transport;
mod write;

pub use clock::Clock;
pub use config::{Config, NativeCandidates};
pub use faults::{Broken, Fault, Rule, Switches, Verb};
pub use server::ApiServer;
pub use transport::InProcess;
