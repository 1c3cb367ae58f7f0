//! The participants: the elector and its candidates as tasks of this process, each with a connection of its own, and what
//! they report.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use elector::{Config as ElectorConfig, Elector};
use elector_candidate::{Candidate, Config, Leadership, Timing};
use elector_protocol::{ElectorTiming, Identity, LeaseKey};
use elector_runtime::{ClientArgs, connect};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// A report of a participant, and its time.
#[derive(Clone, Debug)]
pub(super) struct TimedReport {
    pub(super) at: Instant,
    pub(super) what: ParticipantReport,
}

/// The content of a report.
#[derive(Clone, Debug)]
pub(super) enum ParticipantReport {
    Elector(elector::Event),
    Candidate(Identity, elector_candidate::Event),
    /// The run of a candidate that was not asked to leave has ended.
    Left(Identity, String),
}

/// The elector and the candidates that run. Dropping it drops them.
pub(super) struct DevParticipants {
    client: ClientArgs,
    lease: LeaseKey,
    candidates: BTreeMap<Identity, Participant>,
    elector: Option<Participant>,
    reports: ReportSender,
}

/// Where reports go; sending one never waits.
#[derive(Clone)]
struct ReportSender(mpsc::Sender<TimedReport>);

/// The elector or one candidate.
struct Participant {
    tasks: JoinSet<()>,
    leave: oneshot::Sender<()>,
}

/// The most reports that may wait to be read.
const MOST_REPORTS: usize = 4096;

/// The lease of the scenario is short, so that the crash does not bore: 6 s in place of 15 s.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(6);

/// The time that a candidate of the scenario leads without a renewal.
const RENEW_DEADLINE: Duration = Duration::from_secs(4);

/// The time that a participant may take to leave: a candidate waits for the server for two requests at most.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

// === impl DevParticipants ===

impl DevParticipants {
    /// No participants yet, on the server of that kubeconfig, and what they will report.
    pub(super) fn new(kubeconfig: PathBuf, lease: LeaseKey) -> (Self, mpsc::Receiver<TimedReport>) {
        let (reports, news) = mpsc::channel(MOST_REPORTS);
        let participants = Self {
            client: ClientArgs::of_kubeconfig(kubeconfig),
            lease,
            candidates: BTreeMap::new(),
            elector: None,
            reports: ReportSender(reports),
        };
        (participants, news)
    }

    /// Starts the elector.
    pub(super) async fn start_elector(&mut self) -> anyhow::Result<()> {
        let cluster = connect(&self.client).await?;
        let timing = ElectorTiming {
            // The store was empty a moment ago and is ours alone: that a Lease is missing proves that it has no leader.
            absent_lease_grace: Some(Duration::ZERO),
            ..ElectorTiming::default()
        };
        let config = ElectorConfig {
            timing,
            ..ElectorConfig::default()
        };
        let reports = self.reports.clone();
        let elector = Elector::new(config, cluster)
            .context("start the elector")?
            .observed_by(move |event| reports.write(ParticipantReport::Elector(event.clone())));
        let (leave, left) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(elector.run(gone(left)));
        self.elector = Some(Participant { tasks, leave });
        Ok(())
    }

    /// Starts a candidate. Its work is to lead.
    pub(super) async fn start_candidate(
        &mut self,
        name: &Identity,
        version: &str,
    ) -> anyhow::Result<()> {
        let cluster = connect(&self.client).await?;
        let config = Config::new(&*self.lease.name, version)
            .namespace(&*self.lease.namespace)
            .identity(name.as_str())
            .timing(Timing::new(LEASE_DURATION, RENEW_DEADLINE));
        let (reports, reporter) = (self.reports.clone(), name.clone());
        let candidate = Candidate::new(config, cluster.into())
            .with_context(|| format!("start {name}"))?
            .observed_by(move |_, event| {
                reports.write(ParticipantReport::Candidate(
                    reporter.clone(),
                    event.clone(),
                ));
            });
        let (leave, left) = oneshot::channel();
        let (reports, reporter) = (self.reports.clone(), name.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let work = |leadership: Leadership| async move {
                leadership.stopped().await;
                Ok::<(), Infallible>(())
            };
            let how = match candidate.run(work, gone(left)).await {
                Ok(outcome) if outcome.value.is_none() => return,
                Ok(outcome) => format!("{outcome:?}"),
                Err(error) => format!("failed to {error}"),
            };
            reports.write(ParticipantReport::Left(reporter, how));
        });
        let candidate = Participant { tasks, leave };
        self.candidates.insert(name.clone(), candidate);
        Ok(())
    }

    /// Drops a candidate in the middle of what it does: its tasks, its timers, its connections. It releases
    /// nothing and deletes nothing; to all others it is as if its process had been killed.
    pub(super) async fn crash(&mut self, name: &Identity) -> anyhow::Result<()> {
        let mut player = self
            .candidates
            .remove(name)
            .with_context(|| format!("crash {name}: it does not run"))?;
        player.tasks.shutdown().await;
        Ok(())
    }

    /// Ends all of them in good order: first the elector, so that it does not elect candidates that are about to leave.
    pub(super) async fn leave(&mut self) {
        if let Some(elector) = self.elector.take() {
            elector.leave().await;
        }
        let candidates = std::mem::take(&mut self.candidates).into_values();
        let mut leaving: JoinSet<()> = candidates.map(Participant::leave).collect();
        while leaving.join_next().await.is_some() {}
    }
}

/// Waits until a participant is asked to leave. One that is dropped is not asked.
async fn gone(left: oneshot::Receiver<()>) {
    left.await.unwrap_or_default();
}

// === impl ReportSender ===

impl ReportSender {
    fn write(&self, what: ParticipantReport) {
        let at = Instant::now();
        // A terminal that stands still for thousands of reports loses some; a leader must not wait for it.
        let _ = self.0.try_send(TimedReport { at, what });
    }
}

// === impl Participant ===

impl Participant {
    async fn leave(mut self) {
        // Its run may have ended.
        let _ = self.leave.send(());
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // A participant that takes longer is dropped.
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, all).await;
    }
}
