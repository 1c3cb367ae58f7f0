//! The story: who enters when, and what has to come of it. What is told comes from the players.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant as Timer, timeout_at};

use super::cast::{Cast, LEASE_DURATION, News};
use super::report::{Leader, Reporter};
use super::tell::Teller;

/// The stage, and the one who tells what happens on it.
pub(super) struct Story<W> {
    cast: Cast,
    news: mpsc::Receiver<News>,
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
const SCENE: Duration = Duration::from_secs(60);

// === impl Story ===

impl<W: Write> Story<W> {
    /// A story on the server of that kubeconfig, whose store is empty.
    pub(super) fn new(tell: Teller<W>, kubeconfig: PathBuf) -> Self {
        let lease = LeaseKey::new(LEASE.0, LEASE.1);
        let (cast, news) = Cast::new(kubeconfig.clone(), lease.clone());
        Self {
            cast,
            news,
            reporter: Reporter::new(tell, lease),
            kubeconfig,
        }
    }

    /// Plays it.
    ///
    /// # Errors
    ///
    /// When it does not go as it should.
    pub(super) async fn play(&mut self) -> anyhow::Result<()> {
        for (name, version) in CANDIDATES {
            self.enter(name, version).await?;
        }
        self.cast.start_elector().await?;
        let first = self.await_leader("one of them leads", |_| true).await?;
        self.reporter.tell.aside(format_args!(
            "of those that answer, the oldest version leads: what it writes, the others understand"
        ))?;
        self.pause().await?;

        self.cast.crash(&first.name).await?;
        self.reporter.crashed(&first.name, Instant::now())?;
        self.reporter.tell.aside(format_args!(
            "nobody else may lead until its lease of {} s has run out",
            LEASE_DURATION.as_secs()
        ))?;
        self.await_leader("another one leads", |leader| leader.name != first.name)
            .await?;
        self.pause().await?;

        let (latecomer, version) = LATECOMER;
        self.enter(latecomer, version).await?;
        self.await_leader("the latecomer leads", |leader| {
            leader.name.as_str() == latecomer
        })
        .await?;
        match self.cast.most_at_work() {
            1 => self
                .reporter
                .tell
                .aside(format_args!("at no time have two been at work"))?,
            most => bail!("keep one leader at a time: {most} have been at work at once"),
        }
        Ok(())
    }

    /// Leaves the stage to the audience, and goes on telling. Returns with an error only.
    ///
    /// # Errors
    ///
    /// When nobody can hear it any more.
    pub(super) async fn go_on(&mut self, program: &str) -> anyhow::Result<()> {
        let tell = &mut self.reporter.tell;
        tell.say(
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
            tell.aside(format_args!("  {line}"))?;
        }
        loop {
            self.hear_next().await?;
        }
    }

    /// Everybody leaves in good order.
    ///
    /// # Errors
    ///
    /// When nobody can hear it.
    pub(super) async fn leave(&mut self, signal: Option<Signal>) -> anyhow::Result<()> {
        let now = Instant::now();
        let told = match signal {
            Some(signal) => self
                .reporter
                .tell
                .say(now, format_args!("{signal}: everybody leaves")),
            None => self
                .reporter
                .tell
                .say(now, format_args!("that is all; everybody leaves")),
        };
        self.cast.leave().await;
        Ok(told?)
    }

    async fn enter(&mut self, name: &str, version: &str) -> anyhow::Result<()> {
        let name = Identity::new(name).context("start a candidate: it has no name")?;
        self.reporter.introduce(&name, version)?;
        self.cast.start_candidate(&name, version).await?;
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
        let deadline = Timer::now() + SCENE;
        loop {
            if let Some(outcome) = outcome(&self.reporter) {
                return Ok(outcome);
            }
            timeout_at(deadline, self.hear_next())
                .await
                .with_context(|| {
                    format!("play the story: not within {} s: {what}", SCENE.as_secs())
                })??;
        }
    }

    /// Lets the audience read.
    async fn pause(&mut self) -> anyhow::Result<()> {
        let end = Timer::now() + PAUSE;
        while let Ok(heard) = timeout_at(end, self.hear_next()).await {
            heard?;
        }
        Ok(())
    }

    async fn hear_next(&mut self) -> anyhow::Result<()> {
        let news = self.news.recv().await;
        // The cast holds on to its end of it.
        let news = news.context("hear from the stage: it is empty")?;
        Ok(self.reporter.hear(news)?)
    }
}
