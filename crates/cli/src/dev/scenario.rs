//! The story: who enters when, and what has to come of it. What is told comes from the players.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant as Timer, timeout_at};

use super::narration::Narration;
use super::participants::{LEASE_DURATION, Participants, TimedReport};
use super::reporter::{Leader, Reporter};

/// The stage, and the one who tells what happens on it.
pub(super) struct Scenario<W> {
    participants: Participants,
    reports: mpsc::Receiver<TimedReport>,
    reporter: Reporter<W>,
    kubeconfig: PathBuf,
}

/// The first candidates, and the versions that decide between them.
const CANDIDATES: [(&str, &str); 3] = [("green", "1.33.0"), ("blue", "1.32.0"), ("red", "1.34.0")];

/// Arrives late and is better than all of them.
const LATECOMER: (&str, &str) = ("violet", "1.31.0");

/// The lease of the story.
const LEASE: (&str, &str) = ("default", "demo");

/// How long the audience gets to read between two scenes.
const PAUSE: Duration = Duration::from_secs(2);

/// How long a scene may take before something is wrong.
const SCENE_TIMEOUT: Duration = Duration::from_secs(60);

// === impl Scenario ===

impl<W: Write> Scenario<W> {
    /// A story on the server of that kubeconfig, whose store is empty.
    pub(super) fn new(narration: Narration<W>, kubeconfig: PathBuf) -> Self {
        let lease = LeaseKey::new(LEASE.0, LEASE.1);
        let (participants, reports) = Participants::new(kubeconfig.clone(), lease.clone());
        Self {
            participants,
            reports,
            reporter: Reporter::new(narration, lease),
            kubeconfig,
        }
    }

    /// Plays it.
    ///
    /// # Errors
    ///
    /// When it does not go as it should.
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
        match self.participants.most_at_work() {
            1 => self
                .reporter
                .narration
                .explain(format_args!("at no time have two been at work"))?,
            most => bail!("keep one leader at a time: {most} have been at work at once"),
        }
        Ok(())
    }

    /// Leaves the stage to the audience, and goes on telling. Returns with an error only.
    ///
    /// # Errors
    ///
    /// When nobody can hear it any more.
    pub(super) async fn run_on(&mut self, program: &str) -> anyhow::Result<()> {
        let narration = &mut self.reporter.narration;
        narration.say(
            Instant::now(),
            format_args!("the stage is yours until Ctrl-C; in another terminal:"),
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

    /// Everybody leaves in good order.
    ///
    /// # Errors
    ///
    /// When nobody can hear it.
    pub(super) async fn leave(&mut self, signal: Option<Signal>) -> anyhow::Result<()> {
        let now = Instant::now();
        let outcome = match signal {
            Some(signal) => self
                .reporter
                .narration
                .say(now, format_args!("{signal}: everybody leaves")),
            None => self
                .reporter
                .narration
                .say(now, format_args!("that is all; everybody leaves")),
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

    /// Waits until one of the cast leads, as expected and explained.
    async fn await_leader(
        &mut self,
        what: &str,
        expected: impl Fn(&Leader) -> bool,
    ) -> anyhow::Result<Leader> {
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
        let deadline = Timer::now() + SCENE_TIMEOUT;
        loop {
            if let Some(outcome) = outcome(&self.reporter) {
                return Ok(outcome);
            }
            timeout_at(deadline, self.handle_next())
                .await
                .with_context(|| {
                    format!(
                        "play the story: not within {} s: {what}",
                        SCENE_TIMEOUT.as_secs()
                    )
                })??;
        }
    }

    /// Lets the audience read.
    async fn pause(&mut self) -> anyhow::Result<()> {
        let end = Timer::now() + PAUSE;
        while let Ok(heard) = timeout_at(end, self.handle_next()).await {
            heard?;
        }
        Ok(())
    }

    async fn handle_next(&mut self) -> anyhow::Result<()> {
        let reports = self.reports.recv().await;
        // The cast holds on to its end of it.
        let reports = reports.context("hear from the stage: it is empty")?;
        Ok(self.reporter.handle(reports)?)
    }
}
