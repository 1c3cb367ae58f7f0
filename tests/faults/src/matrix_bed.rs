//! The part of the cluster and of the machine that all cases share.

use std::path::PathBuf;
use std::sync::Arc;

use elector_tests::rig::Recorder;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::recorded_runs::RecordedRuns;
use crate::register::{OperationLog, Register};
use crate::subject::Binaries;

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
