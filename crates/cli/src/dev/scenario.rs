//! The scenario: which candidates start, crash and come late, and what has to follow. What is told comes from the
//! participants.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant as Timer, timeout_at};

use super::narration::Narration;
use super::participants::{DevParticipants, LEASE_DURATION, TimedReport};
use super::reporter::{CurrentLeader, Reporter};

/// The participants, and the reporter of what they do.
pub(super) struct DemoScenario<W> {
    participants: DevParticipants,
    reports: mpsc::Receiver<TimedReport>,
    reporter: Reporter<W>,
    kubeconfig: PathBuf,
}

/// The first candidates, and the versions that decide between them.
const CANDIDATES: [(&str, &str); 3] = [("green", "1.33.0"), ("blue", "1.32.0"), ("red", "1.34.0")];

/// Arrives late and is better than all of them.
const LATECOMER: (&str, &str) = ("violet", "1.31.0");

/// The lease of the scenario.
const LEASE: (&str, &str) = ("default", "demo");

/// The time to read between two steps.
const PAUSE: Duration = Duration::from_secs(2);

/// The time that a step may take before something is wrong.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

// === impl DemoScenario ===

impl<W: Write> DemoScenario<W> {
    /// A scenario on the server of that kubeconfig, whose store is empty.
    pub(super) fn new(narration: Narration<W>, kubeconfig: PathBuf) -> Self {
        let lease = LeaseKey::new(LEASE.0, LEASE.1);
        let (participants, reports) = DevParticipants::new(kubeconfig.clone(), lease.clone());
        Self {
            participants,
            reports,
            reporter: Reporter::new(narration, lease),
            kubeconfig,
        }
    }

    /// Runs it.
    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        for (name, version) in CANDIDATES {
            self.start_candidate(name, version).await?;
        }
        self.participants.start_elector().await?;
        let first = self.await_leader("one of them leads", |_| true).await?;
        self.reporter.narration.explain(format_args!(
            "of those that answer, the oldest version leads: what it writes, the others understand"
        ))?;
        self.pause().await?;

        self.participants.crash(&first.name).await?;
        self.reporter.crashed(&first.name, Instant::now())?;
        self.reporter.narration.explain(format_args!(
            "nobody else may lead until its lease of {} s has run out",
            LEASE_DURATION.as_secs()
        ))?;
        self.await_leader("another one leads", |leader| leader.name != first.name)
            .await?;
        self.pause().await?;

        let (latecomer, version) = LATECOMER;
        self.start_candidate(latecomer, version).await?;
        self.await_leader("the latecomer leads", |leader| {
            leader.name.as_str() == latecomer
        })
        .await?;
        match self.reporter.most_at_work() {
            1 => self
                .reporter
                .narration
                .explain(format_args!("at no time have two been at work"))?,
            most => bail!("keep one leader at a time: {most} have been at work at once"),
        }
        Ok(())
    }

    /// Leaves the cluster to its users, and goes on telling. Returns with an error only.
    pub(super) async fn run_on(&mut self, program: &str) -> anyhow::Result<()> {
        let narration = &mut self.reporter.narration;
        narration.say(
            Instant::now(),
            format_args!("the cluster is yours until Ctrl-C; in another terminal:"),
        )?;
        for line in [
            format!("export KUBECONFIG={}", self.kubeconfig.display()),
            "kubectl get leases -w               # who leads".to_owned(),
            "kubectl get leasecandidates         # who would like to".to_owned(),
            "kubectl delete leasecandidate red   # it comes back".to_owned(),
            "kubectl delete lease demo           # a new one is granted".to_owned(),
            format!("{program} explain   # who is next, and why"),
            format!(
                "{program} candidate --lease {} --binary-version 1.30.0   # a still better one",
                LEASE.1
            ),
        ] {
            narration.explain(format_args!("  {line}"))?;
        }
        loop {
            self.handle_next().await?;
        }
    }

    /// Ends all participants in good order.
    pub(super) async fn leave(&mut self, signal: Option<Signal>) -> anyhow::Result<()> {
        let now = Instant::now();
        let outcome = match signal {
            Some(signal) => self
                .reporter
                .narration
                .say(now, format_args!("{signal}: the participants leave")),
            None => self
                .reporter
                .narration
                .say(now, format_args!("that is all; the participants leave")),
        };
        self.participants.leave().await;
        Ok(outcome?)
    }

    async fn start_candidate(&mut self, name: &str, version: &str) -> anyhow::Result<()> {
        let name = Identity::new(name).context("start a candidate: it has no name")?;
        self.reporter.introduce(&name, version)?;
        self.participants.start_candidate(&name, version).await?;
        let registered = |reporter: &Reporter<W>| reporter.is_registered(&name).then_some(());
        self.until("a candidate registers", registered).await
    }

    /// Waits until one of the participants leads, as expected and explained.
    async fn await_leader(
        &mut self,
        what: &str,
        expected: impl Fn(&CurrentLeader) -> bool,
    ) -> anyhow::Result<CurrentLeader> {
        let leading = |reporter: &Reporter<W>| {
            let leader = reporter.leader();
            leader
                .filter(|leader| leader.explained && expected(leader))
                .cloned()
        };
        self.until(what, leading).await
    }

    async fn until<T>(
        &mut self,
        what: &str,
        outcome: impl Fn(&Reporter<W>) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = Timer::now() + STEP_TIMEOUT;
        loop {
            if let Some(outcome) = outcome(&self.reporter) {
                return Ok(outcome);
            }
            timeout_at(deadline, self.handle_next())
                .await
                .with_context(|| {
                    format!(
                        "run the scenario: not within {} s: {what}",
                        STEP_TIMEOUT.as_secs()
                    )
                })??;
        }
    }

    /// Gives time to read.
    async fn pause(&mut self) -> anyhow::Result<()> {
        let end = Timer::now() + PAUSE;
        while let Ok(handled) = timeout_at(end, self.handle_next()).await {
            handled?;
        }
        Ok(())
    }

    async fn handle_next(&mut self) -> anyhow::Result<()> {
        let reports = self.reports.recv().await;
        // The participants hold the other end.
        let reports = reports.context("receive a report: there are no participants")?;
        Ok(self.reporter.handle(reports)?)
    }
}
