//! The command that runs on between the terms, and learns of them by asking: started once, limited while its candidate leads.

use std::io;
use std::sync::Arc;

use elector_candidate::Leadership;
use elector_candidate::supervise::{StopLimits, limits};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::child::{self, Program};
use super::supervisor_socket::{CandidateEnd, SupervisorOrder};

/// A command that runs, whoever leads. It is killed where the last of the clones is dropped.
#[derive(Clone, Debug)]
pub(super) struct WarmCommand {
    /// The socket to the supervisor, whose end is the order to kill.
    supervisor: Arc<CandidateEnd>,
    /// Its exit code, once nothing is left of it.
    exit: watch::Receiver<Option<u8>>,
}

/// The command in a term, which may not give the lease away while this is there. Dropping it kills the command.
pub(super) struct LimitedCommand {
    command: WarmCommand,
    /// The limits that the supervisor gets next.
    limits: BoxStream<'static, StopLimits>,
    /// Told where the command has stopped and lives on.
    stops: Option<oneshot::Sender<()>>,
}

// === impl WarmCommand ===

impl WarmCommand {
    /// Starts the command, with these variables on top of the own environment.
    pub(super) fn start(
        program: Program,
        environment: Vec<(&'static str, String)>,
    ) -> io::Result<Self> {
        let (own_end, other_end) = CandidateEnd::pair()?;
        own_end.order(&SupervisorOrder::Standby)?;
        let mut process = program.supervised(environment, other_end).spawn()?;
        let supervisor = Arc::new(own_end);
        let (ended, exit) = watch::channel(None);
        let reports = Arc::downgrade(&supervisor);
        tokio::task::spawn_blocking(move || {
            let code = process.wait().map_or(1, child::exit_code);
            if reports.upgrade().is_some_and(|it| it.take_report()) {
                tracing::warn!(
                    "the supervisor killed the command at the limit of its lease, or at the end of its grace period"
                );
            }
            tracing::info!(code, "the command has ended");
            ended.send_replace(Some(code));
        });
        Ok(Self { supervisor, exit })
    }

    /// Waits until nothing is left of the command. Returns its exit code.
    pub(super) async fn exited(&self) -> u8 {
        let mut exit = self.exit.clone();
        let code = exit.wait_for(Option::is_some).await;
        code.ok().and_then(|code| *code).unwrap_or(1)
    }

    /// Asks the command to end. It is killed when its grace is over.
    pub(super) fn terminate(&self) {
        self.order(&SupervisorOrder::Terminate);
    }

    /// Limits the command to the term that begins.
    pub(super) async fn limit_to(&self, leadership: &Leadership) -> io::Result<LimitedCommand> {
        let mut limits = limits(leadership).fuse().boxed();
        let first = limits.next().await;
        let first = first.ok_or_else(|| io::Error::other("the term is over"))?;
        let (stops, stopped) = oneshot::channel();
        let (command, runtime) = (self.clone(), Handle::current());
        // The term owns the thread that waits, so the lease is not given up before.
        leadership.spawn_blocking(move || {
            runtime.block_on(async {
                if stopped.await.is_err() {
                    command.exited().await;
                }
            });
        });
        self.order(&SupervisorOrder::KillAt(first.lease_limit));
        Ok(LimitedCommand {
            command: self.clone(),
            limits,
            stops: Some(stops),
        })
    }

    fn order(&self, order: &SupervisorOrder) {
        // It fails where the command has just ended.
        let _ = self.supervisor.order(order);
    }
}

// === impl LimitedCommand ===

impl LimitedCommand {
    /// Waits until the term is held no more, which says whether the command acts no more; it is killed otherwise. Meanwhile
    /// the supervisor hears of each renewal.
    pub(super) async fn stopped(mut self, held: impl Future<Output = bool>) {
        let mut held = std::pin::pin!(held);
        let acts_no_more = loop {
            tokio::select! {
                biased;
                Some(limits) = self.limits.next() => {
                    self.command.order(&SupervisorOrder::KillAt(limits.lease_limit));
                }
                _ = self.command.exited() => return,
                acts_no_more = &mut held => break acts_no_more,
            }
        };
        if acts_no_more {
            self.command.order(&SupervisorOrder::Standby);
            let _ = self.stops.take().map(|stops| stops.send(()));
            return;
        }
        // First the kill: a line may take as long as the reader of standard error likes.
        self.command.supervisor.kill();
        tracing::warn!(
            "the command did not say in its time that it has stopped (POST /release): killing it and all its descendants"
        );
        self.command.exited().await;
    }
}

impl Drop for LimitedCommand {
    fn drop(&mut self) {
        if self.stops.is_some() {
            self.command.supervisor.kill();
        }
    }
}
