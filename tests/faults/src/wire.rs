//! The wire of one connection: it can stand still, as if no packet came through, and it can be cut.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::network::NetworkCondition;

/// The number of bytes in one piece.
const PIECE: usize = 16 * 1024;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// The state of a wire under a network condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WireState {
    /// Everything.
    Open,
    /// Nothing for now.
    Still,
    /// Nothing any more.
    Cut,
}

/// Carries bytes between the socket and the server at the other end, until one of them closes or the condition cuts the
/// wire: in a partition the bytes wait and arrive afterwards, after a black hole the connection is dead, and where
/// connections are refused it is reset.
pub(crate) async fn carry(
    mut socket: TcpStream,
    server: DuplexStream,
    network: &watch::Receiver<NetworkCondition>,
    odd: bool,
) {
    let (from_client, to_client) = socket.split();
    let (from_server, to_server) = tokio::io::split(server);
    let of = || network.clone();
    let both = tokio::try_join!(
        relay(Direction::ToServer, odd, from_client, to_server, of()),
        relay(Direction::ToClient, odd, from_server, to_client, of()),
    );
    if both.is_err() {
        // A cut wire looks cut: a reset, and not the polite end of a stream. Fails where it is closed already.
        let _ = socket.set_zero_linger();
    }
}

/// Carries bytes one way until their source ends. An error when the wire is cut.
async fn relay(
    direction: Direction,
    odd: bool,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut network: watch::Receiver<NetworkCondition>,
) -> io::Result<()> {
    let mut piece = vec![0_u8; PIECE];
    let mut before = network.borrow_and_update().of_connection(odd);
    loop {
        let now = network.borrow_and_update().of_connection(odd);
        let state = state(direction, before, now);
        before = now;
        if state == WireState::Cut {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        tokio::select! {
            biased;
            changed = network.changed() => changed.map_err(io::Error::other)?,
            read = from.read(&mut piece), if state == WireState::Open => {
                let length = read?;
                if length == 0 {
                    return to.shutdown().await;
                }
                to.write_all(&piece[..length]).await?;
            }
        }
    }
}

/// The state of a wire after a change of the condition.
fn state(direction: Direction, before: NetworkCondition, now: NetworkCondition) -> WireState {
    match (before, now) {
        (_, NetworkCondition::Reject) => WireState::Cut,
        (_, NetworkCondition::Partition)
        | (NetworkCondition::BlackHole, NetworkCondition::BlackHole) => WireState::Still,
        // Bytes that went into the hole are gone, and with them every connection that missed them.
        (NetworkCondition::BlackHole, _) => WireState::Cut,
        (_, NetworkCondition::BlackHole) => WireState::Still,
        (_, NetworkCondition::OneWay) if direction == Direction::ToClient => WireState::Still,
        _ => WireState::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_heals_and_a_black_hole_does_not() {
        use NetworkCondition::{BlackHole, FrozenWatches, Normal, OneWay, Partition, Reject};
        for direction in [Direction::ToServer, Direction::ToClient] {
            let state = |before, now| state(direction, before, now);
            assert_eq!(state(Normal, FrozenWatches), WireState::Open);
            assert_eq!(state(Normal, Partition), WireState::Still);
            assert_eq!(state(Partition, Normal), WireState::Open);
            assert_eq!(state(Normal, BlackHole), WireState::Still);
            assert_eq!(state(BlackHole, BlackHole), WireState::Still);
            assert_eq!(state(BlackHole, Normal), WireState::Cut);
            assert_eq!(state(Normal, Reject), WireState::Cut);
        }
        assert_eq!(state(Direction::ToServer, Normal, OneWay), WireState::Open);
        assert_eq!(state(Direction::ToClient, Normal, OneWay), WireState::Still);
    }
}
