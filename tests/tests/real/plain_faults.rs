//! Ten minutes of faults for plain candidates, two of ours and one of client-go's, which share a lease.

mod foreign;
mod plan;
mod take_overs;

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, Implementation, LONGEST_LEASE, RequiredFlag, StartedCandidate,
    Suite, Testbed, now,
};
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use self::foreign::ForeignWriter;
use self::plan::{Comeback, RunFault, Victim, plan};
use self::take_overs::{AWAKE, LastTermEnd, ProcessLife, RunJudgement, TakeOver, judge};
use crate::{CLIENT_GO, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add_with_flag(
        RequiredFlag::Long,
        "plain_candidates_through_many_faults",
        ClusterChoice::Own,
        CLIENT_GO,
        &[ClusterMode::GateOff],
        LASTS + PROMPTLY,
        |testbed| Box::pin(ten_minutes(testbed)),
    );
}

/// The duration of the faults.
const LASTS: Duration = Duration::from_secs(600);

/// W and H of these candidates.
const SHORT_LEASE: Duration = Duration::from_secs(4);
const SHORT_DEADLINE: Duration = Duration::from_secs(3);

/// The longest gap after the last leader was killed or stopped, where one of ours waits.
const AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_millis(500));

/// The same after a release of ours.
const AFTER_A_RELEASE: Duration = Duration::from_millis(200);

/// The same after a release that proves nothing: as long as any lease may last.
const AFTER_AN_UNPROVEN_RELEASE: Duration =
    LONGEST_LEASE.saturating_add(Duration::from_millis(500));

/// The fewest crashes, and releases of ours, that show anything in a run.
const ENOUGH: usize = 5;

/// The ends of terms, and the longest gap after each where one of ours waits.
const ENDS: [(&str, LastTermEnd, Duration); 3] = [
    ("crash", LastTermEnd::Crash, AFTER_A_CRASH),
    ("release", LastTermEnd::Release, AFTER_A_RELEASE),
    (
        "release of client-go's",
        LastTermEnd::ReleaseOfClientGo,
        AFTER_AN_UNPROVEN_RELEASE,
    ),
];

/// Names the seed of the faults, in decimal; a random one without it.
const ELECTOR_SEED: &str = "ELECTOR_SEED";

/// The candidates by their names, which all their processes share or begin with.
const PLACES: [(&str, Implementation); 3] = [
    ("first", Implementation::Elector),
    ("second", Implementation::Elector),
    ("client-go", Implementation::ClientGo),
];

/// A candidate's place: one process after the other.
struct CandidateSlot {
    name: &'static str,
    implementation: Implementation,
    process: Option<StartedCandidate>,
    /// Which of `lives` it is.
    life: usize,
    stopped: bool,
    /// The next step: a new process, or the end of a stop.
    next: Option<(Instant, NextStep)>,
    processes: u32,
}

#[derive(Clone, Copy)]
enum NextStep {
    Start { renamed: bool },
    Wake,
}

/// A run.
struct FaultRun {
    testbed: Arc<Testbed>,
    places: Vec<CandidateSlot>,
    lives: Vec<ProcessLife>,
    stranger: ForeignWriter,
    struck: [u32; 3],
}

async fn ten_minutes(testbed: Arc<Testbed>) -> Result<()> {
    let seed = seed()?;
    let again = format!("seed {seed}, again with {ELECTOR_SEED}={seed}");
    println!("plain_candidates_through_many_faults: {again}");
    testbed.note(&again);
    let mut run = FaultRun::start(Arc::clone(&testbed)).await?;
    run.play(seed).await.with_context(|| again.clone())?;
    run.finish().await.context(again)
}

/// The seed that is given, or a new one.
fn seed() -> Result<u64> {
    match env::var(ELECTOR_SEED) {
        Ok(text) if !text.is_empty() => text
            .parse()
            .with_context(|| format!("{ELECTOR_SEED} must be a whole number, not {text:?}")),
        _ => Ok(rand::random_range(0..=u64::from(u32::MAX))),
    }
}

// === impl FaultRun ===

