//! The clusters that scenarios share, and those of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use elector_verify::Implementation;
use tokio::sync::{OnceCell, Semaphore};

use crate::rig::process::TestProcess;
use crate::rig::programs::TestedPrograms;
use crate::rig::site::{ClusterMode, SitePurpose, TestSite};
use crate::rig::testbed::Testbed;

/// The shared clusters, each started by the first scenario that needs it.
pub(super) struct SharedClusters {
    pub(super) programs: Arc<TestedPrograms>,
    pub(super) folder: PathBuf,
    pub(super) shared: BTreeMap<ClusterMode, OnceCell<SharedCluster>>,
    /// Starting a cluster takes both cores for seconds, and each that runs takes memory.
    pub(super) permits: Semaphore,
}

/// A shared cluster and its elector.
pub(super) struct SharedCluster {
    pub(super) site: Arc<TestSite>,
    pub(super) _elector: TestProcess,
}

/// The most clusters that there may be beside the shared ones.
pub(super) const OWN_CLUSTERS: usize = 6;

/// The time within which an elector elects: `W_max`, twice where it replaces the built-in controller, and the start of
/// everything on a busy machine.
const WARM_UP: Duration = Duration::from_secs(90);

// === impl SharedClusters ===

impl SharedClusters {
    /// The shared cluster; waits until its elector elects a new deployment at once.
    pub(super) async fn shared(&self, mode: ClusterMode) -> Result<Arc<TestSite>> {
        let cell = self.shared.get(&mode).context("no such ground")?;
        let cluster_choice = cell.get_or_try_init(|| async {
            let folder = mode.to_string().replace(' ', "-");
            let site = self.start(mode, &folder, SitePurpose::Sharing).await?;
            let elector = site.start_elector("elector").await?;
            warm_up(&site)
                .await
                .context("the elector of a shared cluster elects nobody")?;
            Ok::<_, anyhow::Error>(SharedCluster {
                site,
                _elector: elector,
            })
        });
        Ok(Arc::clone(&cluster_choice.await?.site))
    }

    /// A cluster, with its logs in that folder.
    pub(super) async fn start(
        &self,
        mode: ClusterMode,
        folder: &str,
        purpose: SitePurpose,
    ) -> Result<Arc<TestSite>> {
        let folder = self.folder.join(folder);
        let site = TestSite::start(mode, Arc::clone(&self.programs), folder, purpose);
        Ok(Arc::new(site.await?))
    }
}

/// Waits until the elector of a cluster grants a lease to a candidate: a new one does so only after `W_max` (R6), and
/// one that replaces the built-in controller not before that one has stopped. Until then the built-in controller may
/// elect; it does not count terms.
pub async fn warm_up(site: &Arc<TestSite>) -> Result<()> {
    let deadline = Instant::now() + WARM_UP;
    for attempt in 1.. {
        let name = format!("canary-{attempt}");
        let testbed =
            Testbed::open_for(Arc::clone(site), "warm-up", &name, Implementation::Elector).await?;
        let canary = testbed.candidate(&name).start()?;
        let patience = deadline.saturating_duration_since(Instant::now());
        let leads = canary.leads(patience).await;
        leads.with_context(|| testbed.journal().text())?;
        let term = testbed.lease_until("the canary's lease is seen", patience, |lease| {
            let record = lease.record().ok()?;
            record.has_token().then_some(record.term)
        });
        if term.await?.0 > 0 {
            break;
        }
    }
    Ok(())
}
