//! The answers, on clusters in memory: a program beside a candidate asks, and reports.

use std::sync::atomic::{AtomicBool, Ordering};

use elector_candidate::{Cluster, Config, Error, Outcome};
use elector_runtime::{HealthChecks, ServerAnswer, ServerReply, ServerRequest};
use elector_testing::{TestCluster, TestProgram, eventually, millis, pass, seconds};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::candidate::term_runner::{CommandExit, ProgramBeside, TermRunner};

/// A candidate without a command, and its answers.
struct Sidecar {
    program: TestProgram<Result<Outcome<CommandExit>, Error>>,
    api: LeaderApi,
    ending: Arc<AtomicBool>,
    folder: TempDir,
}

const BLUE: &str = "web-blue-0123456789abcdef";
const GREEN: &str = "web-green-fedcba9876543210";
/// Another process of the Pod of BLUE.
const BLUE_BEFORE: &str = "web-blue-0000000000000000";

const GRACE: Duration = seconds(10);

// === impl Sidecar ===

impl Sidecar {
    /// It takes a free lease at once.
    fn start(world: &TestCluster, identity: &str) -> Self {
        let config = Config::as_client_go("web").identity(identity);
        Self::start_as(world, config, false)
    }

    fn start_as(world: &TestCluster, config: Config, program_ends_first: bool) -> Self {
        let identity = config.given_identity().unwrap().to_owned();
        let identity = identity.as_str();
        let folder = tempfile::tempdir().unwrap();
        let ending = Arc::new(AtomicBool::new(false));
        let mut api = None;
        let program = world.start(identity, |shutdown| {
            let config = config.grace(GRACE * 2);
            let cluster: Cluster = world.cluster(identity);
            let (candidate, current) =
                (Candidate::new(config, cluster).unwrap(), CurrentTerm::new());
            let (reports, metrics) = (HttpReports::new(), Metrics::default());
            let candidate = candidate
                .with_metrics(metrics.clone())
                .with_health_reports(reports.watch());
            api = Some(LeaderApi {
                source: LeaderSource::new(candidate.handle(), current.clone()),
                reports,
                token: Some(PostToken::open(&folder.path().join("token")).unwrap()),
                time_out: seconds(15),
                checks: Arc::new(HealthChecks {
                    live: Vec::new(),
                    ready: Vec::new(),
                }),
                metrics,
            });
            let runner = TermRunner {
                program: None,
                warm: None,
                environment: Vec::new(),
                retries: false,
                current,
                routing: None,
                grace: GRACE,
                sidecar: Some(ProgramBeside {
                    program_ends_first,
                    ending: Arc::clone(&ending),
                }),
            };
            candidate.run(move |leadership| runner.clone().run(leadership), shutdown)
        });
        Self {
            program,
            api: api.unwrap(),
            ending,
            folder,
        }
    }

    fn answer(&self, method: &str, path: &str, authorization: &str) -> ServerAnswer {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", authorization)
            .body(())
            .unwrap();
        self.api.answer(&ServerRequest::of(&request))
    }

    fn reply(&self, method: &str, path: &str, authorization: &str) -> ServerReply {
        match self.answer(method, path, authorization) {
            ServerAnswer::Reply(reply) => reply,
            ServerAnswer::Events(_) => panic!("{path} is a stream"),
        }
    }

    fn get(&self, path: &str) -> Value {
        let reply = self.reply("GET", path, "");
        assert_eq!(reply.code(), 200, "{reply:?}");
        serde_json::from_str(reply.body()).unwrap()
    }

    /// The status of a POST with the token.
    fn post(&self, path: &str) -> u16 {
        let token = std::fs::read_to_string(self.folder.path().join("token")).unwrap();
        let reply = self.reply("POST", path, &format!("Bearer {}", token.trim()));
        reply.code()
    }

    fn events(&self, path: &str) -> BoxStream<'static, String> {
        match self.answer("GET", path, "") {
            ServerAnswer::Events(events) => events,
            ServerAnswer::Reply(reply) => panic!("{path}: {reply:?}"),
        }
    }

    /// The name that a client of nais/elector compares with that of its host.
    fn name(&self) -> String {
        self.get("/")["name"].as_str().unwrap().to_owned()
    }

    fn is_leader(&self) -> bool {
        let leader = self.get("/leader");
        assert_eq!(leader["is_leader"], self.get("/")["is_leader"]);
        leader["is_leader"].as_bool().unwrap()
    }
}

