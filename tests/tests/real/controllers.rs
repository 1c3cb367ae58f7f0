//! Three replicas of a program whose controller runs under leadership: killed, asked to end, stopped and woken, and
//! preferred. Their writes to the objects that they reconcile tell which term wrote: tokens only grow.

mod replica;
mod tokens;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{EventKind, StartedCandidate, Suite, Testbed};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

pub(crate) use self::replica::{IS_REPLICA, run as run_replica};
use self::tokens::{ReconciledTokens, WrittenToken};
use crate::{GATE_OFF, OURS, PROMPTLY, SHORT_DEADLINE, SHORT_LEASE};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("controllers_through_each_fault", 30, each_fault);
}

/// The longest time from the end of a leader's controller until another has reconciled everything: less than the lease
/// has left after a renewal, which comes once a second.
const GIVEN_UP: Duration = Duration::from_millis(2_900);

const REPLICAS: usize = 3;
const OBJECTS: usize = 10;

/// The wait for writes of a woken leader after it says that it leads no more.
const AFTERMATH: Duration = Duration::from_secs(2);

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
    for replica in &mut replicas.running {
        // A process that has only just been started does not handle signals yet.
        replica.begins().await?;
        replica.ends().await?;
    }
    let writes = replicas.tokens.writes();
    testbed.amount("writes of tokens", writes.to_string());
    replicas.tokens.only_grew()
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
        let builder = builder.build(&self.program).work(&[objects]);
        self.running.push(builder.start()?);
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
        let at = self.running.iter();
        let at = at
            .map(StartedCandidate::name)
            .position(|name| name == leader);
        let at = at.context("the leader is none of ours")?;
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
                leader.ends_well().await?;
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
                let holds = !status.success();
                ensure!(holds, "a leader without its controller ended well");
            }
            ReplicaFault::Stop => {
                self.testbed.judge_by_lease(&leader);
                self.running[at].process.signal(Signal::STOP)?;
                self.reconcile(SHORT_LEASE + PROMPTLY).await?;
            }
            ReplicaFault::Prefer => {
                // Electors prefer the oldest version.
                self.start_replica("1.8.0")?;
                self.reconcile(PROMPTLY).await?;
                self.running.remove(at).process.terminate(PROMPTLY).await?;
            }
        }
        let took = begin.elapsed();
        if let ReplicaFault::Stop = fault {
            let woken = self.testbed.journal().mark();
            let replica = &mut self.running[at];
            replica.process.signal(Signal::CONT)?;
            replica.says(EventKind::Lost, woken, PROMPTLY).await?;
            // It is what it writes now that would be too late.
            sleep(AFTERMATH).await;
        }
        while self.running.len() < REPLICAS {
            self.start_replica("1.9.0")?;
        }
        self.tokens.only_grew()?;
        Ok(took)
    }
}
