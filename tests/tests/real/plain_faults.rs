//! Ten minutes of faults for plain candidates, two of ours and one of client-go's, which share a lease.

mod foreign;
mod plan;

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    Implementation, StartedCandidate, Suite, Testbed, between, now, work_intervals,
};
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use self::foreign::ForeignWriter;
use self::plan::{Comeback, RunFault, Victim, plan};
use crate::{CLIENT_GO, GATE_OFF, PROMPTLY, SHORT_DEADLINE, SHORT_LEASE};

pub(crate) fn add(suite: &mut Suite) {
    suite.own(CLIENT_GO, GATE_OFF).add_long(
        "plain_candidates_through_many_faults",
        LASTS.as_secs() + 10,
        ten_minutes,
    );
}

/// The duration of the faults.
const LASTS: Duration = Duration::from_secs(600);

/// The fewest kills, terminations and stops that show anything in a run.
const ENOUGH: u32 = 5;

/// The time after a wake-up within which a process's word that its work goes on means only that it is just awake.
const AWAKE: Duration = Duration::from_millis(300);

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

/// From SIGSTOP to SIGCONT.
struct StoppedTime {
    name: String,
    from: Timestamp,
    to: Timestamp,
}

/// A run.
struct FaultRun {
    testbed: Arc<Testbed>,
    places: Vec<CandidateSlot>,
    /// The candidates of ours.
    ours: Vec<String>,
    stops: Vec<StoppedTime>,
    stranger: ForeignWriter,
    struck: [u32; 3],
}

async fn ten_minutes(testbed: Arc<Testbed>) -> Result<()> {
    let seed = match env::var(ELECTOR_SEED) {
        Ok(text) if !text.is_empty() => text.parse().context("the seed is a number")?,
        _ => rand::random_range(0..=u64::from(u32::MAX)),
    };
    let again = format!("seed {seed}, again with {ELECTOR_SEED}={seed}");
    println!("plain_candidates_through_many_faults: {again}");
    testbed.note(&again);
    let mut run = FaultRun::start(Arc::clone(&testbed)).await?;
    run.play(seed).await.with_context(|| again.clone())?;
    run.finish().await.context(again)
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
            stopped: false,
            next: None,
            processes: 0,
        });
        let mut run = Self {
            testbed,
            places: places.into(),
            ours: Vec::new(),
            stops: Vec::new(),
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
                    self.process(place)?.kill()?;
                    self.end(place, comeback);
                    self.struck[0] += 1;
                }
            }
            RunFault::Terminate(victim, comeback) => {
                if let Some(place) = self.struck_place(victim) {
                    self.process(place)?.ends().await?;
                    self.end(place, comeback);
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
        let place = &mut self.places[place];
        place.processes += 1;
        let name = match renamed {
            true => format!("{}-{}", place.name, place.processes),
            false => place.name.to_owned(),
        };
        let builder = self.testbed.candidate_of(place.implementation, &name);
        let builder = builder.plain().work(&[]).short();
        let builder = builder.flag_for(CLIENT_GO, "--rejoin");
        let builder = builder.flag_for(CLIENT_GO, "--release-on-cancel");
        place.process = Some(builder.start()?);
        if place.implementation == Implementation::Elector {
            self.ours.push(name);
        }
        Ok(())
    }

    fn end(&mut self, place: usize, comeback: Comeback) {
        let place = &mut self.places[place];
        place.process = None;
        let renamed = comeback.renamed;
        place.next = Some((Instant::now() + comeback.after, NextStep::Start { renamed }));
    }

    fn stop(&mut self, place: usize, lasts: Duration) -> Result<()> {
        let process = self.process(place)?;
        let from = now();
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
        let to = Timestamp::MAX;
        self.stops.push(StoppedTime { name, from, to });
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
                let woken = self.testbed.note(&format!("wake {name}"));
                self.places[place].stopped = false;
                let stop = self.stops.iter_mut().rfind(|stop| stop.name == name);
                stop.context("a stop without its beginning")?.to = woken.at;
                Ok(())
            }
        }
    }

    /// Waits until there is a leader for good, and judges what was seen.
    async fn finish(mut self) -> Result<()> {
        // The leader of now goes on.
        let end = now();
        sleep(SHORT_LEASE * 2).await;
        let (terms, beside) = self.judge(end)?;
        self.stranger.kept().await?;
        for place in 0..self.places.len() {
            self.process(place)?.kill()?;
        }
        let [kills, terminations, stops] = self.struck;
        let writes = self.stranger.writes();
        println!(
            "{terms} terms, {kills} kills, {terminations} terminations, {stops} stops, {writes} writes of a stranger"
        );
        self.testbed.figure("client-go beside one of ours", beside);
        let holds = self.struck.iter().all(|count| *count >= ENOUGH);
        ensure!(holds, "too few faults to show anything");
        Ok(())
    }

    /// Checks that no two of ours believed at once until `end`; the number of terms, and for how long client-go's believed
    /// beside one of ours. A process that is stopped does nothing: its words when it wakes up, and finds its lease lost,
    /// come late.
    fn judge(&self, end: Timestamp) -> Result<(usize, Duration)> {
        let mut entries = self.testbed.journal().read(<[_]>::to_vec);
        // Events from before a kill may be read later.
        entries.sort_by_key(|entry| entry.at);
        let mut intervals = work_intervals(&entries);
        for interval in &mut intervals {
            let said = interval.to.unwrap_or(end);
            let stop = self.stops.iter().find(|stop| {
                stop.name == interval.name
                    && (interval.from..said).contains(&stop.from)
                    && between(stop.to, said) <= AWAKE
            });
            interval.to = Some(stop.map_or(said, |stop| stop.from));
        }
        let mut beside = Duration::ZERO;
        for (index, early) in intervals.iter().enumerate() {
            for late in &intervals[index + 1..] {
                let both = between(late.from, early.to.min(late.to).unwrap_or(end));
                let ours = [early, late].map(|each| self.ours.contains(&each.name));
                ensure!(
                    both.is_zero() || ours != [true, true],
                    "two of ours believed at once: {early:?} and {late:?}"
                );
                beside += both;
            }
        }
        Ok((intervals.len(), beside))
    }
}
