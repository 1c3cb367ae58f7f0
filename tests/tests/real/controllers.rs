//! Three replicas of a program whose controller runs under leadership: killed, told to end, stopped and woken, and
//! preferred. What they write into the objects that they reconcile tells which term wrote it: tokens only grow.

mod replica;
mod tokens;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EventKind, RequiredFlag, StartedCandidate, Suite, Testbed, warm_up,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

pub(crate) use self::replica::{IS_REPLICA, run as run_replica};
use self::tokens::{ReconciledTokens, WrittenToken};
use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "controllers_through_each_fault",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(30),
        |testbed| Box::pin(each_fault(testbed)),
    );
    suite.add_with_flag(
        RequiredFlag::Long,
        "controllers_through_many_faults",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        LASTS + PROMPTLY * 6,
        |testbed| Box::pin(ten_minutes(testbed)),
    );
}

/// The duration of the many faults.
const LASTS: Duration = Duration::from_secs(600);

/// W and H of the replicas.
const SHORT_LEASE: Duration = Duration::from_secs(4);
const SHORT_DEADLINE: Duration = Duration::from_secs(3);

/// The longest time from the end of a leader's controller until another has reconciled everything: less than the lease
/// has left after a renewal, which comes once a second.
const GIVEN_UP: Duration = Duration::from_millis(2_900);

const REPLICAS: usize = 3;
const OBJECTS: usize = 10;

/// The wait for writes of a woken leader after it says that it leads no more.
const AFTERMATH: Duration = Duration::from_secs(2);

/// Names the seed of the faults, in decimal; a random one without it.
const ELECTOR_SEED: &str = "ELECTOR_SEED";

#[derive(Clone, Copy, Debug)]
enum ReplicaFault {
    Kill,
    Terminate,
    Stop,
    Prefer,
    /// The task of its controller panics.
    Panic,
    /// The stream of its controller ends.
    EndOfStream,
}

/// The replicas of one scenario.
struct Replicas {
    testbed: Arc<Testbed>,
    program: PathBuf,
    tokens: ReconciledTokens,
    running: Vec<StartedCandidate>,
    started: u32,
    /// The token that all objects have.
    written: WrittenToken,
}

async fn each_fault(testbed: Arc<Testbed>) -> Result<()> {
    let mut replicas = Replicas::start(Arc::clone(&testbed)).await?;
    use ReplicaFault::{EndOfStream, Kill, Panic, Prefer, Stop, Terminate};
    for fault in [Terminate, Prefer, Panic, EndOfStream, Stop, Kill] {
        let took = replicas.strike(fault).await?;
        testbed.figure(&format!("{fault:?}"), took);
    }
    replicas.end().await
}

