//! A test kit for programs that lead by `elector-candidate`: what does the work do when the lease is lost?
//!
//! ```text
//!  the test ── faults, strangers, time ──> TestCluster: API server in memory, clock of tokio's timers
//!                                                │ requests, watches
//!                                    TestProgram: candidates and controllers, as in production
//!                                                │ Leadership
//!                                              the work ──> the API server, and fakes that record each effect
//! ```
//!
//! | to test | take |
//! |---|---|
//! | a function that takes a [`Leadership`](elector_candidate::Leadership) | [`TestTerm`]: a guard without a candidate and a server |
//! | work, as a candidate runs it | [`TestCluster::run`]: a [`TestProgram`] with faults, and a [`TermReport`] of each of its terms |
//! | a whole program, its controllers included | [`TestCluster::start`], with the connections of [`TestCluster::cluster`] and [`TestCluster::service`] |
//!
//! It goes into `dev-dependencies`, beside tokio with its feature `macros`. A test begins with
//! `#[tokio::test(start_paused = true)]`: time then stands still while something runs, and jumps to the next timer when
//! nothing does. Twenty seconds of waiting for a lease take no time, and each run of a test is like the last.
//!
//! # Does my work stop in time?
//!
//! The lease is lost while the API server is silent. From then on nothing of the work may act after the time that the
//! lease leaves, and here it also wants to finish what it does.
//!
//! ```
//! use std::time::Duration;
//!
//! use elector_candidate::{Config, Leadership};
//! use elector_testing::{EffectLog, TestCluster};
//!
//! /// What is to be tested: it writes a row a second, and closes its table when it stops.
//! async fn controller(leadership: Leadership, database: EffectLog) -> Result<(), String> {
//!     let mut tick = tokio::time::interval(Duration::from_secs(1));
//!     loop {
//!         tokio::select! {
//!             biased;
//!             _ = leadership.stopped() => break,
//!             _ = tick.tick() => database.record("row"),
//!         }
//!     }
//!     tokio::time::sleep(Duration::from_secs(2)).await;
//!     database.record("closed");
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! // #[tokio::test(start_paused = true)]
//! let world = TestCluster::new();
//! let config = Config::new("web", "1.0.0");
//! let mut program = world.run(config, controller);
//! program.leads().await;
//! program.faults().partition(true);
//!
//! let report = program.term_report().await;
//! report.assert_nothing_late();
//! report.assert_returned();
//! assert_eq!(report.effects.last().unwrap().1, "closed");
//! # }
//! ```
//!
//! With five seconds in the place of two, `assert_returned` fails: *the work did not return in time, and was dropped (told
//! to stop: lost: …; it had 3.75s)*. Had the controller spawned its rows by `tokio::spawn`, `assert_nothing_late` would
//! name each that was written when another process may lead.
//!
//! # What does my work do when the API server is silent, or the lease is taken?
//!
//! A silence that is shorter than the renew deadline is no loss, and a longer one is. A lease that is overwritten is lost at
//! once, and leaves no time.
//!
//! ```
//! use std::time::Duration;
//!
//! use elector_candidate::{Config, Leadership, Loss, StopReason};
//! use elector_testing::{TestCluster, pass};
//!
//! async fn work(leadership: Leadership) -> Result<(), String> {
//!     leadership.stopped().await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! // #[tokio::test(start_paused = true)]
//! let world = TestCluster::new();
//! let config = Config::new("web", "1.0.0");
//! let mut program = world.run(config, |leadership, _| work(leadership));
//! program.leads().await;
//!
//! // Five seconds of silence cost nothing.
//! program.faults().partition(true);
//! pass(Duration::from_secs(5)).await;
//! program.heal();
//! pass(Duration::from_secs(5)).await;
//! assert!(program.handle().is_leader());
//!
//! // Thirty seconds cost the term, and then it leads again.
//! program.faults().partition(true);
//! pass(Duration::from_secs(30)).await;
//! assert!(!program.handle().is_leader());
//! program.heal();
//! let (reason, _) = program.term_report().await.told.unwrap();
//! assert_eq!(reason, StopReason::Lost(Loss::DeadlinePassed));
//! program.leads().await;
//!
//! // Another process takes the lease.
//! program.lease().overwrite_holder("another");
//! let report = program.term_report().await;
//! let (reason, told) = report.told.clone().unwrap();
//! assert!(matches!(reason, StopReason::Lost(Loss::Taken { .. })));
//! assert_eq!(report.limit, told, "no time is left");
//! report.assert_nothing_late();
//! # }
//! ```
//!
//! | fault | by |
//! |---|---|
//! | the API server is silent: requests hang, watches hear nothing | `program.faults().partition(true)` |
//! | it refuses | `program.faults().inject(Rule::new(Fault::Refuse(503)))` |
//! | it is slow | `program.faults().latency(request, answer)` |
//! | only watches hear nothing, or are cut | `program.faults().freeze_watches(true)`, `break_watches()` |
//! | renewals are written, and their answers are lost | `Rule::new(Fault::DropAfter).verb("update")` |
//! | all is well again | `program.heal()` |
//! | another holder is written into the Lease | `program.lease().overwrite_holder("another")` |
//! | the Lease is deleted | `program.lease().delete()` |
//! | an elector prefers another candidate: a hand-over | `program.lease().prefer("another")` |
//! | another process waits for the lease, and takes it when it is free | `program.start_rival()` |
//! | SIGTERM | `program.shut_down()` |
//! | the process is killed | `drop(program)` |
//! | the next process of that name starts | `world.start(name, …)` again |
//!
//! # How do I test a function that takes a guard?
//!
//! ```
//! use elector_candidate::{Leadership, Loss, StopReason};
//! use elector_testing::TestTerm;
//!
//! /// What is to be tested.
//! fn write(leadership: &Leadership, rows: &mut Vec<u32>, row: u32) -> Result<(), &'static str> {
//!     if !leadership.is_leader() {
//!         return Err("not leading");
//!     }
//!     rows.push(row);
//!     Ok(())
//! }
//!
//! // #[test]
//! let (term, mut rows) = (TestTerm::new(), Vec::new());
//! let leadership = term.leadership();
//! assert_eq!(write(&leadership, &mut rows, 1), Ok(()));
//! term.stop(StopReason::Lost(Loss::Deleted));
//! assert_eq!(write(&leadership, &mut rows, 2), Err("not leading"));
//! assert_eq!(rows, [1]);
//! ```
//!
//! # Does my whole program work, with its controllers?
//!
//! The program takes its connections and its shutdown as parameters, and `main` gives it the real ones. In a test two
//! processes of it run on one API server: a controller of a custom resource, which writes a ConfigMap by server-side apply
//! while it leads. The leader is cut off, and the standby reconciles under the next token.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use elector_candidate::{Candidate, Cluster, Config, Error, LeaderGate, Leadership, kube5};
//! use elector_testing::{TestCluster, eventually};
//! use futures::StreamExt as _;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
//! use kube::runtime::controller::{Action, Controller};
//! use kube::runtime::watcher;
//! use kube::{Client, ResourceExt as _};
//! use serde_json::json;
//!
//! async fn reconcile(widget: Arc<DynamicObject>, client: Arc<Client>, leadership: Leadership) -> kube::Result<Action> {
//!     let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &widget.namespace().unwrap_or_default());
//!     let data = json!({"size": widget.data["spec"]["size"], "token": leadership.token().to_string()});
//!     let name = widget.name_any();
//!     let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
//!     maps.patch(&name, &PatchParams::apply("widgets").force(), &Patch::Apply(map)).await?;
//!     Ok(Action::requeue(Duration::from_secs(300)))
//! }
//!
//! /// What is to be tested: all of the program but the connections, which `main` makes.
//! async fn program(cluster: Cluster, client: Client, shutdown: impl Future) -> Result<(), Error> {
//!     let candidate = Candidate::new(Config::new("widgets", "1.0.0"), cluster)?;
//!     let client = kube5::guarded(&client, &candidate.handle().leader_only());
//!     let gate = LeaderGate::new();
//!     // A type of `derive(CustomResource)` does as well.
//!     let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
//!     let widgets = Api::<DynamicObject>::all_with(client.clone(), &kind);
//!     let controller = Controller::new_with(widgets, watcher::Config::default(), kind)
//!         .reconcile_all_on(gate.starts())
//!         .run(
//!             gate.reconciler(reconcile, Action::await_change),
//!             |_, _, _| Action::requeue(Duration::from_secs(5)),
//!             Arc::new(client),
//!         )
//!         .for_each(|_| async {});
//!     let candidate = candidate.alongside("controller", |_| controller);
//!     candidate.run(move |leadership| gate.lead(leadership), shutdown).await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! // #[tokio::test(start_paused = true)]
//! let world = TestCluster::new();
//! world.put(json!({
//!     "apiVersion": "example.com/v1", "kind": "Widget",
//!     "metadata": {"name": "a", "namespace": "default"}, "spec": {"size": "3"},
//! }));
//! let start = |name| {
//!     let (cluster, client) = (world.cluster(name), Client::new(world.service(name), "default"));
//!     world.start(name, |shutdown| program(cluster, client, shutdown))
//! };
//! let written = || Some(world.get("configmaps", "default", "a")?["data"].clone());
//! let token = |token: u64| Some(json!({"size": "3", "token": token.to_string()}));
//!
//! let mut first = start("widgets-0");
//! first.leads().await;
//! let second = start("widgets-1");
//! eventually(|| written().is_some()).await;
//!
//! first.faults().partition(true);
//! second.leads().await;
//! let next = second.handle().status().token().unwrap();
//! eventually(|| written() == token(next)).await;
//!
//! // Nothing that the first has written came later than its term allows.
//! let report = first.term_report().await;
//! report.assert_nothing_late();
//! assert!(report.token < next);
//! assert_eq!(report.effects[0].1, "PATCH configmaps default/a");
//! # }
//! ```
//!
//! A rolling update, a node that dies and a crash loop are played alike: by [`TestProgram::shut_down`] and
//! [`TestProgram::ended`], by a drop, by another [`TestCluster::start`] of the same name.
//!
//! | feature | what it adds |
//! |---|---|
//! | `log`, `metrics` | helpers of Elector's own tests, which nothing is promised of |
//!
//! # What it does not show
//!
//! Virtual time stands still while anything runs, so work that blocks its thread blocks the test, and is late by no
//! clock: test that on a clock that runs, or see that nothing in the work blocks. What the work does to the network and to
//! disks takes time that a paused clock does not know of: it needs fakes. So does what reads the clock of the machine, as
//! the Events of kube-runtime do.
//!
//! The API server knows the fields of Leases, LeaseCandidates, Namespaces and Events. Objects of all other kinds it keeps as
//! they come: it validates nothing, fills in nothing, runs no controllers and no webhooks, and gives every program all
//! rights. Server-side apply creates or merges, and never conflicts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod actors;
mod effect_log;
mod history;
mod listen;
#[cfg(feature = "log")]
mod log;
mod one_lease;
mod program_record;
mod requests;
#[cfg(feature = "metrics")]
mod scrape;
mod scripted;
mod stored_lease;
mod term_report;
mod test_cluster;
mod test_program;
mod test_service;
mod time;
mod workspace;

pub use effect_log::EffectLog;
pub use elector_apiserver::{Fault, Faults, Rule};
pub use elector_candidate::TestTerm;
pub use stored_lease::StoredLease;
pub use term_report::{TermReport, WorkStop};
pub use test_cluster::TestCluster;
pub use test_program::TestProgram;
pub use test_service::{TestBody, TestService};
pub use time::{eventually, pass};

// For the tests of this workspace alone: these change with them.
#[doc(hidden)]
pub use actors::BackgroundTask;
#[doc(hidden)]
pub use listen::{listen, wait_until};
#[cfg(feature = "log")]
#[doc(hidden)]
pub use log::CapturedLog;
#[doc(hidden)]
pub use one_lease::OneLease;
#[doc(hidden)]
pub use requests::SentRequest;
#[cfg(feature = "metrics")]
#[doc(hidden)]
pub use scrape::{Scrape, assert_described, described_metrics, documented_metrics};
#[doc(hidden)]
pub use scripted::ScriptedCandidate;
#[doc(hidden)]
pub use test_cluster::{CANDIDATES, CUSTOM_CANDIDATES, LEASES};
#[doc(hidden)]
pub use time::{millis, seconds};
