//! The work of one term, which writes to the register while it may act.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::context::{RunContext, RunState};
use crate::pause::PauseSwitch;
use crate::plan::WorkEnd;
use crate::register::{GRAIN, WorkTerm};

/// The work of one term.
#[derive(Clone)]
pub(crate) struct WitnessedWork {
    pub(crate) context: RunContext,
    pub(crate) pauses: PauseSwitch,
    pub(crate) term: WorkTerm,
}

/// The interval of the writes of a term.
const TICK: Duration = Duration::from_millis(500);

// === impl WitnessedWork ===

impl WitnessedWork {
    /// Writes until it is to stop, and takes its time then.
    pub(crate) async fn run(self) -> Result<(), std::fmt::Error> {
        let started = Instant::now();
        let writer = self
            .pauses
            .wrap(self.clone().write(started), self.context.check_hook());
        let (stopped, stop) = (self.term.leadership.stopped(), self.term.candidate.stop);
        let end = async {
            stopped.await;
            sleep(stop).await;
            while let Some((WorkEnd::Never, fault)) = self.end() {
                self.strike(fault);
                sleep(TICK).await;
            }
        };
        // A task that the term owns ends with it.
        if self.term.token().is_multiple_of(2) {
            drop(self.term.leadership.spawn(writer));
            return self.until_spoilt(end).await;
        }
        tokio::select! {
            biased;
            () = writer => Ok(()),
            end = self.until_spoilt(end) => end,
        }
    }

    async fn until_spoilt(&self, end: impl Future<Output = ()>) -> Result<(), std::fmt::Error> {
        let spoilt = async {
            let (end, fault) = loop {
                match self.end() {
                    Some((WorkEnd::Never, _)) | None => sleep(TICK).await,
                    Some(spoilt) => break spoilt,
                }
            };
            self.strike(fault);
            match end {
                WorkEnd::Fails => Err(std::fmt::Error),
                // Nothing is to be printed.
                WorkEnd::Panics => std::panic::resume_unwind(Box::new("spoilt")),
                WorkEnd::Returns | WorkEnd::Never => Ok(()),
            }
        };
        tokio::select! {
            biased;
            end = spoilt => end,
            () = end => Ok(()),
        }
    }

    fn end(&self) -> Option<(WorkEnd, usize)> {
        self.context.state().work.end_of(&self.term.name)
    }

    fn strike(&self, fault: usize) {
        let now = self.context.log().now();
        self.context.state().effects.strike(fault, now, now);
    }

    async fn write(self, started: Instant) {
        let mut last = started;
        loop {
            // Work that stood still asks before it acts; otherwise it is for the candidate to drop it in time.
            if last.elapsed() > TICK + GRAIN && self.term.leadership.time_to_stop().is_zero() {
                return std::future::pending().await;
            }
            let now = self.context.log().now();
            let wrong = {
                let RunState { work, history, .. } = &mut *self.context.state();
                work.write(now, &self.term, history)
            };
            if let Some((rule, text)) = wrong {
                self.context.report(rule, text);
            }
            last = Instant::now();
            sleep(TICK).await;
        }
    }
}
