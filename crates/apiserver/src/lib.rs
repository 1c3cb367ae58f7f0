//! An in-memory API server: Leases, LeaseCandidates, Namespaces and Events, served as a Kubernetes API server serves them,
//! and any other kind on request, in process or over TCP, with faults on demand.
//!
//! ```text
//!  kube::Client ── service("name") ──┬── faults ── verbs ── rules ┬── store: objects, revisions, history, watchers
//!  kubectl, client-go ── serve() ────┘   by client                │        (one lock, one sequence of revisions)
//!                                                                 └── answers: objects, tables, watches, discovery
//! ```
//!
//! It exists so that an election can be tried, tested and simulated where there is no cluster. A client cannot tell it
//! from a real one: conflicts, preconditions, revisions, watches and messages are those of Kubernetes 1.36, compared
//! answer by answer with a real kube-apiserver (about 300 cases in Elector's tests). Real kubectl works on it, and so
//! do unmodified client-go candidates.
//!
//! ```
//! use elector_api::Lease;
//! use elector_apiserver::{ApiServer, Config};
//! use futures::{StreamExt, TryStreamExt};
//! use kube::api::{Api, PostParams, WatchEvent, WatchParams};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new(Config::default());
//! let client = kube::Client::new(server.service("me"), "default");
//!
//! let leases: Api<Lease> = Api::default_namespaced_with(client, &());
//! let mut events = leases.watch(&WatchParams::default(), "0").await?.boxed();
//!
//! let mut lease = Lease::default();
//! lease.metadata.name = Some("app".into());
//! lease.spec.holder_identity = Some("app-1".into());
//! let created = leases.create(&PostParams::default(), &lease).await?;
//!
//! let Some(WatchEvent::Added(seen)) = events.try_next().await? else { panic!("nothing was added") };
//! assert_eq!(seen, created);
//! # Ok(())
//! # }
//! ```
//!
//! # What it serves
//!
//! | group and version | kinds | when |
//! |---|---|---|
//! | `v1` | Namespace, Event | always |
//! | `events.k8s.io/v1` | Event | always |
//! | `coordination.k8s.io/v1` | Lease | always; [`Config::gate`] keeps `strategy` and `preferredHolder` |
//! | `coordination.k8s.io/v1beta1`, `v1alpha2`, `v1alpha1` | LeaseCandidate | [`Config::native`] |
//! | `elector.dev/v1alpha1` | LeaseCandidate | [`Config::custom_candidates`], as if the CRD were installed |
//! | `v1`, `apps/v1`, `batch/v1`, … | ConfigMap, Secret, Pod, Deployment, Job, CustomResourceDefinition, … | [`Config::other_kinds`] |
//! | any other | custom resources | [`Config::other_kinds`]: by their CustomResourceDefinition, or without one |
//!
//! Get, list in pages and at revisions, watch with bookmarks and initial events, label and field selectors, ranges of
//! objects by `shardSelector` ([`Config::sharding`]), create,
//! update, merge, JSON and strategic merge patch, server-side apply, delete with preconditions, delete of a collection,
//! status as a resource of its own, finalizers, dry run, strict field validation, tables, metadata only, discovery in both
//! forms, OpenAPI v3 as far as kubectl asks.
//!
//! # Time
//!
//! Objects get their times from [`Config::clock`]; timers are tokio's. On a paused runtime
//! ([`WallClock::following_timers`]) hours of watching take milliseconds, and one seed gives one history: nothing here
//! depends on the machine's clock, on hash order or on randomness of its own. Without [`latency`](Faults::latency)
//! an answer takes no time at all, so a client that asks again at once would never let a paused clock advance.
//!
//! # Faults and control
//!
//! Each client has [`Faults`]: latency, lost requests and lost answers, refusals, requests that arrive when the client
//! has given up, frozen and broken watches, an old cache, a partition. A request runs in a task of its own:
//! a client that gives up does not undo what it asked for.
//!
//! The server itself can be put back to a [`backup`](ApiServer::backup), [compacted](ApiServer::compact), and asked to
//! [serve other LeaseCandidates](ApiServer::serve_candidates); its objects can be read and changed past every rule
//! ([`object`](ApiServer::object), [`put`](ApiServer::put), [`remove`](ApiServer::remove)).
//!
//! # Differences from a real API server
//!
//! * `managedFields` are not kept. Server-side apply creates an object or merges into the one that is there: no field has
//!   an owner, so nothing conflicts, `force` changes nothing, and a field that a later apply leaves out stays. Lists of
//!   kinds that this server was made for merge by their keys.
//! * Of other kinds it knows the metadata alone. The other fields are kept as they come: nothing is validated, pruned or
//!   filled in, lists are replaced as a whole by every patch, nothing is converted between versions, protocol buffers are
//!   not read, and tables have a name and an age. No controller acts: a Deployment makes no Pods, and a Pod never runs.
//!   Subresources but `/status` answer 404. [`OtherKinds::Any`] serves custom resources that nothing defines.
//! * There is no RBAC: every request is authorised, and users are told apart for the sake of faults alone.
//! * Answers are JSON. Protocol buffers are read, as client-go sends them, and never written; YAML is neither.
//! * A deleted Namespace is gone at once with all that it holds, as where a controller manager runs; owner references
//!   are not followed, and `propagationPolicy` is checked but changes nothing.
//! * A watch that reads too slowly ends with an `ERROR` of code 410, not just with an end; a client lists again or goes
//!   on from its last revision, as it would there.
//! * A watch without `timeoutSeconds` lasts 45 minutes, not a random time from 30 to 60. Bookmarks come every minute.
//! * A malformed JSON body is refused with the reason of another parser, but for texts that end early.
//! * Strict validation names the kinds of a real server's scheme only where they are common (Pod, ConfigMap, …).
//! * Custom LeaseCandidates are refused in the words of the built-in ones, not of a CRD's schema. They cannot be
//!   created by PUT and know no strategic merge patch, as any custom resource.
//! * Descriptions in tables and OpenAPI are our own.

mod body;
mod call;
mod clock;
mod columns;
mod config;
mod control;
mod definition;
mod discovery;
mod events;
mod failure;
mod faults;
mod fields;
mod gotime;
mod json;
mod kind;
mod media_type;
mod openapi;
mod options;
mod patch;
mod path;
mod protobuf;
mod query;
mod read;
mod remove;
mod render;
mod reply;
mod resource;
mod rules;
mod schema;
mod selector;
mod served;
mod server;
mod store;
mod stream;
mod transport;
mod write;

pub use clock::WallClock;
pub use config::{Config, NativeCandidates, OtherKinds};
pub use control::ObjectChange;
pub use faults::{Broken, Fault, Faults, RequestVerb, Rule};
pub use server::ApiServer;
pub use store::{Backup, ChangeKind};
pub use transport::InProcess;
