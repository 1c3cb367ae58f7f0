//! The network between one client and the API server.

use std::time::Duration;

/// The condition of the network between one client and the API server, from the moment it is set until the next is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkCondition {
    /// Everything passes.
    #[default]
    Normal,
    /// A request arrives this much later, also if the client has given up by then.
    LateRequests(Duration),
    /// A request arrives this much later, and is dropped if its client has given up by then.
    ForgottenRequests(Duration),
    /// A request is served at once; its answer, and each event of a watch, arrives this much later.
    LateReplies(Duration),
    /// A write of a Lease is served, and its answer waits for another condition.
    HeldRenewals,
    /// A request is served, and its answer never arrives.
    LostReplies,
    /// No byte passes, and new connections are not answered. What was sent meanwhile arrives afterwards.
    Partition,
    /// The same on every other connection: one of two servers behind an address is silent.
    HalfPartition,
    /// Requests arrive and are served, and not a byte comes back. It comes afterwards.
    OneWay,
    /// No byte passes, new connections are not answered, and nothing that was sent meanwhile ever arrives.
    BlackHole,
    /// Connections are reset, new ones too.
    Reject,
    /// Requests are answered with 429 and `Retry-After` of this number of seconds.
    TooManyRequests(u32),
    /// Requests are answered with 500.
    ServerErrors,
    /// Watches stay open and say nothing. What they had to say arrives afterwards.
    FrozenWatches,
    /// Watches end, and new ones are answered with 500.
    BrokenWatches,
}

// === impl NetworkCondition ===

impl NetworkCondition {
    /// The delay of answers.
    pub(crate) fn reply_delay(self) -> Duration {
        match self {
            Self::LateReplies(delay) => delay,
            _ => Duration::ZERO,
        }
    }

    /// The delay of requests.
    pub(crate) fn request_delay(self) -> Duration {
        match self {
            Self::LateRequests(delay) | Self::ForgottenRequests(delay) => delay,
            _ => Duration::ZERO,
        }
    }

    /// The condition of one connection.
    pub(crate) fn of_connection(self, odd: bool) -> Self {
        match self {
            Self::HalfPartition if odd => Self::Partition,
            Self::HalfPartition => Self::Normal,
            other => other,
        }
    }
}
