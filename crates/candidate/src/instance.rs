//! The instance lock of a process, which all parts of a group share.

use std::path::PathBuf;
use std::sync::Arc;

use elector_runtime::{InstanceLock, InstanceRun};
use tokio::sync::OnceCell;

use crate::config::{Config, Mode};

/// The instance lock of a process that keeps one, obtained by the first of its runs.
#[derive(Clone)]
pub(crate) struct SharedInstance {
    path: Option<PathBuf>,
    lock: Arc<OnceCell<Option<Arc<InstanceLock>>>>,
}

// === impl SharedInstance ===

impl SharedInstance {
    /// The lock that this configuration names, unless one has been obtained already.
    pub(crate) fn new(given: &Config, obtained: Option<Arc<InstanceLock>>) -> Self {
        Self {
            path: given
                .instance_lock
                .clone()
                .filter(|_| given.mode != Mode::Disabled),
            lock: Arc::new(OnceCell::new_with(obtained.map(Some))),
        }
    }

    /// The lock, where it was to be had.
    pub(crate) fn lock(&self) -> Option<Arc<InstanceLock>> {
        self.lock.get().cloned().flatten()
    }

    /// Begins a run under the lock, which is obtained first. Without it the run goes on as always: the lease of an earlier
    /// life has to expire.
    pub(crate) async fn begin_run(&self) -> Option<InstanceRun> {
        if let Some(lock) = self.lock() {
            return Some(lock.begin_run());
        }
        let path = self.path.as_ref()?;
        let obtain = async || {
            let obtained = InstanceLock::obtain(path).await;
            let life = |lock: &Arc<InstanceLock>| {
                tracing::info!(file = %path.display(), life = %lock.life(), "has the instance lock");
            };
            let refused = |error: &_| {
                tracing::warn!("{error}: a lease that an earlier life held has to expire");
            };
            obtained.inspect(life).inspect_err(refused).ok()
        };
        let lock = self.lock.get_or_init(obtain).await.as_ref()?;
        Some(lock.begin_run())
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::LifeId;

    use super::*;
    use crate::cluster::Cluster;

    #[tokio::test]
    async fn a_lock_that_the_connection_brings_is_used_for_each_run() {
        let config = Config::new("web", "1.0.0");
        let id = LifeId {
            instance: 1,
            life: 2,
        };
        let lock = InstanceLock::simulated(id, None);
        let cluster = Cluster::none().with_instance_lock(Arc::clone(&lock));
        let instance = SharedInstance::new(&config, cluster.instance_lock());
        assert_eq!(instance.lock().map(|it| it.life()), Some(id));
        assert!(instance.begin_run().await.is_some());

        let instance = SharedInstance::new(&config, Cluster::none().instance_lock());
        assert!(instance.lock().is_none());
        assert!(instance.begin_run().await.is_none());
    }
}
