//! One JSON line on standard output for each event, for programs that watch a candidate.

use std::io::Write as _;
use std::time::SystemTime;

use elector_api::Rfc3339;
use elector_candidate::Event;
use elector_protocol::candidate::StopReason;
use elector_protocol::{Identity, LeaseKey, Term, Timestamp, Token};
use serde::Serialize;

/// Prints events as they happen, or nothing.
#[derive(Debug)]
pub(super) struct EventLines {
    printed: bool,
    name: Identity,
    lease: LeaseKey,
    /// The term that has not been reported as lost yet.
    term: Option<(Term, Token)>,
}

/// One line.
#[derive(Debug, Serialize)]
struct Line<'a> {
    event: &'static str,
    name: &'a str,
    time: String,
    lease: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

// === impl EventLines ===

impl EventLines {
    /// Lines of that candidate; none at all unless they were asked for.
    pub(super) const fn new(printed: bool, name: Identity, lease: LeaseKey) -> Self {
        Self {
            printed,
            name,
            lease,
            term: None,
        }
    }

    /// The process runs.
    pub(super) fn start(&self) {
        self.print("start", None, None);
    }

    /// Something happened to the candidate.
    pub(super) fn tell(&mut self, event: &Event) {
        match event {
            Event::Registered => {}
            Event::Leading { term, token } => {
                self.term = Some((*term, *token));
                self.print("leading", self.term, None);
            }
            // Between the loss and the end of the work, the work runs without belief: both are told.
            Event::Stopping { why, .. } => {
                if let (StopReason::Lost(_), Some(term)) = (why, self.term.take()) {
                    self.print("lost", Some(term), Some(why.to_string()));
                }
            }
            Event::WorkStopped { .. } => self.print("work-stopped", self.term, None),
            Event::Ended { end, .. } => {
                if let Some(term) = self.term.take() {
                    self.print("lost", Some(term), Some(end.to_string()));
                }
            }
        }
    }

    fn print(&self, event: &'static str, term: Option<(Term, Token)>, reason: Option<String>) {
        if !self.printed {
            return;
        }
        let line = Line {
            event,
            name: self.name.as_str(),
            time: Rfc3339(now()).to_string(),
            lease: self.lease.to_string(),
            term: term.map(|(term, _)| term.0),
            token: term.map(|(_, token)| token.0.0),
            reason,
        };
        // Whoever reads may have gone; that is no reason to stop leading.
        if let Ok(mut text) = serde_json::to_vec(&line) {
            text.push(b'\n');
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(&text).and_then(|()| out.flush());
        }
    }
}

fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let micros = elapsed.map_or(0, |elapsed| elapsed.as_micros());
    let micros = i64::try_from(micros).ok();
    micros
        .and_then(Timestamp::from_micros)
        .unwrap_or(Timestamp::MAX)
}