impl FaultRun {
    async fn start(testbed: Arc<Testbed>) -> Result<Self> {
        testbed.believe_for(SHORT_DEADLINE);
        testbed.write_released(("example.com/note", "kept")).await?;
        let stranger = ForeignWriter::new(testbed.leases(), testbed.lease_name());
        let places = PLACES.map(|(name, implementation)| CandidateSlot {
            name,
            implementation,
            process: None,
            life: 0,
            stopped: false,
            next: None,
            processes: 0,
        });
        let mut run = Self {
            testbed,
            places: places.into(),
            lives: Vec::new(),
            stranger,
            struck: [0; 3],
        };
        for place in 0..run.places.len() {
            run.start_process(place, false)?;
        }
        run.testbed.first_leader(PROMPTLY).await?;
        Ok(run)
    }

    /// All faults of the plan, each at its time, and what follows from them.
    async fn play(&mut self, seed: u64) -> Result<()> {
        let begun = Instant::now();
        let mut faults = plan(seed, LASTS, PLACES.len()).into_iter().peekable();
        while faults.peek().is_some() || self.places.iter().any(|place| place.next.is_some()) {
            let fault = faults.peek().map(|fault| begun + fault.at);
            let step = self
                .places
                .iter()
                .enumerate()
                .filter_map(|(index, place)| Some((place.next?.0, index)))
                .min();
            match (fault, step) {
                (fault, Some((due, place))) if fault.is_none_or(|fault| due <= fault) => {
                    sleep_until(due).await;
                    self.next_step(place)?;
                }
                (Some(due), _) => {
                    sleep_until(due).await;
                    let fault = faults.next().context("a fault that was there")?;
                    self.strike(fault.fault).await?;
                }
                (None, _) => break,
            }
        }
        Ok(())
    }

    async fn strike(&mut self, fault: RunFault) -> Result<()> {
        match fault {
            RunFault::Write(what) => self.stranger.write(what).await?,
            RunFault::Kill(victim, comeback) => {
                if let Some(place) = self.struck_place(victim) {
                    let at = self.process(place)?.kill()?;
                    self.end(place, at, comeback);
                    self.struck[0] += 1;
                }
            }
            RunFault::Terminate(victim, comeback) => {
                if let Some(place) = self.struck_place(victim) {
                    let process = self.process(place)?;
                    let at = process.terminate()?;
                    process.ends_well(PROMPTLY).await?;
                    self.end(place, at, comeback);
                    self.struck[1] += 1;
                }
            }
            RunFault::Stop(victim, lasts) => {
                if let Some(place) = self.struck_place(victim) {
                    self.stop(place, lasts)?;
                    self.struck[2] += 1;
                }
            }
        }
        Ok(())
    }

    /// The place that a fault is for, or the next one whose process runs.
    fn struck_place(&self, victim: Victim) -> Option<usize> {
        let first = match victim {
            Victim::Place(place) => place,
            Victim::Holder => {
                let lease = self.testbed.lease().ok()?;
                let holder = lease.spec.holder_identity.as_deref()?;
                let mut places = self.places.iter();
                places.position(|place| {
                    let process = place.process.as_ref();
                    process.is_some_and(|process| process.name() == holder)
                })?
            }
        };
        let runs = |place: &usize| {
            let place = &self.places[*place];
            place.process.is_some() && !place.stopped
        };
        (0..self.places.len())
            .map(|offset| (first + offset) % self.places.len())
            .find(runs)
    }

    fn process(&mut self, place: usize) -> Result<&mut StartedCandidate> {
        let process = self.places[place].process.as_mut();
        process.context("a place without a process")
    }

    fn start_process(&mut self, place: usize, renamed: bool) -> Result<()> {
        let testbed = Arc::clone(&self.testbed);
        let place = &mut self.places[place];
        place.processes += 1;
        let name = match renamed {
            true => format!("{}-{}", place.name, place.processes),
            false => place.name.to_owned(),
        };
        let mut builder = testbed
            .candidate_of(place.implementation, &name)
            .plain()
            .work(&[])
            .flag("--lease-duration=4s")
            .flag("--renew-deadline=3s");
        for flag in ["--retry-period=1s", "--rejoin", "--release-on-cancel"] {
            builder = builder.flag_for(Implementation::ClientGo, flag);
        }
        place.life = self.lives.len();
        self.lives.push(ProcessLife {
            name,
            implementation: place.implementation,
            from: now(),
            to: None,
            stops: Vec::new(),
        });
        place.process = Some(builder.start()?);
        Ok(())
    }

    fn end(&mut self, place: usize, at: Timestamp, comeback: Comeback) {
        let place = &mut self.places[place];
        self.lives[place.life].to = Some(at);
        place.process = None;
        let renamed = comeback.renamed;
        place.next = Some((Instant::now() + comeback.after, NextStep::Start { renamed }));
    }

