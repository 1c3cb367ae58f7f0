//! One address in front of several API servers, as the load balancer of a control plane has it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes each new connection to the next of its servers. Dropping it closes the address and cuts all connections.
#[derive(Debug)]
pub struct LoadBalancer {
    servers: watch::Sender<Vec<SocketAddr>>,
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    // Dropped with the balancer, which ends them.
    _accepting: JoinSet<()>,
}

// === impl LoadBalancer ===

impl LoadBalancer {
    /// Listens at `address` for connections to these servers.
    pub async fn listen(address: SocketAddr, servers: Vec<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("failed to listen at {address}"))?;
        let address = listener.local_addr()?;
        let (servers, changes) = watch::channel(servers);
        let mut accepting = JoinSet::new();
        let open = Arc::<AtomicUsize>::default();
        accepting.spawn(accept(listener, changes, Arc::clone(&open)));
        Ok(Self {
            servers,
            address,
            open,
            _accepting: accepting,
        })
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of connections that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Cuts all connections, and passes new ones to these servers.
    pub fn route(&self, servers: Vec<SocketAddr>) {
        self.servers.send_replace(servers);
    }
}

async fn accept(
    listener: TcpListener,
    changes: watch::Receiver<Vec<SocketAddr>>,
    open: Arc<AtomicUsize>,
) {
    // Dropped with this task.
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (passing, open) = (pass(client, changes.clone(), turn), Arc::clone(&open));
        open.fetch_add(1, Ordering::Relaxed);
        connections.spawn(async move {
            passing.await;
            open.fetch_sub(1, Ordering::Relaxed);
        });
        turn = turn.wrapping_add(1);
    }
}

/// Passes the bytes of one connection on, until one of its ends is gone or other servers are to be used.
async fn pass(mut client: TcpStream, mut changes: watch::Receiver<Vec<SocketAddr>>, turn: usize) {
    let server = {
        let servers = changes.borrow_and_update();
        servers.get(turn % servers.len().max(1)).copied()
    };
    let Some(server) = server else {
        return;
    };
    let copied = async {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        biased;
        // An error means that the balancer is gone.
        _ = changes.changed() => {}
        // One that broke off is no more than a connection that has ended.
        _ = copied => {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// A server that says this letter to each client, and keeps the connection.
    async fn server(letter: u8) -> SocketAddr {
        let listener = TcpListener::bind(ANY).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut client, _)) = listener.accept().await {
                client.write_all(&[letter]).await.unwrap();
                kept.push(client);
            }
        });
        address
    }

    /// A new connection, and the letter of the server that it leads to.
    async fn connect(address: SocketAddr) -> (TcpStream, u8) {
        let mut client = TcpStream::connect(address).await.unwrap();
        let letter = client.read_u8().await.unwrap();
        (client, letter)
    }

    #[tokio::test]
    async fn connections_take_turns_and_are_cut_when_the_servers_change() {
        let (a, b) = (server(b'a').await, server(b'b').await);
        let address = TcpListener::bind(ANY).await.unwrap().local_addr().unwrap();
        let balancer = LoadBalancer::listen(address, vec![a, b]).await.unwrap();
        let (mut first, one) = connect(address).await;
        let (_second, two) = connect(address).await;
        assert_eq!([one, two], *b"ab");
        balancer.route(vec![b]);
        assert!(first.read_u8().await.is_err(), "it is cut");
        for _ in 0..2 {
            assert_eq!(connect(address).await.1, b'b');
        }
    }
}
