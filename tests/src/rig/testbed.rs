//! One scenario's share of a cluster: a namespace, its journal, and its candidates.

use std::any::Any;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use crate::rig::account::TestAccount;
use crate::rig::journal::{Journal, JournalMark, events, now, revisions};
use crate::rig::site::TestSite;

/// A namespace of a site, for one scenario.
pub struct Testbed {
    site: Arc<TestSite>,
    implementation: Implementation,
    namespace: String,
    lease: String,
    journal: Arc<Journal>,
    folder: PathBuf,
    candidate_account: Option<TestAccount>,
    book: Mutex<TestbedBook>,
    kept: Mutex<Vec<Box<dyn Any + Send>>>,
}

/// Words of a scenario for its judge and for its report.
#[derive(Debug)]
struct TestbedBook {
    participants: Participants,
    judged_by_lease: BTreeSet<String>,
    figures: Vec<(String, Duration)>,
    /// The amounts of things, in words.
    amounts: Vec<(String, String)>,
    /// The cells of the suite's table: row, column and value.
    cells: Vec<(String, &'static str, Duration)>,
}

/// The name of the lease in nearly all scenarios.
pub const LEASE: &str = "work";

/// `W_max`, the default of `--max-lease-duration`.
pub const LONGEST_LEASE: Duration = Duration::from_secs(15);

/// For what should come at once, on a machine that is busy with all the other scenarios.
pub const PROMPTLY: Duration = Duration::from_secs(10);

/// The longest delay of the recorder on a machine that is busy with many scenarios.
const RECORDING_DELAY: Duration = Duration::from_secs(2);

/// A Lease that no candidate names, written at the end.
const SETTLED: &str = "rig-has-seen-everything";

/// For the recorder to catch up.
const PATIENCE: Duration = Duration::from_secs(20);

// === impl Testbed ===

impl Testbed {
    /// Makes the namespace. Candidates that are not said to be of another implementation are `implementation`'s.
    pub async fn open(
        site: Arc<TestSite>,
        namespace: &str,
        implementation: Implementation,
    ) -> Result<Self> {
        Self::open_for(site, namespace, LEASE, implementation).await
    }

