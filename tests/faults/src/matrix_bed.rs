//! The part of the cluster and of the machine that all cases share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_tests::rig::Recorder;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::analysis::{Analysis, Order};
use crate::fault::{FaultScenario, FaultScript};
use crate::recorded_runs::RecordedRuns;
use crate::register::{OperationLog, Register};
use crate::subject::Binaries;

/// The number of cases whose processes start at the same time.
pub(crate) const STARTS_AT_ONCE: u32 = 2;

/// The test bed of all cases.
pub(crate) struct MatrixBed {
    pub(crate) client: Client,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) register: Register,
    /// Sees every revision of every Lease.
    pub(crate) recorder: Recorder,
    pub(crate) programs: Binaries,
    /// The operations of a process that is never disturbed, which shows when the machine is too busy.
    pub(crate) pulse: Arc<OperationLog>,
    /// For logs and operations.
    pub(crate) folder: PathBuf,
    /// The cases that may start their processes at once: hundreds at the same time would slow all of them down, and
    /// show in how long a first leader takes.
    pub(crate) starts: Arc<Semaphore>,
    /// Of the phases.
    pub(crate) seed: u64,
    pub(crate) recorded: Arc<Mutex<RecordedRuns>>,
}

// === impl MatrixBed ===

impl MatrixBed {
    /// Waits until a case may start its processes. One in which the start is what is measured starts them alone.
    pub(crate) async fn turn(&self, fault: &FaultScenario) -> Result<OwnedSemaphorePermit> {
        let turns = match fault.script {
            FaultScript::FirstStart(_) => STARTS_AT_ONCE,
            _ => 1,
        };
        Ok(Arc::clone(&self.starts).acquire_many_owned(turns).await?)
    }

    /// The worst gap in the pulse since then, seconds.
    pub(crate) fn stall(&self, since: Duration) -> f64 {
        let window = since..self.pulse.now();
        let operations = self.pulse.operations();
        Analysis::read(&operations, Order::ByFirstOperation, &window).worst_gap
    }
}
