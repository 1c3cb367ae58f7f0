//! Requests to servers of the programs under test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::spawn_blocking;

/// The time limit of an answer.
const ANSWERS: Duration = Duration::from_secs(10);

/// The status and the body of the answer to a request, such as `GET /readyz`, with these lines of a header.
pub async fn http(address: SocketAddr, request: &str, headers: &str) -> Result<(u16, String)> {
    let request = format!("{request} HTTP/1.1\r\nhost: elector\r\n{headers}\r\n");
    let answer = spawn_blocking(move || {
        let mut stream = TcpStream::connect_timeout(&address, ANSWERS)?;
        stream.set_read_timeout(Some(ANSWERS))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    });
    let answer = answer.await??;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
    let code = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((code, body.to_owned()))
}