/// The next event that is no comment.
async fn next_data(events: &mut BoxStream<'static, String>) -> Value {
    loop {
        let event = events.next().await.unwrap();
        assert!(event.ends_with("\n\n"), "{event:?}");
        if let Some(data) = event.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
        assert!(event.starts_with(": "), "{event:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_answer_the_pod_of_the_leader_and_it_alone_that_it_leads() {
    let world = TestCluster::new();
    let blue = Sidecar::start(&world, BLUE);
    assert_eq!(blue.name(), "", "before the first term");
    blue.program.leads().await;
    let green = Sidecar::start(&world, GREEN);
    eventually(|| green.name() == "web-blue").await;
    assert_eq!(blue.name(), "web-blue");
    assert!(blue.is_leader() && !green.is_leader());

    let record = blue.program.lease().record();
    let leader = blue.get("/leader");
    let remaining = leader["remaining_ms"].as_u64().unwrap();
    assert!((6_000..=10_000).contains(&remaining), "{leader}");
    assert!(leader["deadline"].as_str().unwrap().ends_with('Z'));
    let without_time = |mut leader: Value| {
        let leader_fields = leader.as_object_mut().unwrap();
        leader_fields.remove("remaining_ms");
        leader_fields.remove("deadline");
        leader
    };
    let expected = |identity: &str, is_leader: bool| {
        json!({"lease": "default/web", "identity": identity, "name": "web-blue", "holder": BLUE,
            "is_leader": is_leader, "stopping": false, "term": record.term.0,
            "token": record.token.unwrap().0.0, "stale": false})
    };
    assert_eq!(without_time(leader), expected(BLUE, true));
    assert_eq!(without_time(green.get("/leader")), expected(GREEN, false));

    // The time of a release as RFC 3339 has it in Go, and nothing that a client of nais/elector does not expect.
    let update = blue.get("/")["last_update"].clone();
    assert_eq!(update.as_str().unwrap().len(), "2022-10-18T10:59:58Z".len());
    let mut events = green.events("/sse");
    let first = next_data(&mut events).await;
    let mut keys: Vec<_> = first.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["last_update", "name"]);
    assert_eq!(first["name"], "web-blue");
}

/// The API server is silent, and the last record that is known still names it: a program must not act on that.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_says_no_at_its_deadline_and_so_does_its_stream() {
    let world = TestCluster::new();
    let blue = Sidecar::start(&world, BLUE);
    blue.program.leads().await;
    let mut events = blue.events("/events");
    assert_eq!(next_data(&mut events).await["is_leader"], true);
    blue.program.faults().partition(true);
    let left = blue.get("/leader")["remaining_ms"].as_u64().unwrap();
    let cut = world.elapsed();
    pass(millis(left - 1)).await;
    assert!(blue.is_leader());
    pass(millis(2)).await;
    let leader = blue.get("/leader");
    let expected = [&json!(false), &json!(0)];
    assert_eq!([&leader["is_leader"], &leader["remaining_ms"]], expected);
    let expected = (json!(true), "");
    assert_eq!((leader["stopping"].clone(), blue.name().as_str()), expected);
    while next_data(&mut events).await["is_leader"] == true {}
    assert!(world.elapsed() - cut <= millis(left + 100));
    // A restarted process of that Pod is none that leads either.
    world.lease("default", "web").overwrite_holder(BLUE_BEFORE);
    blue.program.faults().clear();
    eventually(|| blue.get("/leader")["holder"] == BLUE_BEFORE).await;
    assert_eq!(blue.name(), "");
}

