//! One scenario's share of a cluster: a namespace, its journal, and its candidates.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_api::{Carrier, Lease, LeaseCandidate};
use elector_protocol::{LeaseKey, LeaseRecord, ResourceVersion, Timestamp};
use elector_verify::{
    EntryContent, EventKind, History, HistoryEntry, Implementation, Limits, Participants, verify,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::task::spawn_blocking;

use crate::rig::account::TestAccount;
use crate::rig::journal::{Journal, now};
use crate::rig::site::TestSite;

/// A namespace of a site, for one scenario.
#[derive(Debug)]
pub struct Testbed {
    site: Arc<TestSite>,
    implementation: Implementation,
    namespace: String,
    lease: String,
    journal: Arc<Journal>,
    folder: PathBuf,
    candidate_account: Option<TestAccount>,
    participants: Mutex<Participants>,
    figures: Mutex<Vec<(String, Duration)>>,
    /// The amounts of things, in words.
    amounts: Mutex<Vec<(String, String)>>,
    /// The cells of the suite's table: row, column and value.
    cells: Mutex<Vec<(String, &'static str, Duration)>>,
    judged_by_lease: Mutex<BTreeSet<String>>,
}

/// The name of the lease in nearly all scenarios.
pub const LEASE: &str = "work";

/// `W_max`, the default of `--max-lease-duration`.
pub const LONGEST_LEASE: Duration = Duration::from_secs(15);

/// The longest delay of the recorder on a machine that is busy with many scenarios.
const RECORDING_DELAY: Duration = Duration::from_secs(2);

/// A Lease that no candidate names, written at the end.
const SETTLED: &str = "rig-has-seen-everything";

/// For the recorder to catch up.
const PATIENCE: Duration = Duration::from_secs(20);

// === impl Testbed ===

impl Testbed {
    /// Makes the namespace. Candidates that are not said to be of another implementation are `implementation`'s.
    ///
    /// # Errors
    /// When the namespace cannot be created.
    pub async fn open(
        site: Arc<TestSite>,
        namespace: &str,
        implementation: Implementation,
    ) -> Result<Self> {
        Self::open_for(site, namespace, LEASE, implementation).await
    }

    /// The same for a scenario about another lease than [`LEASE`].
    ///
    /// # Errors
    /// When the namespace cannot be created.
    pub async fn open_for(
        site: Arc<TestSite>,
        namespace: &str,
        lease: &str,
        implementation: Implementation,
    ) -> Result<Self> {
        let namespaces: Api<Namespace> = Api::all(site.client().clone());
        let metadata = ObjectMeta {
            name: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let object = Namespace {
            metadata,
            ..Namespace::default()
        };
        match namespaces.create(&PostParams::default(), &object).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error).context("failed to create a namespace"),
        }
        let folder = site.folder().join(namespace);
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        let candidate_account = site.candidate_account(namespace, lease).await?;
        let testbed = Self {
            journal: site.journal(namespace),
            site,
            implementation,
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            folder,
            candidate_account,
            participants: Mutex::new(Participants::new(Limits {
                longest_lease: LONGEST_LEASE,
                recording_delay: RECORDING_DELAY,
                ..Limits::default()
            })),
            figures: Mutex::default(),
            amounts: Mutex::default(),
            cells: Mutex::default(),
            judged_by_lease: Mutex::default(),
        };
        testbed.admit(&[lease]).await?;
        Ok(testbed)
    }

    /// The cluster.
    pub fn site(&self) -> &Arc<TestSite> {
        &self.site
    }

    /// The implementation of the candidates that the scenario is about.
    pub fn implementation(&self) -> Implementation {
        self.implementation
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the lease that the scenario is about.
    pub fn lease_name(&self) -> &str {
        &self.lease
    }

    /// The account of its candidates that have none of their own; `None` where the server asks nobody who they are. Its
    /// Pod has the name of the lease.
    pub fn candidate_account(&self) -> Option<&TestAccount> {
        self.candidate_account.as_ref()
    }

    /// The record of its events.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Where the logs of its processes go.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a candidate for this lease to the participants, so that its writes are judged.
    pub fn add_participant(&self, name: &str, implementation: Implementation, lease: &str) {
        let lease = LeaseKey::new(self.namespace.as_str(), lease);
        self.participants().add(lease, name, implementation);
    }

    /// Says that this candidate is stopped now and then: what it says comes late, so that the Lease alone tells how long
    /// it may have believed.
    pub fn judge_by_lease(&self, name: &str) {
        let names = self.judged_by_lease.lock();
        let mut names = names.unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned());
    }

    /// Says how long all holders here believe after the send of a renewal (H), where it is not two thirds of the
    /// duration.
    pub fn believe_for(&self, renew_deadline: Duration) {
        self.participants().limits.renew_deadline = Some(renew_deadline);
    }

    /// A figure for the report.
    pub fn figure(&self, name: &str, value: Duration) {
        self.figures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((name.to_owned(), value));
    }

    /// A time for that row and column of the [table](crate::rig::Suite::with_table) of the suite.
    pub fn cell(&self, row: &str, column: &'static str, value: Duration) {
        let cells = self.cells.lock();
        let mut cells = cells.unwrap_or_else(PoisonError::into_inner);
        cells.push((row.to_owned(), column, value));
    }

    /// All of these.
    pub(super) fn cells(&self) -> Vec<(String, &'static str, Duration)> {
        let cells = self.cells.lock();
        cells.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another figure for the report, with its unit.
    pub fn amount(&self, name: &str, value: impl Into<String>) {
        self.amounts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((name.to_owned(), value.into()));
    }

    /// All figures, for the report.
    pub(super) fn all_figures(&self) -> Vec<(String, String)> {
        let times = self.figures().into_iter();
        let times = times.map(|(name, value)| (name, format!("{:.3} s", value.as_secs_f64())));
        let amounts = self.amounts.lock();
        let amounts = amounts.unwrap_or_else(PoisonError::into_inner);
        times.chain(amounts.iter().cloned()).collect()
    }

    /// The figures so far.
    pub fn figures(&self) -> Vec<(String, Duration)> {
        self.figures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The Leases of the namespace.
    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced_with(self.site.client().clone(), &self.namespace, &())
    }

    /// The candidates of the namespace.
    pub fn candidates(&self) -> Api<LeaseCandidate> {
        Api::namespaced_with(
            self.site.client().clone(),
            &self.namespace,
            &self.site.candidate_api(),
        )
    }

    /// The key of the lease that the scenario is about.
    pub fn key(&self) -> LeaseKey {
        LeaseKey::new(self.namespace.as_str(), self.lease.as_str())
    }

    /// Writes a Lease as the test's own deed, by creation or by compare-and-swap on what it carries.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn write(&self, lease: &Lease) -> Result<Lease> {
        // The journal must not be judged before the revision is known to be ours; judging comes last.
        let written = match lease.metadata.resource_version {
            Some(_) => {
                self.leases()
                    .replace(&lease.name_any(), &PostParams::default(), lease)
                    .await
            }
            None => self.leases().create(&PostParams::default(), lease).await,
        };
        let written = written.context("failed to write a lease")?;
        let version = written
            .metadata
            .resource_version
            .clone()
            .unwrap_or_default();
        self.journal
            .note(format!("wrote the lease {} @{version}", written.name_any()));
        let version = version.parse().context("a version that is no number")?;
        self.participants().add_foreign(ResourceVersion(version));
        Ok(written)
    }

    /// Creates the lease as its last holder left it: released, with a label and an annotation of this name and value.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn write_released(&self, (name, value): (&str, &str)) -> Result<Lease> {
        let released = LeaseRecord::born(None).released(now());
        let mut lease = Lease::named(&self.key()).with_record(&released, Carrier::Annotations);
        let note = (name.to_owned(), value.to_owned());
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.extend([note.clone()]);
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.extend([note]);
        self.write(&lease).await
    }

    /// Waits until any candidate leads; which one, and since when.
    ///
    /// # Errors
    /// When none does within `patience`.
    pub async fn first_leader(&self, patience: Duration) -> Result<(String, Timestamp)> {
        let leading = |entries: &[HistoryEntry]| entries.iter().find_map(leading);
        self.journal
            .until("somebody leads", patience, leading)
            .await
    }

    /// Waits until the newest revision of the lease satisfies `look`.
    ///
    /// # Errors
    /// When it does not within `patience`.
    pub async fn lease_until<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&Lease) -> Option<T>,
    ) -> Result<T> {
        let newest =
            |entries: &[HistoryEntry]| newest(entries, &self.lease).and_then(|lease| look(&lease));
        self.journal.until(what, patience, newest).await
    }

    /// The newest revision of the lease that was seen.
    ///
    /// # Errors
    /// When there is none.
    pub fn lease(&self) -> Result<Arc<Lease>> {
        self.journal
            .read(|entries| newest(entries, &self.lease))
            .context("there is no lease")
    }

    /// Waits until the holder of the lease has renewed it so many times from now on, and checks that it stays the
    /// holder and in its term all along. This takes `times` of its renew intervals, which is what it is for.
    ///
    /// # Errors
    /// When the holder or the term changes, or it does not renew.
    pub async fn stays(&self, holder: &str, times: usize) -> Result<()> {
        // A candidate may say that it leads before the watch has brought its lease.
        let named = format!("the lease names {holder}");
        let term = self
            .lease_until(&named, Duration::from_secs(5), |lease| {
                let named = lease.spec.holder_identity.as_deref() == Some(holder);
                named.then(|| lease.spec.lease_transitions.unwrap_or(0))
            })
            .await?;
        let start = self.journal.len();
        let patience = Duration::from_secs(8) * u32::try_from(times)?;
        let what = format!("{holder} renews {times} times");
        let outcome = self.journal.until(&what, patience, |entries| {
            let revisions: Vec<&Arc<Lease>> = entries[start..]
                .iter()
                .filter_map(|entry| revision(entry, &self.lease))
                .collect();
            let strange = |lease: &&&Arc<Lease>| {
                lease.spec.holder_identity.as_deref() != Some(holder)
                    || lease.spec.lease_transitions.unwrap_or(0) != term
            };
            if let Some(lease) = revisions.iter().find(strange) {
                let (holder, term) = (&lease.spec.holder_identity, lease.spec.lease_transitions);
                return Some(Err(format!(
                    "the lease went to {holder:?} in term {term:?}"
                )));
            }
            let mut renewals: Vec<_> = revisions
                .iter()
                .map(|lease| lease.spec.renew_time)
                .collect();
            renewals.dedup();
            (renewals.len() >= times).then_some(Ok(()))
        });
        match outcome.await? {
            Ok(()) => Ok(()),
            Err(change) => bail!("{holder} did not keep the lease: {change}"),
        }
    }

    /// The number of terms begun so far, by the events of the candidates.
    pub fn terms(&self) -> usize {
        self.journal
            .read(|entries| entries.iter().filter_map(leading).count())
    }

    /// Checks the journal against the rules, once everything that has been written so far stands in it.
    ///
    /// # Errors
    /// Names every fault.
    pub async fn verdict(&self) -> Result<()> {
        self.settle().await?;
        let participants = self.participants().clone();
        let history = self.told_in_time();
        // Hundreds of leases take a second, in which others must not wait.
        let verdict = spawn_blocking(move || verify(&history, &participants)).await?;
        ensure!(verdict.holds(), "{verdict}");
        Ok(())
    }

    /// Notes the time of something the test does.
    pub fn note(&self, text: &str) -> Timestamp {
        self.journal.note(text);
        now()
    }

    /// The journal without the words of those that are judged by the Lease.
    fn told_in_time(&self) -> History {
        let names = self.judged_by_lease.lock();
        let names = names.unwrap_or_else(PoisonError::into_inner);
        let told_late = |entry: &HistoryEntry| match &entry.content {
            EntryContent::Event(event) => names.contains(&event.name),
            _ => false,
        };
        let mut entries = self.journal.read(<[HistoryEntry]>::to_vec);
        entries.retain(|entry| !told_late(entry));
        // Events from before a kill may have been read later.
        entries.sort_by_key(|entry| entry.at);
        History::from(entries)
    }

    /// Waits until the recorder has seen a Lease that is written now, and with it all earlier ones.
    async fn settle(&self) -> Result<()> {
        let mut last = Lease::named(&LeaseKey::new(self.namespace.as_str(), SETTLED));
        last.spec.holder_identity = Some(self.journal.len().to_string());
        let api = self.leases();
        if let Some(known) = api.get_opt(SETTLED).await? {
            last.metadata.resource_version = known.metadata.resource_version;
            last = api.replace(SETTLED, &PostParams::default(), &last).await?;
        } else {
            last = api.create(&PostParams::default(), &last).await?;
        }
        let version = last.metadata.resource_version;
        let seen = |entry: &HistoryEntry| match &entry.content {
            EntryContent::Lease(_, lease) => lease.metadata.resource_version == version,
            _ => false,
        };
        let seen = |entries: &[HistoryEntry]| entries.iter().any(seen).then_some(());
        self.journal
            .until("the recorder has caught up", PATIENCE, seen)
            .await
    }

    fn participants(&self) -> std::sync::MutexGuard<'_, Participants> {
        self.participants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn leading(entry: &HistoryEntry) -> Option<(String, Timestamp)> {
    match &entry.content {
        EntryContent::Event(event) if event.kind == EventKind::Leading => {
            Some((event.name.clone(), entry.at))
        }
        _ => None,
    }
}

fn revision<'e>(entry: &'e HistoryEntry, wanted: &str) -> Option<&'e Arc<Lease>> {
    match &entry.content {
        EntryContent::Lease(name, lease) if name == wanted => Some(lease),
        _ => None,
    }
}

fn newest(entries: &[HistoryEntry], wanted: &str) -> Option<Arc<Lease>> {
    entries
        .iter()
        .rev()
        .find_map(|entry| match &entry.content {
            EntryContent::Lease(name, lease) if name == wanted => Some(Some(Arc::clone(lease))),
            EntryContent::LeaseGone(name, _) if name == wanted => Some(None),
            _ => None,
        })?
}
