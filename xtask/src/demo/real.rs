//! `cargo xtask demo --real`: a real cluster, the elector and its candidates as processes, and the story they play.
//!
//! Nothing is staged: the lines told are what the elector logs and what the candidates print with `--events`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cluster::{Options, TestCluster};

use super::cast::{Act, Cast, Scene};
use super::tell::Teller;

/// Names, and the emulation versions that decide between them: the oldest leads.
const CANDIDATES: [(&str, &str); 3] = [("green", "1.33.0"), ("blue", "1.32.0"), ("red", "1.34.0")];
/// Arrives late and is better than all of them.
const LATECOMER: (&str, &str) = ("violet", "1.31.0");

/// The leases of the demo are short, so that the crash does not bore: 6 s instead of 15 s.
const LEASE_SECONDS: u64 = 6;

/// How long each scene may take before something is wrong.
const SCENE: Duration = Duration::from_secs(30);

/// Plays the story; `Ok` only if it went as it should.
///
/// # Errors
/// When the cluster cannot be started, or a scene does not come about in time.
pub(super) fn run(elector: &Path, options: &Options) -> Result<()> {
    eprintln!("starting etcd and kube-apiserver (built on the first run, which takes minutes)");
    let cluster = TestCluster::start(options)?;
    let outcome = play(elector, &cluster);
    let stopped = cluster.stop();
    outcome.and(stopped)
}

fn play(elector: &Path, cluster: &TestCluster) -> Result<()> {
    let kubeconfig = cluster.kubeconfig();
    let mut tell = Teller::new();
    tell.say(format_args!(
        "kube-apiserver {} is up at {}",
        cluster.release(),
        cluster.url()
    ));
    tell.aside(format_args!(
        "look on with: kubectl --kubeconfig {} get leases -w",
        kubeconfig.display()
    ));
    let mut cast = Cast::new(elector, &kubeconfig);

    // The store was empty a second ago and is ours alone, so an absent Lease proves that nobody leads.
    cast.start_elector(&["--absent-lease-grace=0s"])?;
    tell.say(format_args!("the elector is up"));
    for (name, version) in CANDIDATES {
        cast.start_candidate(name, version, LEASE_SECONDS)?;
        tell.say(format_args!(
            "{name} registers for lease default/demo, version {version}"
        ));
    }

    let leader = settle(&mut cast, &mut tell, "blue")?;
    cast.rest(Duration::from_secs(2));
    let killed_at = Instant::now();
    cast.kill(&leader)?;
    tell.say(format_args!(
        "{leader} is killed (SIGKILL); its lease of {LEASE_SECONDS} s has to run out"
    ));

    let next = await_leader(&mut cast, &mut tell, |name| name != leader)?;
    tell.aside(format_args!(
        "{:.1} s after the kill, and never two leaders at once",
        next.seen.duration_since(killed_at).as_secs_f64()
    ));
    cast.rest(Duration::from_secs(2));

    let (name, version) = LATECOMER;
    cast.start_candidate(name, version, LEASE_SECONDS)?;
    tell.say(format_args!(
        "{name} arrives with a better version, {version}"
    ));
    let stopped = cast
        .wait_for(SCENE, |scene| {
            scene.name == next.name && scene.act == Act::WorkStopped
        })
        .with_context(|| format!("{} did not make room", next.name))?;
    tell.say(format_args!("{} stops its work and hands over", next.name));
    let leading = await_leader(&mut cast, &mut tell, |leader| leader == name)?;
    let gap = leading.time_micros - stopped.time_micros;
    tell.aside(format_args!("hand-over in {:.1} ms", gap as f64 / 1000.0));
    if gap < 0 {
        bail!("two led at once for {} µs", -gap);
    }
    tell.say(format_args!("that is all; cleaning up"));
    cast.leave()
}

/// Waits until the best of the first three leads, whoever came first.
fn settle(cast: &mut Cast, tell: &mut Teller, best: &str) -> Result<String> {
    loop {
        let leader = await_leader(cast, tell, |_| true)?;
        if leader.name == best {
            return Ok(leader.name);
        }
    }
}

fn await_leader(
    cast: &mut Cast,
    tell: &mut Teller,
    expected: impl Fn(&str) -> bool,
) -> Result<Scene> {
    let leading = cast
        .wait_for(SCENE, |scene| {
            scene.act == Act::Leading && expected(&scene.name)
        })
        .context("nobody came to lead")?;
    tell.say(format_args!(
        "{} leads, term {}",
        leading.name, leading.term
    ));
    if let Some(why) = cast.why(&leading.name, leading.term) {
        tell.aside(format_args!("why: {why}"));
    }
    Ok(leading)
}