/// It has its time, and the lease is kept meanwhile; it may be faster.
#[tokio::test(start_paused = true)]
async fn the_program_beside_has_its_grace_before_the_lease_is_given_away() {
    for (program_is_done, least, most) in [(None, 9_500, 11_000), (Some(3_000), 3_000, 3_500)] {
        let world = TestCluster::new();
        let blue = Sidecar::start(&world, BLUE);
        blue.program.leads().await;
        let mut events = blue.events("/events");
        let _ = next_data(&mut events).await;
        assert_eq!(blue.post("/unwell"), 200);
        let asked = world.elapsed();
        let told = next_data(&mut events).await;
        let expected = [&json!(false), &json!(true)];
        assert_eq!([&told["is_leader"], &told["stopping"]], expected);
        assert!(told["stop_within_ms"].as_u64().unwrap() > 9_000, "{told}");
        assert!(world.elapsed() - asked <= millis(10));
        if let Some(time) = program_is_done {
            pass(millis(time)).await;
            let expected = Some(BLUE);
            assert_eq!(world.lease("default", "web").holder().as_deref(), expected);
            assert_eq!(blue.post("/release"), 200);
        }
        eventually(|| world.lease("default", "web").holder().is_none()).await;
        let took = world.elapsed() - asked;
        assert!((millis(least)..millis(most)).contains(&took), "{took:?}");
        // It stays out until it is reported to be well.
        pass(seconds(120)).await;
        assert_eq!(world.lease("default", "web").holder(), None);
        assert_eq!(blue.post("/well"), 200);
        eventually(|| blue.is_leader()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_gives_the_lease_up_at_once_and_leaves_it_to_others_for_a_while() {
    let world = TestCluster::new();
    let blue = Sidecar::start(&world, BLUE);
    blue.program.leads().await;
    let green = Sidecar::start(&world, GREEN);
    eventually(|| green.name() == "web-blue").await;
    let mut events = green.events("/sse");
    assert_eq!(next_data(&mut events).await["name"], "web-blue");
    assert_eq!(green.post("/release"), 409, "it does not lead");
    assert_eq!(blue.post("/release?for=soon"), 400);
    assert_eq!(blue.post("/release?for=61m"), 400);
    assert_eq!(blue.post("/release?tokn=1"), 400);
    let token = blue.get("/leader")["token"].as_u64().unwrap();
    let earlier = format!("/release?token={}", token - 1);
    assert_eq!(blue.post(&earlier), 409, "late, from an earlier term");
    let holds = blue.is_leader();
    assert!(holds, "a release that is refused changes nothing");

    let released = world.elapsed();
    assert_eq!(blue.post(&format!("/release?token={token}&for=20s")), 200);
    assert!(!blue.is_leader(), "from the answer on");
    while next_data(&mut events).await["name"] != "web-green" {}
    assert!(
        world.elapsed() - released < seconds(1),
        "{:?}",
        world.elapsed() - released
    );
    eventually(|| green.is_leader()).await;
    // It is a candidate again, and takes what is free.
    drop(green);
    eventually(|| blue.is_leader()).await;
    assert!(world.elapsed() - released >= seconds(20));
}

/// Its word that it has stopped is no wish to stay out.
#[tokio::test(start_paused = true)]
async fn a_leader_that_hands_over_when_its_program_is_done_stays_a_candidate() {
    let world = TestCluster::new();
    let start = |identity| {
        let config = Config::new("web", "1.0.0").identity(identity);
        Sidecar::start_as(&world, config, false)
    };
    let blue = start(BLUE);
    blue.program.leads().await;
    let green = start(GREEN);
    eventually(|| green.name() == "web-blue").await;
    world.lease("default", "web").prefer(GREEN);
    eventually(|| blue.get("/leader")["stopping"] == true).await;
    assert!(!blue.is_leader() && !green.is_leader());
    let expected = (String::new(), "web-blue".to_owned());
    assert_eq!((blue.name(), green.name()), expected);
    assert_eq!(blue.post("/release"), 200);
    let released = world.elapsed();
    eventually(|| green.is_leader()).await;
    assert!(world.elapsed() - released < seconds(1));
    assert_eq!(blue.program.handle().check_ready(), Ok(()));
}

/// A native sidecar is asked to end after its program; another one is not.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_program_unless_that_has_ended_before() {
    for (program_ends_first, least, most) in [(true, 0, 500), (false, 9_500, 11_000)] {
        let world = TestCluster::new();
        let config = Config::as_client_go("web").identity(BLUE);
        let mut blue = Sidecar::start_as(&world, config, program_ends_first);
        blue.program.leads().await;
        blue.ending.store(true, Ordering::Relaxed);
        let asked = world.elapsed();
        blue.program.shut_down();
        eventually(|| world.lease("default", "web").holder().is_none()).await;
        let took = world.elapsed() - asked;
        assert!((millis(least)..millis(most)).contains(&took), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_those_who_have_the_token_change_anything() {
    let world = TestCluster::new();
    let mut blue = Sidecar::start(&world, BLUE);
    blue.program.leads().await;
    for path in ["/release", "/unwell", "/well"] {
        assert_eq!(blue.reply("GET", path, "").code(), 405, "{path}");
        for token in ["", "Bearer", "Bearer x", "Basic x"] {
            assert_eq!(
                blue.reply("POST", path, token).code(),
                401,
                "{path}: {token}"
            );
        }
    }
    for path in [
        "/", "/leader", "/sse", "/events", "/livez", "/metrics", "/nowhere",
    ] {
        assert_eq!(blue.reply("POST", path, "").code(), 405, "{path}");
    }
    assert_eq!(blue.reply("GET", "/nowhere", "").code(), 404);
    assert_eq!(blue.reply("GET", "/livez", "").code(), 200);
    let figures = blue.reply("GET", "/metrics", "");
    assert!(figures.body().contains("elector_candidate_"), "{figures:?}");
    blue.api.token = None;
    assert_eq!(blue.post("/unwell"), 403);
    pass(seconds(60)).await;
    assert!(blue.is_leader());
}

#[test]
fn a_command_is_given_an_address_that_it_can_reach() {
    for (listens, path) in [
        ("127.0.0.1:4040", "127.0.0.1:4040"),
        ("0.0.0.0:4040", "127.0.0.1:4040"),
        ("[::]:4040", "[::1]:4040"),
        ("10.1.2.3:1", "10.1.2.3:1"),
    ] {
        let address = reachable(listens.parse().unwrap());
        assert_eq!(
            variables(address),
            [
                ("ELECTOR_GET_URL", format!("http://{path}/")),
                ("ELECTOR_SSE_URL", format!("http://{path}/sse")),
                ("ELECTOR_PATH", path.to_owned()),
            ]
        );
    }
}