    fn stop(&mut self, place: usize, lasts: Duration) -> Result<()> {
        let process = self.process(place)?;
        let at = now();
        process.process.signal(Signal::STOP)?;
        let name = process.name().to_owned();
        self.testbed.note(&format!("stop {name} for {lasts:?}"));
        let place = &mut self.places[place];
        if place.implementation == Implementation::Elector {
            self.testbed.judge_by_lease(&name);
        }
        place.stopped = true;
        place.next = Some((Instant::now() + lasts, NextStep::Wake));
        // Until it is woken, it is stopped for good.
        self.lives[place.life].stops.push((at, Timestamp::MAX));
        Ok(())
    }

    fn next_step(&mut self, place: usize) -> Result<()> {
        let step = self.places[place].next.take();
        match step.context("a step that was there")?.1 {
            NextStep::Start { renamed } => self.start_process(place, renamed),
            NextStep::Wake => {
                let process = self.process(place)?;
                process.process.signal(Signal::CONT)?;
                let name = process.name().to_owned();
                let at = self.testbed.note(&format!("wake {name}"));
                let place = &mut self.places[place];
                place.stopped = false;
                let stops = &mut self.lives[place.life].stops;
                stops.last_mut().context("a stop without its beginning")?.1 = at;
                Ok(())
            }
        }
    }

    /// Waits until there is a leader for good, and judges what was seen.
    async fn finish(mut self) -> Result<()> {
        // The leader of now goes on.
        let end = now();
        sleep(SHORT_LEASE * 2).await;
        let judgement = self
            .testbed
            .journal()
            .read(|entries| judge(entries, &self.lives, end));
        self.stranger.kept().await?;
        for place in 0..self.places.len() {
            self.process(place)?.kill()?;
        }
        let [kills, terms, stops] = self.struck;
        println!(
            "{kills} kills, {terms} terminations, {stops} stops, {} writes of a stranger; {}",
            self.stranger.writes(),
            judgement.summary()
        );
        self.figures(&judgement);
        judgement.check()
    }

    fn figures(&self, judgement: &RunJudgement) {
        for (name, after, _) in ENDS {
            let longest = judgement.longest(after).map(|longest| longest.took);
            if let (Some(median), Some(longest)) = (judgement.median(after), longest) {
                self.testbed
                    .figure(&format!("{name} to next, median"), median);
                self.testbed
                    .figure(&format!("{name} to next, longest"), longest);
            }
        }
        self.testbed
            .figure("client-go beside one of ours", judgement.beside_client_go);
        self.testbed
            .figure("after waking up, longest", judgement.after_waking);
    }
}

// === impl RunJudgement ===

impl RunJudgement {
    fn of(&self, after: LastTermEnd) -> impl Iterator<Item = &TakeOver> {
        let mut all = self.take_overs.iter();
        std::iter::from_fn(move || all.find(|one| one.after == after))
    }

    fn longest(&self, after: LastTermEnd) -> Option<&TakeOver> {
        self.of(after).max_by_key(|one| one.took)
    }

    fn median(&self, after: LastTermEnd) -> Option<Duration> {
        let mut times: Vec<Duration> = self.of(after).map(|one| one.took).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    fn summary(&self) -> String {
        let ends = ENDS.map(|(name, after, _)| {
            let by_ours = self.of(after).filter(|one| one.ours).count();
            let all = self.of(after).count();
            format!("{all} take-overs after a {name}, {by_ours} of them by ours")
        });
        format!("{} terms; {}", self.terms, ends.join("; "))
    }

    fn check(&self) -> Result<()> {
        ensure!(
            self.overlaps.is_empty(),
            "two of ours believed at once: {:?}",
            self.overlaps
        );
        ensure!(
            self.after_waking <= AWAKE,
            "work went on for {:?} after it woke up",
            self.after_waking
        );
        for (name, after, limit) in ENDS {
            let count = self.of(after).count();
            ensure!(
                count >= ENOUGH || after == LastTermEnd::ReleaseOfClientGo,
                "no more than {count} take-overs after a {name}"
            );
            if let Some(late) = self.longest(after).filter(|one| one.took > limit) {
                let TakeOver {
                    from, took, next, ..
                } = late;
                bail!("{next} led {took:?} after a {name} at {from:?}, {limit:?} are allowed");
            }
        }
        Ok(())
    }
}