async fn ten_minutes(testbed: Arc<Testbed>) -> Result<()> {
    let seed = match env::var(ELECTOR_SEED) {
        Ok(seed) => seed.parse().context("the seed is a number")?,
        Err(_) => rand::random(),
    };
    println!("controllers_through_many_faults: seed {seed}, again with {ELECTOR_SEED}={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let site = testbed.site();
    // Preferences come by the dozen, and are not to be held back (R23).
    let flags = site.mode().elector_flags().iter().copied();
    let flags = flags.chain(["--preemptions=60", "--preemption-window=1s"]);
    let _elector = site.elector("elector", flags).await?;
    warm_up(site).await?;
    let mut replicas = Replicas::start(Arc::clone(&testbed)).await?;
    let end = Instant::now() + LASTS;
    let mut struck = [0_u32; 4];
    while Instant::now() < end {
        use ReplicaFault::{Kill, Prefer, Stop, Terminate};
        let choice = random.random_range(0..4);
        replicas
            .strike([Terminate, Prefer, Stop, Kill][choice])
            .await?;
        struck[choice] += 1;
    }
    let [terminations, preferences, stops, kills] = struck;
    println!(
        "{terminations} terminations, {preferences} preferences, {stops} stops, {kills} kills"
    );
    ensure!(
        struck.iter().all(|times| *times > 2),
        "too few to show anything"
    );
    replicas.end().await
}

// === impl Replicas ===

impl Replicas {
    /// Starts them, and waits until one has reconciled all objects.
    async fn start(testbed: Arc<Testbed>) -> Result<Self> {
        testbed.believe_for(SHORT_DEADLINE);
        let tokens = ReconciledTokens::follow(&testbed, OBJECTS).await?;
        let mut replicas = Self {
            program: env::current_exe()?,
            tokens,
            running: Vec::new(),
            started: 0,
            written: WrittenToken::default(),
            testbed,
        };
        for _ in 0..REPLICAS {
            replicas.start_replica("1.9.0")?;
        }
        replicas.reconcile(PROMPTLY * 2).await?;
        Ok(replicas)
    }

    /// Starts one more, which is preferred to those of a higher version.
    fn start_replica(&mut self, version: &str) -> Result<()> {
        self.started += 1;
        let objects = self.testbed.site().kubeconfig();
        let objects = objects.to_str().context("a path that is no text")?;
        let name = format!("replica-{}", self.started);
        let builder = self.testbed.candidate(&name).version(version);
        self.running
            .push(builder.build(&self.program).work(&[objects]).start()?);
        Ok(())
    }

    /// Waits until all objects have the token of a later term.
    async fn reconcile(&mut self, patience: Duration) -> Result<()> {
        self.written = self.tokens.later_than(self.written.token, patience).await?;
        Ok(())
    }

    /// Does that to the leader, and puts things in order again; how long it took until another had reconciled everything.
    async fn strike(&mut self, fault: ReplicaFault) -> Result<Duration> {
        // A leader that was woken may have been preferred again.
        let known = self.written.token.saturating_sub(1);
        self.written = self.tokens.later_than(known, PROMPTLY).await?;
        let leader = self.written.by.clone();
        let by_name = |replica: &StartedCandidate| replica.name() == leader;
        let at = self
            .running
            .iter()
            .position(by_name)
            .context("the leader is none of ours")?;
        self.testbed.note(&format!("{fault:?} {leader}"));
        let begin = Instant::now();
        match fault {
            ReplicaFault::Kill => {
                self.running.remove(at).kill()?;
                self.reconcile(SHORT_LEASE + PROMPTLY).await?;
            }
            ReplicaFault::Terminate => {
                let mut leader = self.running.remove(at);
                leader.terminate()?;
                self.reconcile(PROMPTLY).await?;
                leader.ends_well(PROMPTLY).await?;
            }
            ReplicaFault::Panic | ReplicaFault::EndOfStream => {
                let mut leader = self.running.remove(at);
                leader.process.signal(match fault {
                    ReplicaFault::Panic => Signal::USR1,
                    _ => Signal::USR2,
                })?;
                // Sooner than the lease could have expired: it was given up.
                self.reconcile(GIVEN_UP).await?;
                let status = leader.process.exit(PROMPTLY).await?;
                ensure!(
                    !status.success(),
                    "a leader without its controller ended well"
                );
            }
            ReplicaFault::Stop => {
                self.testbed.judge_by_lease(&leader);
                self.running[at].process.signal(Signal::STOP)?;
                self.reconcile(SHORT_LEASE + PROMPTLY).await?;
            }
            ReplicaFault::Prefer => {
                // Electors prefer the oldest: each one that comes now is older than those before.
                let version = format!("1.{}.0", 8_u32.saturating_sub(self.started / 8));
                self.start_replica(&format!("{version}-{:05}", 99_999 - self.started))?;
                self.reconcile(PROMPTLY).await?;
                self.running.remove(at).process.terminate(PROMPTLY).await?;
            }
        }
        let took = begin.elapsed();
        if let ReplicaFault::Stop = fault {
            let from = self.testbed.journal().read(<[_]>::len);
            self.running[at].process.signal(Signal::CONT)?;
            self.running[at]
                .says(EventKind::Lost, from, PROMPTLY)
                .await?;
            // It is what it writes now that would be too late.
            sleep(AFTERMATH).await;
        }
        while self.running.len() < REPLICAS {
            self.start_replica("1.9.0")?;
        }
        self.tokens.only_grew()?;
        Ok(took)
    }

    async fn end(mut self) -> Result<()> {
        for replica in &mut self.running {
            // A process that has only just been started does not handle signals yet.
            replica.says(EventKind::Start, 0, PROMPTLY).await?;
            replica.terminate()?;
            replica.ends_well(PROMPTLY).await?;
        }
        self.testbed
            .amount("writes of tokens", self.tokens.writes().to_string());
        self.tokens.only_grew()
    }
}
