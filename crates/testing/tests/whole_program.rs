//! Whole programs on the paused clock: a controller of a custom resource under leadership, in sound form and broken in one
//! way each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use elector_candidate::{
    Candidate, Cluster, Config, Error, LeaderGate, Leadership, Outcome, StopReason, TermEnd, kube5,
};
use elector_runtime::panic_text;
use elector_testing::{TestCluster, TestProgram, WorkStop, eventually, pass};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, GroupVersionKind, Object, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The custom resource.
type Widget = Object<WidgetSpec, WidgetStatus>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WidgetSpec {
    size: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WidgetStatus {
    token: u64,
}

/// One way in which the program is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramFlaw {
    None,
    /// Its client writes whoever leads, and it has a task that writes all the time.
    Writes,
    /// Its controller ends while it leads.
    ControllerEnds,
}

type Ended = Result<Outcome<()>, Error>;

fn kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"))
}

async fn reconcile(
    widget: Arc<Widget>,
    client: Arc<Client>,
    leadership: Leadership,
) -> kube::Result<Action> {
    let (name, token) = (widget.name_any(), leadership.token());
    let namespace = widget.namespace().unwrap_or_default();
    let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace);
    let data = json!({"size": widget.spec.size.to_string(), "token": token.to_string()});
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let by = PatchParams::apply("widgets").force();
    maps.patch(&name, &by, &Patch::Apply(map)).await?;
    let widgets = Api::<Widget>::namespaced_with(Client::clone(&client), &namespace, &kind());
    let status = Patch::Merge(json!({"status": {"token": token}}));
    widgets
        .patch_status(&name, &PatchParams::default(), &status)
        .await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

/// The program, but for the connections, which its `main` makes.
async fn program(
    cluster: Cluster,
    client: Client,
    shutdown: impl Future,
    flaw: ProgramFlaw,
) -> Ended {
    let config = Config::new("widgets", "1.0.0");
    let candidate = Candidate::new(config, cluster).unwrap();
    let handle = candidate.handle();
    let guarded = kube5::guarded(&client, &handle.leader_only());
    if flaw == ProgramFlaw::Writes {
        let maps = Api::<ConfigMap>::default_namespaced(client);
        tokio::spawn(async move {
            for count in 0.. {
                let data = json!({"count": count.to_string()});
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stray"}, "data": data});
                let by = PatchParams::apply("stray");
                let patch = Patch::Apply(map);
                let write = maps.patch("stray", &by, &patch);
                let _ = tokio::time::timeout(Duration::from_secs(1), write).await;
                pass(Duration::from_secs(1)).await;
            }
        });
    }
    let gate = LeaderGate::new();
    let widgets = Api::<Widget>::all_with(guarded.clone(), &kind());
    let controller = Controller::new_with(widgets, watcher::Config::default(), kind())
        .reconcile_all_on(gate.starts())
        .run(
            gate.reconciler(reconcile, Action::await_change),
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(guarded),
        )
        .for_each(|_| async {});
    let candidate = candidate.alongside("controller", move |_| async move {
        let ends = async {
            while flaw != ProgramFlaw::ControllerEnds || !handle.is_leader() {
                pass(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            biased;
            () = ends => {}
            () = controller => {}
        }
    });
    let work = move |leadership| gate.lead(leadership);
    candidate.run(work, shutdown).await
}

fn start(world: &TestCluster, name: &str, flaw: ProgramFlaw) -> TestProgram<Ended> {
    let client = Client::new(world.service(name), "default");
    let cluster = world.cluster(name);
    world.start(name, |shutdown: BoxFuture<'static, ()>| {
        program(cluster, client, shutdown, flaw)
    })
}

/// A cluster with the widget `a`.
fn world() -> TestCluster {
    let world = TestCluster::new();
    world.put(json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"size": 3},
    }));
    world
}

/// The fields that a reconcile under that token writes: into the ConfigMap and into the status.
fn written(token: u64) -> Option<(Value, Value)> {
    let data = json!({"size": "3", "token": token.to_string()});
    Some((data, json!({"token": token})))
}

fn stored(world: &TestCluster) -> Option<(Value, Value)> {
    let map = world.get("configmaps", "default", "a")?;
    let widget = world.get("widgets", "default", "a")?;
    Some((map["data"].clone(), widget["status"].clone()))
}

