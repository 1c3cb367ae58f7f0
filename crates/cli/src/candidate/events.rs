//! One JSON line on standard output for each event, for programs that watch a candidate.

use std::io::Write;

use elector_api::Rfc3339;
use elector_candidate::{Event, TermOrigin};
use elector_protocol::holder::StopReason;
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::printable_json;
use serde::Serialize;

use crate::explain::present;

/// Prints events as they happen, or nothing.
#[derive(Debug)]
pub(super) struct EventLines<W> {
    /// Where to, if at all.
    out: Option<W>,
    name: Identity,
    lease: LeaseKey,
    /// The term that is not over yet.
    term: Option<(i32, u64)>,
    /// True once its loss has been reported.
    lost: bool,
    /// The error of its probe, where that is why the term ends.
    unwell: Option<String>,
}

/// One line.
#[derive(Debug, Serialize)]
struct EventOutput<'a> {
    event: &'static str,
    name: &'a str,
    time: String,
    lease: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired: Option<bool>,
    /// Of a loss, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The same in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

// === impl EventLines ===

impl<W: Write> EventLines<W> {
    /// Lines of that candidate.
    pub(super) const fn new(out: Option<W>, name: Identity, lease: LeaseKey) -> Self {
        Self {
            out,
            name,
            lease,
            term: None,
            lost: false,
            unwell: None,
        }
    }

    /// The process runs.
    pub(super) fn start(&mut self) {
        self.print("start", None, false);
    }

    /// Something happened to the candidate.
    pub(super) fn tell(&mut self, event: &Event) {
        match event {
            Event::Registered | Event::WorkFailed { .. } => {}
            Event::Unwell { reason, .. } => self.unwell = Some(reason.clone()),
            Event::Leading {
                term, token, by, ..
            } => {
                self.term = Some((*term, *token));
                self.unwell = None;
                let acquired = matches!(by, TermOrigin::Acquired { .. });
                self.print("leading", None, acquired);
            }
            // Between the loss and the end of the work, the work runs without belief: both are reported.
            Event::Stopping {
                reason: StopReason::Lost(loss),
                ..
            } => {
                self.lost = true;
                self.print("lost", Some((loss.to_string(), loss.cause())), false);
            }
            Event::Stopping { .. } => {}
            Event::WorkStopped { .. } => self.print("work-stopped", None, false),
            Event::Ended { end, .. } => {
                if !std::mem::take(&mut self.lost) {
                    let unwell = self.unwell.take();
                    let why = unwell.map(|error| format!("unwell: {error}; "));
                    let reason = why.unwrap_or_default() + &end.to_string();
                    self.print("lost", Some((reason, end.cause())), false);
                }
                self.term = None;
            }
            _ => {}
        }
    }

    fn print(&mut self, event: &'static str, end: Option<(String, &'static str)>, acquired: bool) {
        let Some(out) = &mut self.out else {
            return;
        };
        let (term, (reason, cause)) = (self.term, end.unzip());
        let line = EventOutput {
            event,
            name: self.name.as_str(),
            time: Rfc3339(present()).to_string(),
            lease: self.lease.to_string(),
            term: term.map(|(term, _)| term),
            token: term.map(|(_, token)| token),
            acquired: acquired.then_some(true),
            reason,
            cause,
        };
        // A reader that has gone is no reason to stop leading.
        if let Ok(text) = serde_json::to_string(&line) {
            let text = printable_json(&text).into_owned() + "\n";
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elector_candidate::TermEnd;
    use elector_protocol::holder::Loss;
    use serde_json::{Value, json};

    use super::*;

    const TERM: i32 = 3;

    fn lines(events: &[Event]) -> Vec<Value> {
        let name = Identity::new("me").unwrap();
        let mut lines = EventLines::new(Some(Vec::new()), name, LeaseKey::new("ns", "web"));
        lines.start();
        for event in events {
            lines.tell(event);
        }
        let text = String::from_utf8(lines.out.unwrap()).unwrap();
        let mut lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for line in &mut lines {
            let line = line.as_object_mut().unwrap();
            assert_eq!(line.remove("name").unwrap(), "me");
            assert_eq!(line.remove("lease").unwrap(), "ns/web");
            // Microseconds, as the rest of the world has them.
            assert_eq!(line.remove("time").unwrap().as_str().unwrap().len(), 27);
        }
        lines
    }

    fn leading() -> Event {
        Event::leading(TERM, 70, TermOrigin::Granted)
    }

    fn stopping(reason: StopReason) -> Event {
        Event::stopping(TERM, reason)
    }

    fn ended(end: TermEnd) -> Event {
        Event::ended(TERM, end)
    }

    const STOPPED: Event = Event::work_stopped(TERM);

    #[test]
    fn a_hand_over_is_told_in_the_order_in_which_it_happens() {
        let to = Identity::new("b").unwrap();
        let told = lines(&[
            Event::Registered,
            leading(),
            stopping(StopReason::HandOver { to: to.clone() }),
            STOPPED,
            ended(TermEnd::HandedOver { to }),
        ]);
        let expected = [
            json!({"event": "start"}),
            json!({"event": "leading", "term": 3, "token": 70}),
            json!({"event": "work-stopped", "term": 3, "token": 70}),
            json!({"event": "lost", "term": 3, "token": 70, "reason": "handed over to b", "cause": "handed_over"}),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_term_says_whether_it_was_taken_without_an_elector() {
        let free = Duration::from_secs(5);
        let acquired = Event::leading(TERM, 70, TermOrigin::acquired(free));
        let told = lines(&[acquired, STOPPED, leading()]);
        let acquired: Vec<_> = told.iter().map(|line| line["acquired"] == true).collect();
        assert_eq!(acquired, [false, true, false, false]);
    }

    /// A loss is reported before the work has stopped, and once.
    #[test]
    fn the_reason_of_an_end_is_that_of_the_loss_or_of_the_probe() {
        let loss = Loss::DeadlinePassed;
        let told = lines(&[
            leading(),
            Event::unwell("no cloud"),
            stopping(StopReason::ShutDown),
            STOPPED,
            ended(TermEnd::Released),
            Event::Well,
            leading(),
            ended(TermEnd::Released),
            leading(),
            stopping(StopReason::Lost(loss.clone())),
            STOPPED,
            ended(TermEnd::Lost(loss)),
        ]);
        let told: Vec<_> = told
            .iter()
            .map(|line| (line["event"].as_str().unwrap(), line["reason"].as_str()))
            .collect();
        let passed = "no renewal succeeded within the renew deadline";
        let expected = [
            ("start", None),
            ("leading", None),
            ("work-stopped", None),
            ("lost", Some("unwell: no cloud; released")),
            ("leading", None),
            ("lost", Some("released")),
            ("leading", None),
            ("lost", Some(passed)),
            ("work-stopped", None),
        ];
        assert_eq!(told, expected);
    }
}
