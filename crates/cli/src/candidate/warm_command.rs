//! The command that runs on between the terms, and learns of them by asking: started once, limited while its candidate leads.

use std::io;
use std::sync::Arc;

use elector_candidate::Leadership;
use elector_candidate::supervise::{StopLimits, limits, spawn_wait};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::child::{self, Program};
use super::supervisor_socket::{CandidateEnd, SupervisorOrder};

/// A command that runs, whoever leads. It is killed where the last of the clones is dropped.
#[derive(Clone, Debug)]
pub(super) struct WarmCommand {
    supervisor: Arc<CandidateEnd>,
    state: watch::Receiver<WarmState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarmState {
    Runs,
    /// Nothing of it acts any more, though something may still be there.
    Killed,
    /// Nothing is left of it. This is its exit code.
    Ended(u8),
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
        let (own_end, reports, other_end) = CandidateEnd::pair()?;
        own_end.order(&SupervisorOrder::Standby);
        let mut process = program.supervised(environment, other_end).spawn()?;
        let supervisor = Arc::new(own_end);
        let (changed, state) = watch::channel(WarmState::Runs);
        tokio::task::spawn_blocking(move || {
            let stopped_by_supervisor = reports.read(|| {
                changed.send_replace(WarmState::Killed);
            });
            let code = process.wait().map_or(1, child::exit_code);
            if stopped_by_supervisor {
                tracing::warn!(
                    "the supervisor killed the command at the limit of its lease, or at the end of its grace period"
                );
            }
            tracing::info!(code, "the command has ended");
            changed.send_replace(WarmState::Ended(code));
        });
        Ok(Self { supervisor, state })
    }

    /// Waits until nothing is left of the command. Returns its exit code.
    pub(super) async fn exited(&self) -> u8 {
        let mut state = self.state.clone();
        let ended = state.wait_for(|state| matches!(state, WarmState::Ended(_)));
        match ended.await.as_deref() {
            Ok(WarmState::Ended(code)) => *code,
            _ => 1,
        }
    }

    async fn killed(&self) {
        let mut state = self.state.clone();
        let _ = state.wait_for(|state| *state != WarmState::Runs).await;
    }

    /// Asks the command to end. It is killed when its grace is over.
    pub(super) fn terminate(&self) {
        self.supervisor.order(&SupervisorOrder::Terminate);
    }

    /// Limits the command to the term that begins.
    pub(super) async fn limit_to(&self, leadership: &Leadership) -> io::Result<LimitedCommand> {
        let mut limits = limits(leadership).fuse().boxed();
        let first = limits.next().await;
        let first = first.ok_or_else(|| io::Error::other("the term is over"))?;
        let (stops, stopped) = oneshot::channel();
        let (command, runtime) = (self.clone(), Handle::current());
        // The term owns the thread that waits, so the lease is not given up before.
        spawn_wait(leadership, move |process| {
            runtime.block_on(async {
                if stopped.await.is_err() {
                    command.killed().await;
                    process.note_killed();
                    command.exited().await;
                }
            });
        });
        let limit = SupervisorOrder::KillAt(first.lease_limit);
        self.supervisor.order(&limit);
        Ok(LimitedCommand {
            command: self.clone(),
            limits,
            stops: Some(stops),
        })
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
                    let limit = SupervisorOrder::KillAt(limits.lease_limit);
                    self.command.supervisor.order(&limit);
                }
                _ = self.command.exited() => return,
                acts_no_more = &mut held => break acts_no_more,
            }
        };
        if acts_no_more {
            self.command.supervisor.order(&SupervisorOrder::Standby);
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
