//! The answer to *who leads*, as the clocks say at the moment of a request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_api::Rfc3339;
use elector_candidate::CandidateHandle;
use elector_protocol::{Identity, Instant, Timestamp};
use serde::Serialize;

use crate::candidate::current_term::{CurrentTerm, RunningTerm};
use crate::explain::present;

/// Where the answers come from. Clones are of the same process.
#[derive(Clone, Debug)]
pub(super) struct LeaderSource {
    handle: CandidateHandle,
    current: CurrentTerm,
    last: Arc<Mutex<LastName>>,
}

/// The name that was answered last, and since when.
#[derive(Debug)]
struct LastName {
    name: String,
    since: Timestamp,
}

/// The answer to `/leader`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct LeaderView {
    lease: String,
    /// The identity of this process.
    identity: String,
    /// The Pod of the leader, empty where none may act.
    name: String,
    holder: Option<String>,
    /// True if the program may begin something new.
    pub(super) is_leader: bool,
    /// True if it has to end what it has begun.
    stopping: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_within_ms: Option<u64>,
    term: Option<i32>,
    token: Option<u64>,
    /// When `is_leader` turns false unless another renewal succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    remaining_ms: u64,
    stale: bool,
}

/// The answer to `/`, in the words of nais/elector.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct NamedLeader {
    name: String,
    last_update: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_leader: Option<bool>,
}

/// The part of a view that its followers wake for: all but how the time passes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenLeader {
    pub(super) name: String,
    holder: Option<String>,
    is_leader: bool,
    stopping: bool,
    token: Option<u64>,
    stale: bool,
    /// Moved by each renewal.
    deadline: Option<Instant>,
}

// === impl LeaderSource ===

impl LeaderSource {
    pub(super) fn new(handle: CandidateHandle, current: CurrentTerm) -> Self {
        let name = String::new();
        let since = present();
        Self {
            handle,
            current,
            last: Arc::new(Mutex::new(LastName { name, since })),
        }
    }

    pub(super) const fn handle(&self) -> &CandidateHandle {
        &self.handle
    }

    pub(super) const fn current(&self) -> &CurrentTerm {
        &self.current
    }

    /// The present leader.
    pub(super) fn view(&self) -> LeaderView {
        self.look().0
    }

    /// The same, and what is to be compared with what was seen before.
    pub(super) fn look(&self) -> (LeaderView, SeenLeader) {
        let (led, status) = (self.current.get(), self.handle.status());
        let own = self.handle.identity();
        let holder = status.holder().cloned();
        let (term, token, stale) = (status.term(), status.token(), status.is_stale());
        let stop_within = led.as_ref().and_then(RunningTerm::stops_within);
        let deadline = led.as_ref().and_then(|led| led.guard.deadline());
        // Last: the later the clock is read, the better.
        let led = led.filter(RunningTerm::may_begin);
        let remaining = led.map_or(Duration::ZERO, |led| led.guard.remaining());
        let is_leader = !remaining.is_zero();
        let name = match &holder {
            _ if is_leader => pod_name(own),
            // Also another process of this Pod is no reason for a program of this Pod to act.
            Some(holder) if !stale && pod_name(holder) != pod_name(own) => pod_name(holder),
            _ => "",
        };
        let view = LeaderView {
            lease: self.handle.lease().to_string(),
            identity: own.to_string(),
            name: name.to_owned(),
            holder: holder.map(|holder| holder.to_string()),
            is_leader,
            stopping: stop_within.is_some(),
            stop_within_ms: stop_within.map(millis),
            term,
            token,
            deadline: is_leader.then(|| after_present(remaining)).flatten(),
            remaining_ms: millis(remaining),
            stale,
        };
        let seen = SeenLeader {
            name: view.name.clone(),
            holder: view.holder.clone(),
            is_leader,
            stopping: view.stopping,
            token,
            stale,
            deadline: deadline.filter(|_| is_leader),
        };
        self.note(&view.name);
        (view, seen)
    }

    /// The same in the words of nais/elector, and in theirs alone where `is_leader` is left out.
    pub(super) fn named(&self, with_is_leader: bool) -> NamedLeader {
        let view = self.view();
        NamedLeader {
            last_update: whole_seconds(self.note(&view.name)),
            name: view.name,
            is_leader: with_is_leader.then_some(view.is_leader),
        }
    }

    /// Since when that has been the name.
    fn note(&self, name: &str) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.name != name {
            *last = LastName {
                name: name.to_owned(),
                since: present(),
            };
        }
        last.since
    }
}

/// The name of the Pod of an identity: of ours, of client-go's usual `HOSTNAME_UUID`, and the identity itself where it was
/// chosen.
fn pod_name(identity: &Identity) -> &str {
    identity.pod().unwrap_or_else(|| {
        let text = identity.as_str();
        match text.rsplit_once('_') {
            Some((host, uuid)) if !host.is_empty() && is_uuid(uuid) => host,
            _ => text,
        }
    })
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// That time from now on, by the wall clock, for people and for what has no other clock.
fn after_present(time: Duration) -> Option<String> {
    let micros = i64::try_from(time.as_micros()).ok()?;
    let deadline = Timestamp::from_micros(present().as_micros().checked_add(micros)?)?;
    Some(Rfc3339(deadline).to_string())
}

/// As RFC 3339 without a fraction.
fn whole_seconds(time: Timestamp) -> String {
    let text = Rfc3339(time).to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}
