use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::LOCATION;
use axum::http::{Request, StatusCode};
use elector_testing::{TestCluster, TestProgram, eventually, pass};
use tower::ServiceExt as _;

use super::*;

/// The identity of a process is the name of its Pod and a random part, from which others take the name.
const FIRST: &str = "tickets-0-00000000000000a0";
const SECOND: &str = "tickets-1-00000000000000a1";

struct TicketReplica {
    program: TestProgram<Result<(), elector_candidate::Error>>,
    routes: Router,
}

impl TicketReplica {
    /// A process, once it is a candidate.
    async fn start(world: &TestCluster, name: &str, data: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (cluster, data) = (world.cluster(name), PathBuf::from(data));
        let program = world.start(name, |stop| program(cluster, listener, data, stop));
        pass(Duration::from_secs(1)).await;
        let routes = routes::routes(program.handle());
        Self { program, routes }
    }

    /// The status of an answer, and where it leads or what it says.
    async fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty()).unwrap();
        let answer = self.routes.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        if let Some(location) = answer.headers().get(LOCATION) {
            return (status, location.to_str().unwrap().to_owned());
        }
        let text = to_bytes(answer.into_body(), 1_000).await.unwrap();
        (status, String::from_utf8(text.to_vec()).unwrap())
    }

    async fn buy(&self) -> (u16, String) {
        self.ask("POST", "/tickets").await
    }

    fn token(&self) -> u64 {
        self.program.handle().status().token().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_leader_gives_numbers_and_the_standby_sends_to_it() {
    let world = TestCluster::new();
    let mut first = TicketReplica::start(&world, FIRST, "/").await;
    let unled = first.buy().await;
    assert_eq!(unled, (503, String::new()), "nobody leads yet");
    first.program.leads().await;
    let second = TicketReplica::start(&world, SECOND, "/").await;

    let token = first.token();
    assert_eq!(first.buy().await, (200, format!("{token}-0")));
    assert_eq!(first.buy().await, (200, format!("{token}-1")));
    let there = "http://tickets-0.tickets:8080/tickets".to_owned();
    assert_eq!(second.buy().await, (307, there));
    assert_eq!(second.ask("GET", "/readyz").await, (200, "ok".to_owned()));

    // A rolling update: the request waits for the next leader.
    first.program.shut_down();
    pass(Duration::from_secs(1)).await;
    assert!(!second.program.handle().is_leader());
    assert_eq!(second.buy().await, (200, format!("{}-0", second.token())));
    assert!(token < second.token());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_gives_no_numbers() {
    let world = TestCluster::new();
    let first = TicketReplica::start(&world, FIRST, "/").await;
    first.program.leads().await;
    let second = TicketReplica::start(&world, SECOND, "/").await;
    first.program.faults().partition(true);
    eventually(|| !first.program.handle().is_leader()).await;
    // The others send to it until the lease expires; it does not send to itself.
    assert_eq!(second.buy().await.0, 307);
    assert_eq!(first.buy().await.0, 503);
    assert_eq!(second.buy().await, (200, format!("{}-0", second.token())));
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_its_volume_is_not_ready_and_another_leads() {
    let world = TestCluster::new();
    let first = TicketReplica::start(&world, FIRST, "/there/is/no/such/volume").await;
    let second = TicketReplica::start(&world, SECOND, "/").await;
    second.program.leads().await;
    let (status, reason) = first.ask("GET", "/readyz").await;
    assert_eq!(status, u16::from(StatusCode::SERVICE_UNAVAILABLE));
    assert!(reason.contains("No such file"), "{reason}");
    assert_eq!(first.ask("GET", "/livez").await.0, 200);
    // It is no candidate meanwhile, and follows no Lease.
    assert_eq!(first.buy().await.0, 503);
}