    /// The same for a scenario about another lease than [`LEASE`].
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
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            created => drop(created.context("failed to create a namespace")?),
        }
        let folder = site.folder().join(namespace);
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        let candidate_account = site.candidate_account(namespace, lease).await?;
        let limits = Limits {
            longest_lease: LONGEST_LEASE,
            recording_delay: RECORDING_DELAY,
            ..Limits::default()
        };
        let book = TestbedBook {
            participants: Participants::new(limits),
            judged_by_lease: BTreeSet::new(),
            figures: Vec::new(),
            amounts: Vec::new(),
            cells: Vec::new(),
        };
        let testbed = Self {
            journal: site.journal(namespace),
            site,
            implementation,
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            folder,
            candidate_account,
            book: Mutex::new(book),
            kept: Mutex::default(),
        };
        testbed.admit(&[lease]).await?;
        Ok(testbed)
    }

    /// Keeps a thing for as long as there is this testbed: until the record has been judged, for which the server is asked.
    pub fn keep(&self, thing: impl Any + Send) {
        let mut kept = self.kept.lock();
        kept.push(Box::new(thing));
    }

    /// Another namespace of the cluster, for a part of the scenario with our candidates.
    pub async fn open_beside(&self, namespace: &str) -> Result<Self> {
        Self::open(Arc::clone(&self.site), namespace, Implementation::Elector).await
    }

    /// The end of a part of the scenario that was played in `other`, which is judged here; its figures are taken over.
    pub async fn conclude(&self, other: &Self, played: Result<()>) -> Result<()> {
        let judged = other.verdict().await;
        self.book.lock().figures.extend(other.figures());
        played.and(judged).with_context(|| other.journal.text())
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

    /// The folder for the logs of its processes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a candidate for this lease to the participants, so that its writes are judged.
    pub fn add_participant(&self, name: &str, implementation: Implementation, lease: &str) {
        let lease = LeaseKey::new(self.namespace.as_str(), lease);
        self.book
            .lock()
            .participants
            .add(lease, name, implementation);
    }

    /// Says that this candidate is stopped now and then: what it says comes late, so that the Lease alone tells how long
    /// it may have believed.
    pub fn judge_by_lease(&self, name: &str) {
        self.book.lock().judged_by_lease.insert(name.to_owned());
    }

    /// Says how long all holders here believe after the send of a renewal (H), where it is not two thirds of the
    /// duration.
    pub fn believe_for(&self, renew_deadline: Duration) {
        self.book.lock().participants.limits.renew_deadline = Some(renew_deadline);
    }

    /// A figure for the report.
    pub fn figure(&self, name: &str, value: Duration) {
        self.book.lock().figures.push((name.to_owned(), value));
    }

    /// Another figure for the report, with its unit.
    pub fn amount(&self, name: &str, value: impl Into<String>) {
        self.book
            .lock()
            .amounts
            .push((name.to_owned(), value.into()));
    }

    /// A time for that row and column of the [table](crate::rig::Suite::with_table) of the suite.
    pub fn cell(&self, row: &str, column: &'static str, value: Duration) {
        self.book.lock().cells.push((row.to_owned(), column, value));
    }

    pub(super) fn cells(&self) -> Vec<(String, &'static str, Duration)> {
        self.book.lock().cells.clone()
    }

    /// The figures so far.
    pub fn figures(&self) -> Vec<(String, Duration)> {
        self.book.lock().figures.clone()
    }

    /// All figures, for the report.
    pub(super) fn all_figures(&self) -> Vec<(String, String)> {
        let times = self.figures().into_iter();
        let times = times.map(|(name, value)| (name, format!("{:.3} s", value.as_secs_f64())));
        times
            .chain(self.book.lock().amounts.iter().cloned())
            .collect()
    }

    /// The Leases of the namespace.
    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced_with(self.site.client().clone(), &self.namespace, &())
    }

    /// The candidates of the namespace.
    pub fn candidates(&self) -> Api<LeaseCandidate> {
        let api = self.site.candidate_api();
        Api::namespaced_with(self.site.client().clone(), &self.namespace, &api)
    }

    /// The key of the lease that the scenario is about.
    pub fn key(&self) -> LeaseKey {
        LeaseKey::new(self.namespace.as_str(), self.lease.as_str())
    }

    /// Writes a Lease as the test's own deed, by creation or by compare-and-swap on what it carries.
    pub async fn write(&self, lease: &Lease) -> Result<Lease> {
        // The journal must not be judged before the revision is known to be ours; judging comes last.
        let (leases, parameters) = (self.leases(), PostParams::default());
        let written = match lease.metadata.resource_version {
            Some(_) => leases.replace(&lease.name_any(), &parameters, lease).await,
            None => leases.create(&parameters, lease).await,
        };
        let written = written.context("failed to write a lease")?;
        let version = written.resource_version().unwrap_or_default();
        self.note(&format!(
            "wrote the lease {} @{version}",
            written.name_any()
        ));
        let version = version.parse().context("a version that is no number")?;
        let foreign = ResourceVersion(version);
        self.book.lock().participants.add_foreign(foreign);
        Ok(written)
    }

    /// Writes on the newest revision of a Lease, as often as its holder is quicker.
    pub async fn overwrite(&self, lease: &str, change: impl Fn(&mut Lease)) -> Result<Lease> {
        loop {
            let mut newest = self.leases().get(lease).await?;
            change(&mut newest);
            match self.write(&newest).await {
                Err(error) if is_conflict(&error) => {}
                written => return written,
            }
        }
    }

    /// Creates the lease as its last holder left it: released, with a label and an annotation of this name and value.
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
    pub async fn first_leader(&self, patience: Duration) -> Result<(String, Timestamp)> {
        self.leader_since(JournalMark::BEGINNING, patience).await
    }

    /// The same for the first one that begins to lead after that mark.
    pub async fn leader_since(
        &self,
        mark: JournalMark,
        patience: Duration,
    ) -> Result<(String, Timestamp)> {
        let leading = |entries: &[HistoryEntry]| {
            let first = events(mark.since(entries), EventKind::Leading).next();
            first.map(|(event, at)| (event.name.clone(), at))
        };
        self.journal.until("one leads", patience, leading).await
    }

    /// Waits until a candidate's object is there, in an entry after that mark.
    pub async fn registered(&self, name: &str, mark: JournalMark) -> Result<()> {
        let there = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(found, _) if found == name);
        let look = |entries: &[HistoryEntry]| mark.since(entries).iter().any(there).then_some(());
        let what = format!("{name} is registered");
        self.journal.until(&what, PROMPTLY, look).await
    }

    /// Waits until the newest revision of the lease satisfies `look`.
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
    pub fn lease(&self) -> Result<Arc<Lease>> {
        self.journal
            .read(|entries| newest(entries, &self.lease))
            .context("there is no lease")
    }

    /// Waits until the holder of the lease has renewed it this number of times from now on, and checks that it stays the
    /// holder and in its term all along. This takes `times` of its renew intervals, which is what it is for.
    pub async fn stays(&self, holder: &str, times: usize) -> Result<()> {
        let held = |lease: &Lease| {
            let spec = &lease.spec;
            let holder = spec.holder_identity.clone().unwrap_or_default();
            (holder, spec.lease_transitions.unwrap_or(0))
        };
        // A candidate may say that it leads before the watch has brought its lease, long before on a machine that is busy.
        let named = format!("the lease names {holder}");
        let term = self.journal.until(&named, 3 * PROMPTLY, |entries| {
            let mut led = events(entries, EventKind::Leading);
            let led = led.rfind(|(event, _)| event.name == holder);
            let begun = led.and_then(|(event, _)| event.term);
            let lease = newest(entries, &self.lease)?;
            let (named, term) = held(&lease);
            let is_known = begun.is_none_or(|begun| begun <= i64::from(term));
            (named == holder && is_known).then_some(term)
        });
        let term = term.await?;
        let kept = (holder.to_owned(), term);
        let start = self.journal.mark();
        // A third of the longest renew deadline that a scenario has is 8 s.
        let patience = Duration::from_secs(15) * u32::try_from(times)?;
        let what = format!("{holder} renews {times} times");
        let outcome = self.journal.until(&what, patience, |entries| {
            let mut renewals = Vec::new();
            for (lease, _) in revisions(start.since(entries), &self.lease) {
                let now = held(lease);
                if now != kept {
                    return Some(Err(now));
                }
                renewals.push(lease.spec.renew_time);
            }
            renewals.dedup();
            (renewals.len() >= times).then_some(Ok(()))
        });
        match outcome.await? {
            Ok(()) => Ok(()),
            Err((other, term)) => bail!("the lease of {holder} went to {other:?} in term {term}"),
        }
    }

    /// The number of terms begun so far, by the events of the candidates.
    pub fn terms(&self) -> usize {
        self.journal
            .read(|entries| events(entries, EventKind::Leading).count())
    }

    /// Checks that this number of terms has begun.
    pub fn has_begun_terms(&self, count: usize) -> Result<()> {
        let terms = self.terms();
        ensure!(terms == count, "{terms} terms began, and not {count}");
        Ok(())
    }

    /// Checks the journal against the rules, once everything that has been written so far stands in it.
    pub async fn verdict(&self) -> Result<()> {
        self.settle().await?;
        let participants = self.book.lock().participants.clone();
        let history = self.reported_in_time();
        // Hundreds of leases take a second, in which others must not wait.
        let verdict = spawn_blocking(move || verify(&history, &participants)).await?;
        ensure!(verdict.holds(), "{verdict}");
        Ok(())
    }

    /// Notes the time of something the test does.
    pub fn note(&self, text: &str) -> JournalMark {
        let mark = self.journal.mark();
        self.journal.note(text);
        mark
    }

    /// The journal without the words of those that are judged by the Lease.
    fn reported_in_time(&self) -> History {
        let book = self.book.lock();
        let late = |entry: &HistoryEntry| match &entry.content {
            EntryContent::Event(event) => book.judged_by_lease.contains(&event.name),
            _ => false,
        };
        let mut entries = self.journal.read(<[HistoryEntry]>::to_vec);
        entries.retain(|entry| !late(entry));
        // Events from before a kill may have been read later.
        entries.sort_by_key(|entry| entry.at);
        History::from(entries)
    }

    /// Waits until the recorder has seen a Lease that is written now, and with it all earlier ones.
    async fn settle(&self) -> Result<()> {
        let mut last = Lease::named(&LeaseKey::new(self.namespace.as_str(), SETTLED));
        last.spec.holder_identity = Some(now().as_micros().to_string());
        let (api, parameters) = (self.leases(), PostParams::default());
        if let Some(known) = api.get_opt(SETTLED).await? {
            last.metadata.resource_version = known.metadata.resource_version;
            last = api.replace(SETTLED, &parameters, &last).await?;
        } else {
            last = api.create(&parameters, &last).await?;
        }
        let version = last.metadata.resource_version;
        let seen = |entries: &[HistoryEntry]| {
            let mut all = revisions(entries, SETTLED);
            all.any(|(lease, _)| lease.metadata.resource_version == version)
                .then_some(())
        };
        self.journal
            .until("the recorder has caught up", PATIENCE, seen)
            .await
    }
}

/// True of the answer to a write that has lost.
fn is_conflict(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref();
    matches!(status, Some(kube::Error::Api(status)) if status.is_conflict())
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
