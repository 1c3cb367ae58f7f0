//! One JSON line on standard output for each event, for programs that watch a candidate.

use std::io::{Stdout, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, Mutex};

use elector_api::Rfc3339;
use elector_candidate::{CandidateHandle, Event, TermOrigin};
use elector_protocol::holder::StopReason;
use elector_protocol::{Identity, Timestamp};
use elector_runtime::printable_json;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::explain::present;

/// Prints events as they happen, or nothing.
#[derive(Debug)]
pub(super) struct EventLines<W> {
    /// Where to, if at all.
    out: Option<W>,
    /// The source of the holder that all lines name.
    handle: CandidateHandle,
    /// The deadline that was printed last, in microseconds.
    deadline: Option<i64>,
    /// The term that is not over yet.
    term: Option<(i32, u64)>,
    /// True once its loss has been reported.
    lost: bool,
    /// True from the order to stop, or the loss, to the next term: a renewal gives no leave to work then.
    stops: bool,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejoined: Option<bool>,
    /// The identity that the Lease names.
    holder: Option<&'a str>,
    /// When this process leads no more, unless another renewal succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    /// Of a loss, or of the order to stop, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The same in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

/// The least by which a renewal moves a deadline, in microseconds: two readings of two clocks differ by less.
const CLOCK_NOISE: i64 = 100_000;

/// Prints the start of a candidate, and from now on its renewals, beside the events that the caller passes on.
pub(super) fn print_renewals(
    mut lines: EventLines<Stdout>,
    handle: &CandidateHandle,
) -> Arc<Mutex<EventLines<Stdout>>> {
    lines.start();
    let is_on = lines.out.is_some();
    let lines = Arc::new(Mutex::new(lines));
    if is_on {
        let (mut known, renewed) = (handle.watch(), Arc::clone(&lines));
        // Nothing waits for it, and it ends with the run. A parent that does not read misses renewals, and delays nothing.
        drop(tokio::spawn(async move {
            while known.changed().await.is_ok() {
                if has_room(std::io::stdout().as_fd())
                    && let Ok(mut lines) = renewed.try_lock()
                {
                    lines.note_renewal();
                }
            }
        }));
    }
    lines
}

/// True if a line can be written there without waiting for a reader: a pipe says so while it has room for a page, so that
/// room for some lines is left.
pub(super) fn has_room(out: BorrowedFd<'_>) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(out, PollFlags::OUT)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

// === impl EventLines ===

impl<W: Write> EventLines<W> {
    /// Lines of that candidate.
    pub(super) const fn new(out: Option<W>, handle: CandidateHandle) -> Self {
        Self {
            out,
            handle,
            deadline: None,
            term: None,
            lost: false,
            stops: false,
            unwell: None,
        }
    }

    /// The process runs.
    pub(super) fn start(&mut self) {
        self.print("start", None, None);
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
                self.stops = false;
                self.print("leading", None, Some(*by));
            }
            // Between the loss and the end of the work, the work runs without belief: both are reported.
            Event::Stopping {
                reason: StopReason::Lost(loss),
                ..
            } => {
                (self.lost, self.stops) = (true, true);
                let why = (loss.to_string(), Some(loss.cause()));
                self.print("lost", Some(why), None);
            }
            Event::Stopping { reason, .. } => {
                self.stops = true;
                self.print("stopping", Some((reason.to_string(), None)), None);
            }
            Event::WorkStopped { .. } => self.print("work-stopped", None, None),
            Event::Ended { end, .. } => {
                if !std::mem::take(&mut self.lost) {
                    let unwell = self.unwell.take();
                    let why = unwell.map(|error| format!("unwell: {error}; "));
                    let reason = why.unwrap_or_default() + &end.to_string();
                    self.print("lost", Some((reason, Some(end.cause()))), None);
                }
                self.term = None;
            }
            _ => {}
        }
    }

    /// A renewal may have moved the deadline.
    pub(super) fn note_renewal(&mut self) {
        let moved = self.deadline_now().map(Timestamp::as_micros);
        let is_leave = self.term.is_some() && !self.stops;
        let before = self.deadline.filter(|_| is_leave);
        if let (Some(moved), Some(before)) = (moved, before)
            && moved - before > CLOCK_NOISE
        {
            self.print("renewed", None, None);
        }
    }

    /// The end of the belief by the wall clock, if this process believes.
    fn deadline_now(&self) -> Option<Timestamp> {
        let remaining = self.handle.status().remaining();
        let micros = i64::try_from(remaining.as_micros()).ok()?;
        let deadline = present().as_micros().checked_add(micros)?;
        (!remaining.is_zero()).then(|| Timestamp::from_micros(deadline))?
    }

