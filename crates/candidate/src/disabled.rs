//! A run without an election: the work runs at once, and its guard says yes.

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::holder::{Belief, StopReason};
use elector_protocol::{Instant, ResourceVersion, Term, Token};
use elector_runtime::Clock;
use tokio::runtime::Handle;

use crate::boxed_work::{BoxedOutcome, MakeWork};
use crate::event::{CandidateObserver, Event};
use crate::finish::{Finish, ShutdownSignal};
use crate::health_monitor::HealthMonitor;
use crate::leadership::Leadership;
use crate::outcome::TermEnd;
use crate::resolved_config::ResolvedConfig;
use crate::status::StatusPublisher;
use crate::term_tasks::TermTasks;
use crate::work::TermWork;

/// What a run without an election is told, and tells.
pub(crate) struct DisabledElection<'a> {
    pub(crate) config: &'a ResolvedConfig,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) observer: &'a CandidateObserver,
    pub(crate) status: &'a StatusPublisher,
    /// Where the work runs.
    pub(crate) work_runtime: &'a Handle,
}

/// The term of a run without an election. Those of elections are higher, and so are their tokens.
const TERM: Term = Term(0);
const TOKEN: Token = Token(ResourceVersion(0));

/// The end of such a term: no clock gets there.
const FOREVER: Instant = Instant::from_epoch(Duration::MAX);

// === impl DisabledElection ===

impl DisabledElection<'_> {
    /// Runs the work until it ends, or is told to stop and does.
    pub(crate) async fn run(
        &self,
        work: &mut MakeWork<'_>,
        health: &mut HealthMonitor,
        shutdown: &mut ShutdownSignal,
    ) -> BoxedOutcome {
        let lease = &self.config.lease;
        tracing::warn!(%lease, "the election is disabled: the work runs at once, beside that of any other process");
        let mut work = self.start(work);
        health.note_term(Some(TERM));
        let mut finish = None;
        let end = loop {
            if work.is_gone() {
                self.emit(&Event::WorkStopped { term: TERM });
                break TermEnd::Released;
            }
            if work.is_stuck() {
                break TermEnd::WorkStillRuns;
            }
            let (told, limit) = (work.guard.is_told(), work.limit());
            tokio::select! {
                biased;
                ended = work.change() => if let Some(ended) = ended {
                    ended.add_to(&mut finish);
                },
                _ = &mut *shutdown, if !told => Finish::ShutDown.add_to(&mut finish),
                error = health.unwell(), if finish.is_none() => {
                    self.status.note_health(Some(&error));
                    self.emit(&Event::Unwell {
                        error: error.clone(),
                    });
                    Finish::Unwell(error).add_to(&mut finish);
                }
                () = self.sleep_until(limit) => {}
            }
            let now = self.clock.holder();
            if finish.is_some() && !told && !work.is_gone() {
                let reason = StopReason::ShutDown;
                self.publish(now, Some(&reason));
                self.emit(&Event::Stopping { term: TERM, reason });
            }
            work.enforce(now);
        };
        self.status.forget();
        health.note_term(None);
        let term = TERM;
        self.emit(&Event::Ended {
            term,
            end: end.clone(),
        });
        let reason = finish.or(Some(Finish::TermEnded));
        Finish::outcome(reason, Some(end))
    }

    fn start(&self, work: &mut MakeWork<'_>) -> TermWork {
        let (term, token) = (TERM, TOKEN);
        self.publish(self.clock.holder(), None);
        self.emit(&Event::Leading { term, token });
        let (tasks, grace) = (TermTasks::default(), self.config.given.grace);
        let guard = Leadership::new(self.status.reader(), (term, token), tasks, grace);
        TermWork::start(guard, self.work_runtime, work)
    }

    /// Publishes that this process leads, and whether the work is to stop.
    fn publish(&self, now: Instant, stop: Option<&StopReason>) {
        let belief = Belief {
            term: TERM,
            token: TOKEN,
            deadline: FOREVER,
        };
        self.status.publish(now, Some(belief), stop, None, None);
    }

    async fn sleep_until(&self, limit: Option<Instant>) {
        match limit {
            Some(limit) => self.clock.sleep_until_holder(limit).await,
            None => std::future::pending().await,
        }
    }

    fn emit(&self, event: &Event) {
        event.log(self.config);
        (self.observer)(event);
    }
}
