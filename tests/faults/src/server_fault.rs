//! A fault of the server that all cases of a cluster share: it strikes when each of them is ready for it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_cluster::cluster::{Options, RealCluster};
use rustix::process::Signal;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerFault {
    /// kube-apiserver is killed, and started again at once on the same port and store.
    Restart,
    /// etcd is stopped with SIGSTOP for this time.
    PauseEtcd(Duration),
}

/// The stage that a fault has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum FaultStage {
    Ahead,
    Begun,
    Over,
}

/// One case's view of it. It is not cloned: a case that kept a second one would never be ready.
#[derive(Debug)]
pub(crate) struct SharedFault {
    stage: watch::Receiver<FaultStage>,
    /// Dropped when its case is ready, and also when it has failed before.
    settling: Option<watch::Receiver<()>>,
}

/// The other side of it.
#[derive(Debug)]
pub(crate) struct FaultTrigger {
    stage: watch::Sender<FaultStage>,
    settling: watch::Sender<()>,
}

/// The time that all cases of a cluster may take to be ready: more than each of them allows itself.
const SETTLE: Duration = Duration::from_secs(600);

// === impl SharedFault ===

impl SharedFault {
    /// Waits until all cases are ready and the fault strikes.
    pub(crate) async fn begun(&mut self) -> Result<()> {
        self.settling = None;
        self.reached(FaultStage::Begun).await
    }

    /// Waits until the server is well again.
    pub(crate) async fn over(&mut self) -> Result<()> {
        self.reached(FaultStage::Over).await
    }

    async fn reached(&mut self, stage: FaultStage) -> Result<()> {
        let reached = self.stage.wait_for(|now| *now >= stage).await;
        reached.context("the server is gone")?;
        Ok(())
    }
}

// === impl FaultTrigger ===

impl FaultTrigger {
    pub(crate) fn new() -> Self {
        Self {
            stage: watch::Sender::new(FaultStage::Ahead),
            settling: watch::Sender::new(()),
        }
    }

    /// The view of another case.
    pub(crate) fn share(&self) -> SharedFault {
        SharedFault {
            stage: self.stage.subscribe(),
            settling: Some(self.settling.subscribe()),
        }
    }

    /// Strikes when all cases are ready, and returns when the server is well again.
    ///
    /// # Errors
    /// When one is not ready in time, or the server does not come back.
    pub(crate) async fn strike(
        &self,
        fault: ServerFault,
        cluster: &Arc<RealCluster>,
    ) -> Result<()> {
        timeout(SETTLE, self.settling.closed())
            .await
            .with_context(|| format!("a case was not ready for its fault within {SETTLE:?}"))?;
        self.stage.send_replace(FaultStage::Begun);
        let cluster = Arc::clone(cluster);
        spawn_blocking(move || fault.strike(&cluster)).await??;
        self.stage.send_replace(FaultStage::Over);
        Ok(())
    }
}

// === impl ServerFault ===

impl ServerFault {
    fn strike(self, cluster: &RealCluster) -> Result<()> {
        match self {
            Self::Restart => {
                cluster.kill_apiserver()?;
                cluster.start_apiserver(&Options::default())
            }
            Self::PauseEtcd(lasts) => {
                cluster.signal_etcd(Signal::STOP)?;
                thread::sleep(lasts);
                cluster.signal_etcd(Signal::CONT)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_waits_for_each_case_that_is_not_ready_and_lives() {
        let trigger = FaultTrigger::new();
        let (mut ready, failed) = (trigger.share(), trigger.share());
        {
            let mut begun = std::pin::pin!(ready.begun());
            let mut settled = std::pin::pin!(trigger.settling.closed());
            assert!(futures::poll!(&mut begun).is_pending());
            assert!(futures::poll!(&mut settled).is_pending());
            drop(failed);
            let patience = Duration::from_secs(10);
            timeout(patience, settled).await.unwrap();
            trigger.stage.send_replace(FaultStage::Begun);
            begun.await.unwrap();
        }
        drop(trigger);
        ready.over().await.unwrap_err();
    }
}
