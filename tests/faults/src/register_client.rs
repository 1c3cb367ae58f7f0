//! The way of a client's operations to the register. The rivals of `tests/interop` take this file as it is.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

/// Where the work of one period is done.
#[derive(Debug)]
pub struct RegisterClient {
    address: SocketAddr,
    path: String,
    /// The number of the period.
    pub period: u64,
    connection: Option<TcpStream>,
}

/// The interval of its work.
const PERIOD: Duration = Duration::from_millis(50);

/// The longest time of an operation: less than the effect grace of 5 s.
const PATIENCE: Duration = Duration::from_secs(1);

// === impl RegisterClient ===

impl RegisterClient {
    /// Of the register at `http://ADDRESS/GROUP/CLIENT`.
    ///
    /// # Errors
    /// When that is not of this form.
    pub fn new(register: &str, period: u64) -> Result<Self> {
        let (address, path) = register
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .context("--register is not of the form http://ADDRESS/PATH")?;
        Ok(Self {
            address: address.parse().context("--register has no address")?,
            path: path.to_owned(),
            period,
            connection: None,
        })
    }

    /// Another one, for another period.
    #[must_use]
    pub fn of_period(&self, period: u64) -> Self {
        Self {
            address: self.address,
            path: self.path.clone(),
            period,
            connection: None,
        }
    }

    /// The times of its work.
    pub fn ticks() -> Interval {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks
    }

    /// One operation, if it may be done at the very moment when everything is ready for it. What fails is left, as
    /// the next one comes soon.
    pub async fn operate(&mut self, token: u64, may: impl Fn() -> bool) {
        if !matches!(timeout(PATIENCE, self.post(token, may)).await, Ok(Ok(()))) {
            self.connection = None;
        }
    }

    async fn post(&mut self, token: u64, may: impl Fn() -> bool) -> Result<()> {
        let Self {
            address,
            path,
            period,
            ..
        } = self;
        let request = format!(
            "POST /{path}/{period}/{token} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"
        );
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let connection = TcpStream::connect(*address).await?;
                connection.set_nodelay(true)?;
                none.insert(connection)
            }
        };
        // Nothing is awaited between this and the send.
        if !may() {
            return Ok(());
        }
        connection.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if connection.read_buf(&mut answer).await? == 0 {
                anyhow::bail!("the register closed the connection");
            }
        }
        Ok(())
    }
}
