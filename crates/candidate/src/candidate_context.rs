//! The context of a run: its settings, its clocks, and the receivers of its reports.

use std::sync::Arc;

use elector_protocol::{Instant, Term, Token};
use elector_runtime::{Clock, Cluster};
use tokio::runtime::Handle;

use crate::boxed_work::MakeWork;
use crate::event::{CandidateObserver, Event, TermOrigin};
use crate::instance::SharedInstance;
use crate::leadership::Leadership;
use crate::request_monitor::RequestMonitor;
use crate::resolved_config::ResolvedConfig;
use crate::session::sources::SessionSources;
use crate::status::StatusPublisher;
use crate::term_tasks::TermTasks;
use crate::work::TermWork;

/// The context that all sessions of a run share.
pub(crate) struct CandidateContext {
    pub(crate) config: ResolvedConfig,
    pub(crate) cluster: Cluster,
    pub(crate) clock: Arc<dyn Clock>,
    /// Any number that differs from process to process.
    pub(crate) seed: u64,
    pub(crate) observer: CandidateObserver,
    pub(crate) monitor: Option<Arc<dyn RequestMonitor>>,
    pub(crate) status: StatusPublisher,
    pub(crate) sources: SessionSources,
    pub(crate) instance: SharedInstance,
    /// Where the work runs: on the executor of the caller, which may be another one than that of the run.
    pub(crate) work_runtime: Handle,
}

// === impl CandidateContext ===

impl CandidateContext {
    /// Logs an event, and tells the observer.
    pub(crate) fn emit(&self, event: &Event) {
        event.log(&self.config);
        (self.observer)(&self.config.lease, event);
    }

    /// Waits until then, or for ever.
    pub(crate) async fn sleep_until(&self, until: Option<Instant>) {
        match until {
            Some(until) => self.clock.sleep_until_holder(until).await,
            None => std::future::pending().await,
        }
    }

    /// Reports that the process is unwell from now on.
    pub(crate) fn note_unwell(&self, error: &str) {
        self.status.note_health(Some(error));
        self.emit(&Event::Unwell {
            reason: error.to_owned(),
        });
    }

    /// Starts the work of the term that has just been published.
    pub(crate) fn start_work(
        &self,
        term: Term,
        token: Token,
        by: TermOrigin,
        work: &mut MakeWork<'_>,
    ) -> TermWork {
        let (tasks, belief) = (TermTasks::default(), self.status.belief());
        let number = belief.number().unwrap_or_default();
        self.emit(&Event::Leading {
            term: term.0,
            token: token.0.0,
            by,
        });
        belief.state().tasks = Some(tasks.clone());
        let guard = Leadership::new(self.status.reader(), number, term, token, tasks);
        TermWork::start(guard, &self.work_runtime, work)
    }
}
