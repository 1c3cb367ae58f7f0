//! The term of a session and its work: begun, asked to stop, dropped when it does not, and ended.

use elector_protocol::holder::{Effect, StopReason, WriteKind};
use elector_protocol::{Instant, Moment, Term, Token};

use super::CandidateSession;
use crate::boxed_work::MakeWork;
use crate::event::{Event, TermOrigin};
use crate::finish::Finish;
use crate::outcome::TermEnd;
use crate::term_state::TermState;
use crate::waiting::Waiting;

// === impl CandidateSession ===

impl CandidateSession<'_> {
    /// Tells what this process waits for, once for each reason, and anew after a term.
    pub(super) fn announce_wait(&mut self, now: Moment) {
        if self.term.is_some() {
            self.announced = None;
            return;
        }
        if let Some(wait) = self.holder.waiting(now)
            && self.announced.as_ref() != Some(&wait.reason)
        {
            self.run
                .emit(&Event::Waiting(Waiting::at(now.holder, &wait)));
            self.announced = Some(wait.reason);
        }
    }

    /// Notes how the term begins that this request may begin.
    pub(super) fn note_way_to_term(&mut self, effect: &Effect) {
        if let Effect::Write { kind, .. } = effect {
            let free = || self.holder.free_for(self.run.clock.moment());
            self.origin = match kind {
                WriteKind::Acquire => {
                    free().map_or(TermOrigin::Granted, |free| TermOrigin::Acquired { free })
                }
                WriteKind::Accept => TermOrigin::Granted,
                WriteKind::Resume => TermOrigin::Resumed,
                WriteKind::Rejoin => TermOrigin::Rejoined,
                _ => return,
            };
        }
    }

    pub(super) fn start_work(&mut self, term: Term, token: Token, work: &mut MakeWork<'_>) {
        self.term = Some(term);
        self.last_end = None;
        self.work = Some(self.run.start_work(term, token, self.origin, work));
    }

    /// Says that the work is to stop, which it reads in the status.
    pub(super) fn stop_work(&mut self, reason: StopReason, now: Instant) {
        let Some(work) = &self.work else {
            return;
        };
        let term = work.guard.term();
        // First what acts: a line may take as long as the reader of the log likes.
        self.enforce_limit(now);
        self.run.emit(&Event::Stopping { term, reason });
    }

    /// Drops the work when its time is up. Returns when to look again.
    pub(super) fn enforce_limit(&mut self, now: Instant) -> Option<Instant> {
        let work = self.work.as_mut()?;
        if work.enforce(now) {
            let (lease, term) = (&self.run.config.lease, work.guard.term());
            tracing::warn!(%lease, %term, "the work did not stop in time and is aborted");
        }
        work.limit()
    }

    pub(super) fn end_term(&mut self, end: TermEnd) {
        if let Some(term) = self.term.take() {
            self.last_end = Some(end.clone());
            let term = term.0;
            self.run.emit(&Event::Ended { term, end });
        }
    }

    pub(super) fn handle_work_change(&mut self, now: Moment, finish: Option<Finish>) {
        let Some(work) = &self.work else {
            return;
        };
        let (gone, term) = (work.is_gone(), work.guard.term());
        if gone {
            self.run.emit(&Event::WorkStopped { term });
        }
        if let Some(finish) = finish {
            self.begin_finish(finish);
        }
        if gone {
            self.work = None;
            self.run.status.change_term(TermState::end);
            self.holder.handle_work_stopped(now);
        }
    }
}
