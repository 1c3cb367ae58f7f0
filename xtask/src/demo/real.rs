//! `cargo xtask demo --real`: a real cluster, the elector and its candidates as processes, and what happens to them.
//!
//! Nothing is made up: the lines are what the elector logs and what the candidates print with `--events`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cluster::{Options, TestCluster};

use super::narration::DemoNarration;
use super::participants::{DemoEvent, DemoEventKind, DemoParticipants};

/// Names, and the emulation versions that decide between them: the oldest leads.
const CANDIDATES: [(&str, &str); 3] = [("green", "1.33.0"), ("blue", "1.32.0"), ("red", "1.34.0")];
/// Arrives late and is better than all of them.
const LATECOMER: (&str, &str) = ("violet", "1.31.0");

/// The leases of the demo are short, so that the crash does not bore: 6 s instead of 15 s.
const LEASE_SECONDS: u64 = 6;

/// The time that each step may take before something is wrong.
const EVENT_DEADLINE: Duration = Duration::from_secs(30);

/// Runs the demo; `Ok` only if it went as it should.
///
/// # Errors
/// When the cluster cannot be started, or what should happen does not happen in time.
pub(super) fn run(elector: &Path, options: &Options) -> Result<()> {
    eprintln!("starting etcd and kube-apiserver (built on the first run, which takes minutes)");
    let cluster = TestCluster::start(options)?;
    let outcome = run_demo(elector, &cluster);
    let stopped = cluster.stop();
    outcome.and(stopped)
}

fn run_demo(elector: &Path, cluster: &TestCluster) -> Result<()> {
    let kubeconfig = cluster.kubeconfig();
    let mut narration = DemoNarration::new();
    narration.say(format_args!(
        "kube-apiserver {} is up at {}",
        cluster.release(),
        cluster.url()
    ));
    narration.add(format_args!(
        "look on with: kubectl --kubeconfig {} get leases -w",
        kubeconfig.display()
    ));
    let mut participants = DemoParticipants::new(elector, &kubeconfig);

    // The store was empty a second ago and is ours alone, so an absent Lease proves that there is no leader.
    participants.start_elector(&["--absent-lease-grace=0s"])?;
    narration.say(format_args!("the elector is up"));
    for (name, version) in CANDIDATES {
        participants.start_candidate(name, version, LEASE_SECONDS)?;
        narration.say(format_args!(
            "{name} registers for lease default/demo, version {version}"
        ));
    }

    let leader = settle(&mut participants, &mut narration, "blue")?;
    participants.pause(Duration::from_secs(2));
    let killed_at = Instant::now();
    participants.kill(&leader)?;
    narration.say(format_args!(
        "{leader} is killed (SIGKILL); its lease of {LEASE_SECONDS} s has to run out"
    ));

    let next = await_leader(&mut participants, &mut narration, |name| name != leader)?;
    narration.add(format_args!(
        "{:.1} s after the kill, and never two leaders at once",
        next.seen.duration_since(killed_at).as_secs_f64()
    ));
    participants.pause(Duration::from_secs(2));

    let (name, version) = LATECOMER;
    participants.start_candidate(name, version, LEASE_SECONDS)?;
    narration.say(format_args!(
        "{name} arrives with a better version, {version}"
    ));
    let stopped = participants
        .wait_for(EVENT_DEADLINE, |event| {
            event.name == next.name && event.kind == DemoEventKind::WorkStopped
        })
        .with_context(|| format!("{} did not make room", next.name))?;
    narration.say(format_args!("{} stops its work and hands over", next.name));
    let leading = await_leader(&mut participants, &mut narration, |leader| leader == name)?;
    let gap = leading.time_micros - stopped.time_micros;
    narration.add(format_args!("hand-over in {:.1} ms", gap as f64 / 1000.0));
    if gap < 0 {
        bail!("two led at once for {} µs", -gap);
    }
    narration.say(format_args!("that is all; cleaning up"));
    participants.end()
}

/// Waits until the best of the first three leads, even if another one led first.
fn settle(
    participants: &mut DemoParticipants,
    narration: &mut DemoNarration,
    best: &str,
) -> Result<String> {
    loop {
        let leader = await_leader(participants, narration, |_| true)?;
        if leader.name == best {
            return Ok(leader.name);
        }
    }
}

fn await_leader(
    participants: &mut DemoParticipants,
    narration: &mut DemoNarration,
    expected: impl Fn(&str) -> bool,
) -> Result<DemoEvent> {
    let leading = participants
        .wait_for(EVENT_DEADLINE, |event| {
            event.kind == DemoEventKind::Leading && expected(&event.name)
        })
        .context("no candidate came to lead")?;
    narration.say(format_args!(
        "{} leads, term {}",
        leading.name, leading.term
    ));
    if let Some(why) = participants.why(&leading.name, leading.term) {
        narration.add(format_args!("why: {why}"));
    }
    Ok(leading)
}
