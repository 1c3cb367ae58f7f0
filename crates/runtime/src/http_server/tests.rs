use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;

use super::*;

/// A server that answers with the path, and where it listens. It is aborted when dropped.
struct Echo {
    address: SocketAddr,
    task: JoinHandle<Infallible>,
}

impl Echo {
    async fn start() -> Self {
        let address = BindAddress::Socket((Ipv4Addr::LOCALHOST, 0).into());
        let answer = |path: &str, query: Option<&str>| ServerReply::ok(format!("{path} {query:?}"));
        let server = HttpServer::bind(address, answer).await.unwrap().unwrap();
        Self {
            address: server.local_address().unwrap(),
            task: tokio::spawn(server.serve()),
        }
    }

    /// An open connection.
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// All that comes back for these bytes until the server closes.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // A server that has seen enough may close before it has read all.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn a_request_is_answered_and_its_connection_closed() {
    let server = Echo::start().await;
    let answer = server
        .exchange(b"GET /a?b=c HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    for header in [
        "content-type: text/plain; charset=utf-8",
        "x-content-type-options: nosniff",
        "connection: close",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert_eq!(body, "/a Some(\"b=c\")");
    let answer = server
        .exchange(b"HEAD /a HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let holds = answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n");
    assert!(holds, "{answer}");
}

#[tokio::test]
async fn only_reads_are_answered() {
    let server = Echo::start().await;
    let post = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n";
    let answer = server.exchange(post).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.contains("allow: GET, HEAD"), "{answer}");
}

#[tokio::test]
async fn a_long_header_is_refused() {
    let server = Echo::start().await;
    let mut request = b"GET / HTTP/1.1\r\nlong: ".to_vec();
    request.resize(HEADER_BYTES + 1024, b'x');
    request.extend(b"\r\n\r\n");
    let answer = server.exchange(&request).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn silent_clients_keep_nobody_out() {
    let server = Echo::start().await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS + 3 {
        silent.push(server.connect().await);
    }
    let answer = server.exchange(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The first of them had to go.
    let mut rest = Vec::new();
    let closed = silent[0].read_to_end(&mut rest);
    let closed = tokio::time::timeout(HEADER_TIMEOUT / 2, closed).await;
    assert!(closed.is_ok(), "it is still open");
}

/// The clock of the runtime stands still, and the system's sockets do not: time passes where all wait for it.
#[tokio::test(start_paused = true)]
async fn a_client_that_sends_nothing_is_closed() {
    let server = Echo::start().await;
    let start = tokio::time::Instant::now();
    let answer = server.exchange(b"GET / HTTP/1.1\r\n").await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(start.elapsed() <= LIFETIME, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_port_in_use_is_refused() {
    let server = Echo::start().await;
    let answer = |_: &str, _: Option<&str>| ServerReply::not_found();
    let address = BindAddress::Socket(server.address);
    let error = HttpServer::bind(address, answer).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(
        HttpServer::bind(BindAddress::Off, answer)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_port_of_all_interfaces_is_shared_with_no_other_program() {
    let bind = |port| {
        let answer = |_: &str, _: Option<&str>| ServerReply::not_found();
        HttpServer::bind(BindAddress::AllInterfaces(port), answer)
    };
    let port = |server: &HttpServer| server.local_address().unwrap().port();
    let server = bind(0).await.unwrap().unwrap();
    let reached = TcpStream::connect((Ipv4Addr::LOCALHOST, port(&server))).await;
    assert!(reached.is_ok(), "{reached:?}");
    let mut taken = vec![port(&server)];
    // Half of a port, where the machine has IPv6.
    let half = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await;
    taken.extend(half.iter().map(|half| half.local_addr().unwrap().port()));
    for port in taken {
        let error = bind(port).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}

/// A stream that says one thing, and then nothing, for ever.
fn one_event(_: &ServerRequest<'_>) -> ServerAnswer {
    let first = futures::stream::iter(["data: 1\n\n".to_owned()]);
    ServerAnswer::events(futures::StreamExt::chain(first, futures::stream::pending()))
}

/// It is still open when any other connection has been closed, and makes way for newer streams alone.
#[tokio::test]
async fn a_stream_outlives_a_connection_and_the_oldest_makes_way_for_one_too_many() {
    let address = BindAddress::Socket((Ipv4Addr::LOCALHOST, 0).into());
    let server = HttpServer::bind_for_all_methods(address, one_event);
    let server = server.await.unwrap().unwrap();
    let server = Echo {
        address: server.local_address().unwrap(),
        task: tokio::spawn(server.serve()),
    };
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = server.connect().await;
        let request = b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut head = vec![0; 4096];
        let mut read = 0;
        while !String::from_utf8_lossy(&head[..read]).contains("data: 1\n\n") {
            let more = stream.read(&mut head[read..]).await.unwrap();
            assert!(more > 0, "closed after {read} bytes");
            read += more;
        }
        let head = String::from_utf8_lossy(&head[..read]).into_owned();
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        streams.push(stream);
    }
    // Sockets know nothing of the clock of the runtime, which stands still where only time is to pass.
    tokio::time::pause();
    let mut rest = Vec::new();
    let still_open = tokio::time::timeout(10 * LIFETIME, streams[0].read_to_end(&mut rest));
    assert!(still_open.await.is_err(), "it was closed");
    tokio::time::resume();
    let _one_more = server.connect().await;
    let closed = tokio::time::timeout(LIFETIME / 2, streams[0].read_to_end(&mut rest));
    assert!(closed.await.is_ok(), "the oldest is still open");
    tokio::time::pause();
    let still_open = tokio::time::timeout(10 * LIFETIME, streams[1].read_to_end(&mut rest));
    assert!(still_open.await.is_err(), "the second oldest was closed");
    tokio::time::resume();
    // A request for the header alone gets no stream.
    let head = server
        .exchange(b"HEAD /events HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
}

#[test]
fn each_refusal_has_its_code_and_a_missing_token_its_scheme() {
    for (reply, code, scheme) in [
        (ServerReply::bad_request("why"), 400, None),
        (ServerReply::unauthorized("why"), 401, Some("Bearer")),
        (ServerReply::forbidden("why"), 403, None),
        (ServerReply::conflict("why"), 409, None),
        (ServerReply::failed("why"), 500, None),
    ] {
        assert_eq!((reply.code(), reply.body()), (code, "why"));
        let response = ServerAnswer::from(reply).into_response();
        let shown = response.headers().get("www-authenticate");
        assert_eq!(shown.map(|it| it.to_str().unwrap()), scheme);
        assert_eq!(response.status(), code);
    }
}

#[test]
fn a_post_is_no_read_and_another_method_is_neither() {
    for (method, expected) in [
        ("GET", (true, false)),
        ("HEAD", (true, false)),
        ("POST", (false, true)),
        ("PUT", (false, false)),
    ] {
        let request = Request::builder().method(method).body(()).unwrap();
        let request = ServerRequest::of(&request);
        assert_eq!((request.is_read(), request.is_post()), expected, "{method}");
    }
}

#[test]
fn a_bearer_token_is_what_follows_the_scheme() {
    let token = |value: &'static str| {
        let request = Request::get("/a?b").header("authorization", value);
        let request = request.body(()).unwrap();
        ServerRequest::of(&request)
            .bearer_token()
            .map(str::to_owned)
    };
    assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
    assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
    let expected = [const { None }; 3];
    assert_eq!([token("Basic abc"), token("Bearer"), token("")], expected);
}