    fn print(
        &mut self,
        event: &'static str,
        end: Option<(String, Option<&'static str>)>,
        by: Option<TermOrigin>,
    ) {
        let deadline = self.deadline_now();
        self.deadline = deadline.map(Timestamp::as_micros);
        let Some(out) = &mut self.out else {
            return;
        };
        let (term, (reason, cause)) = (self.term, end.unzip());
        let status = self.handle.status();
        let line = EventOutput {
            event,
            name: self.handle.identity().as_str(),
            time: Rfc3339(present()).to_string(),
            lease: self.handle.lease().to_string(),
            term: term.map(|(term, _)| term),
            token: term.map(|(_, token)| token),
            acquired: matches!(by, Some(TermOrigin::Acquired { .. })).then_some(true),
            resumed: (by == Some(TermOrigin::Resumed)).then_some(true),
            rejoined: (by == Some(TermOrigin::Rejoined)).then_some(true),
            holder: status.holder().map(Identity::as_str),
            deadline: deadline.map(|at| Rfc3339(at).to_string()),
            reason,
            cause: cause.flatten(),
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
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    use elector_candidate::{Config, TermEnd};
    use elector_protocol::holder::Loss;
    use elector_testing::TestTerm;
    use serde_json::{Value, json};

    use super::*;

    const TERM: i32 = 3;

    fn lines(events: &[Event]) -> Vec<Value> {
        let term = TestTerm::of(config()).unwrap();
        term.expire_after(Duration::ZERO);
        let mut lines = EventLines::new(Some(Vec::new()), term.handle());
        lines.start();
        for event in events {
            lines.tell(event);
        }
        let mut lines = written(&lines);
        for line in &mut lines {
            let line = line.as_object_mut().unwrap();
            assert_eq!(line.remove("name").unwrap(), "me");
            assert_eq!(line.remove("lease").unwrap(), "ns/web");
            assert_eq!(line.remove("holder"), Some(Value::Null));
            // Microseconds, as the rest of the world has them.
            assert_eq!(line.remove("time").unwrap().as_str().unwrap().len(), 27);
        }
        lines
    }

    fn config() -> Config {
        Config::plain("web").namespace("ns").identity("me")
    }

    fn written(lines: &EventLines<Vec<u8>>) -> Vec<Value> {
        let text = String::from_utf8(lines.out.clone().unwrap()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
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
            json!({"event": "stopping", "term": 3, "token": 70, "reason": "b is preferred"}),
            json!({"event": "work-stopped", "term": 3, "token": 70}),
            json!({"event": "lost", "term": 3, "token": 70, "reason": "handed over to b", "cause": "handed_over"}),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_term_says_whether_it_was_taken_without_an_elector() {
        let free = Duration::from_secs(5);
        let acquired = Event::leading(TERM, 70, TermOrigin::acquired(free));
        let resumed = Event::leading(TERM, 70, TermOrigin::Resumed);
        let rejoined = Event::leading(TERM, 70, TermOrigin::Rejoined);
        let told = lines(&[acquired, STOPPED, resumed, rejoined]);
        let is = |way: &str| {
            told.iter()
                .map(|line| line[way] == true)
                .collect::<Vec<_>>()
        };
        assert_eq!(is("acquired"), [false, true, false, false, false]);
        assert_eq!(is("resumed"), [false, false, false, true, false]);
        assert_eq!(is("rejoined"), [false, false, false, false, true]);
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
            ("stopping", Some("shutting down")),
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

    /// A program that reads the lines acts until the deadline of the last one, so a renewal is one, and nothing else is.
    #[tokio::test]
    async fn a_renewal_is_a_line_with_its_deadline() {
        let term = TestTerm::of(config()).unwrap();
        let mut lines = EventLines::new(Some(Vec::new()), term.handle());
        term.expire_after(Duration::from_secs(10));
        lines.note_renewal();
        lines.tell(&leading());
        lines.note_renewal();
        term.expire_after(Duration::from_secs(13));
        lines.note_renewal();
        lines.note_renewal();
        // While it drains the lease is renewed, which is no leave to work.
        lines.tell(&stopping(StopReason::ShutDown));
        term.expire_after(Duration::from_secs(16));
        lines.note_renewal();
        term.expire_after(Duration::ZERO);
        lines.note_renewal();
        lines.tell(&ended(TermEnd::Lost(Loss::DeadlinePassed)));
        let written = written(&lines);
        let events: Vec<_> = written.iter().map(|line| line["event"].as_str()).collect();
        assert_eq!(
            events,
            [
                Some("leading"),
                Some("renewed"),
                Some("stopping"),
                Some("lost")
            ]
        );
        assert_eq!(written[0]["holder"], "me");
        assert!(written[0]["deadline"].as_str() < written[1]["deadline"].as_str());
        assert_eq!(written[3].get("deadline"), None);
    }

    #[test]
    fn a_pipe_without_a_reader_runs_out_of_room_before_it_is_full() {
        let (_reader, mut writer) = std::io::pipe().unwrap();
        let mut lines = 0;
        while has_room(writer.as_fd()) {
            writer.write_all(&[b'x'; 200]).unwrap();
            lines += 1;
        }
        assert!(lines > 10, "{lines}");
        // For an event that has to be told there is still room.
        writer.write_all(&[b'x'; 200]).unwrap();
    }
}