fn token(program: &TestProgram<Ended>) -> u64 {
    program.handle().status().token().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_standby_reconciles_when_the_leader_is_cut_off() {
    let world = world();
    let mut first = start(&world, "widgets-0", ProgramFlaw::None);
    first.leads().await;
    let second = start(&world, "widgets-1", ProgramFlaw::None);
    let led = token(&first);
    eventually(|| stored(&world) == written(led)).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(first.handle().identity().as_str(), "widgets-0");
    first.faults().partition(true);
    second.leads().await;
    let next = token(&second);
    eventually(|| stored(&world) == written(next)).await;
    let report = first.term_report().await;
    report.assert_nothing_late();
    report.assert_returned();
    assert!(report.token < next);
    // The status that it writes brings the object back to it, unchanged.
    let effects: Vec<_> = report.effects.iter().map(|(_, what)| &**what).collect();
    let pair = [
        "PATCH configmaps default/a",
        "PATCH widgets/status default/a",
    ];
    assert_eq!(effects, [pair, pair].concat());
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_hands_the_lease_over_and_ends_in_good_order() {
    let world = world();
    let mut first = start(&world, "widgets-0", ProgramFlaw::None);
    first.leads().await;
    let second = start(&world, "widgets-1", ProgramFlaw::None);
    pass(Duration::from_secs(1)).await;
    first.shut_down();
    let report = first.term_report().await;
    assert_eq!(report.told.as_ref().unwrap().0, StopReason::ShutDown);
    assert_eq!(report.work.unwrap().0, WorkStop::Returned);
    report.assert_nothing_late();
    let ended = first.ended().await.unwrap();
    assert_eq!((ended.value, ended.term), (None, Some(TermEnd::Released)));
    second.leads().await;
    let next = token(&second);
    eventually(|| stored(&world) == written(next)).await;
}

/// A process that is killed leaves its lease, and the next one of its name is another candidate.
#[tokio::test(start_paused = true)]
async fn a_killed_process_writes_no_more_and_its_successor_leads() {
    let world = world();
    let first = start(&world, "widgets-0", ProgramFlaw::Writes);
    first.leads().await;
    let led = token(&first);
    eventually(|| world.get("configmaps", "default", "stray").is_some()).await;
    drop(first);
    world.lease("default", "widgets").delete();
    let stray = world.get("configmaps", "default", "stray");
    pass(Duration::from_secs(30)).await;
    assert_eq!(world.get("configmaps", "default", "stray"), stray);
    let again = start(&world, "widgets-0", ProgramFlaw::None);
    again.leads().await;
    assert!(led < token(&again));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_comes_too_late_is_found() {
    let world = world();
    let mut program = start(&world, "widgets-0", ProgramFlaw::Writes);
    program.leads().await;
    program.faults().partition(true);
    let report = program.term_report().await;
    let late: Vec<_> = report
        .late_effects()
        .map(|(_, what)| what.as_str())
        .collect();
    assert!(late.len() > 3, "{late:?}");
    assert!(
        late.iter()
            .all(|what| *what == "PATCH configmaps default/stray"),
        "{late:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_ends_under_a_leader_ends_the_program() {
    let world = world();
    let program = start(&world, "widgets-0", ProgramFlaw::ControllerEnds);
    let error = program.ended().await.unwrap_err();
    assert!(matches!(error, Error::PartEnded { .. }), "{error:?}");
    assert_eq!(world.lease("default", "widgets").holder(), None);
}

/// Each candidate of a program has an identity of its own, and a handle by its lease.
#[tokio::test(start_paused = true)]
async fn a_program_with_two_leases_is_asked_by_their_names() {
    let world = TestCluster::new();
    let cluster = world.cluster("pair");
    let program = world.start("pair", |_| async move {
        let lead = |lease: &str| {
            let candidate = Candidate::new(Config::plain(lease), cluster.clone()).unwrap();
            candidate.run(
                |leadership| async move {
                    leadership.stopped().await;
                    Ok::<_, Infallible>(())
                },
                std::future::pending::<()>(),
            )
        };
        futures::future::join(lead("web"), lead("jobs")).await
    });
    program.leads().await;
    eventually(|| program.handle_of("default/jobs").is_leader()).await;
    assert!(program.handle_of("web").is_leader());
    let identities = ["web", "jobs"].map(|lease| program.handle_of(lease).identity().to_string());
    assert_eq!(identities, ["pair", "pair-2"]);
}

/// A test may do on the API server what users do: with a kind of its own, and with a definition of one.
#[tokio::test(start_paused = true)]
async fn a_definition_serves_its_kind_to_programs() {
    let world = TestCluster::new();
    let client = Client::new(world.service("user"), "default");
    world.put(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "oxen.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "oxen", "kind": "Ox"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}}],
        },
    }));
    let (kind, _) =
        kube::discovery::pinned_kind(&client, &GroupVersionKind::gvk("example.com", "v1", "Ox"))
            .await
            .unwrap();
    assert_eq!(kind.plural, "oxen");
    let oxen = Api::<Object<Value, Value>>::all_with(client, &kind);
    let mut ox = Object::new("a", &kind, json!({"legs": 4}));
    ox.status = Some(json!({"ignored": true}));
    let created = oxen.create(&PostParams::default(), &ox).await.unwrap();
    let expected = (Some(1), None);
    assert_eq!((created.metadata.generation, created.status), expected);
    assert_eq!(world.get("oxen", "", "a").unwrap()["spec"]["legs"], 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_test_does_wrong_is_said() {
    let world = TestCluster::new();
    let refused = |object: Value| {
        let put = AssertUnwindSafe(|| world.put(object));
        panic_text(&*catch_unwind(put).unwrap_err())
    };
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let expected = "an object needs an apiVersion, a kind and a name";
    assert!(refused(nameless).starts_with(expected));
    let unknown = json!({"apiVersion": "apps/v1", "kind": "Widget", "metadata": {"name": "a"}});
    assert_eq!(
        refused(unknown),
        "apps/v1 Widget is no kind of this server: it is not built in, and not of a group of its own"
    );
    let waits = tokio::spawn(async move {
        let idle = world.start("idle", |_| async {});
        idle.leads().await;
    });
    assert_eq!(
        panic_text(&*waits.await.unwrap_err().into_panic()),
        "idle does not lead: it has made no candidate on `cluster(\"idle\")`, and has ended"
    );
}
