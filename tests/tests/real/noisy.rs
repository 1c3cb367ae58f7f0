//! The effect on the leases of one namespace of another one that is filled and changed without end, and its cost (L7;
//! `docs/bounds.md`).

mod flood;
mod neighbours;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{ClusterChoice, ClusterMode, RequiredFlag, Suite, Testbed, warm_up};
use tokio::time::{Instant, sleep};

use self::flood::{Flood, FloodSize};
use self::neighbours::{Neighbours, leases};
use crate::hosted::Host;
use crate::scraped::ScrapedElector;
use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add_with_flag(
        RequiredFlag::Long,
        "a_noisy_namespace_disturbs_no_other",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff, ClusterMode::Custom],
        Duration::from_secs(240),
        |testbed| Box::pin(noisy(testbed)),
    );
}

const FLOOD: FloodSize = FloodSize {
    large: 2_000,
    silent: 10_000,
    undead: 100,
    illegal: 50,
};

/// The memory that an elector may have, in KiB: a part of the limit of `manifests/base`.
const MOST_KIB: u64 = 128 << 10;
/// The most that the noise may add to a fail-over.
const LATER: Duration = Duration::from_secs(1);
/// The longest hand-over.
const HAND_OVER: Duration = Duration::from_millis(200);
/// The most writes for the noisy namespace: its budget, and those of this test's own leases.
const WRITES: f64 = 20_000.0 + 1_000.0;
const WRITES_A_SECOND: f64 = 200.0;
/// The most lines that it may have in the log, and in each minute.
const LINES: f64 = 1_000.0 + 1_000.0;
const LINES_A_MINUTE: f64 = 60.0 + 21.0 * 5.0;

async fn noisy(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let flags = site.mode().elector_flags();
    let elector = ScrapedElector::start_with(&testbed, "elector", flags).await?;
    warm_up(site).await?;
    testbed.admit(&leases().collect::<Vec<_>>()).await?;
    let host = Host::connect(&testbed).await?;
    let mut neighbours = Neighbours::start(&testbed, &host).await?;
    let quiet = Disturbance::measure(&mut neighbours, "1.8.0").await?;

    let namespace = format!("{}-noisy", testbed.namespace());
    let _other = Testbed::open(Arc::clone(site), &namespace, testbed.implementation()).await?;
    let flood = Flood::new(site, &namespace);
    let before = ElectorCost::of(&elector).await?;
    let start = Instant::now();
    testbed.note("the flood begins");
    let refused = flood.pour(FLOOD).await?;
    testbed.figure("the flood is written within", start.elapsed());
    let of = FLOOD.illegal;
    testbed.amount(
        "names of leases that the server refuses",
        format!("{refused} of {of}"),
    );
    let restless = flood.change().await?;
    let changing = Instant::now();
    let noisy = Disturbance::measure(&mut neighbours, "1.7.0").await?;
    let changes = rate(restless.changes(), changing.elapsed());
    testbed.amount(
        "changes of versions meanwhile",
        format!("{changes:.0} a second"),
    );
    let seconds = start.elapsed().as_secs_f64();
    let cost = ElectorCost::of(&elector).await?;

    // An elector that begins has all of it to read at once.
    drop(elector);
    let again = ScrapedElector::start_with(&testbed, "again", flags).await?;
    let start = Instant::now();
    again.ready(PROMPTLY * 6).await?;
    let ready = start.elapsed();
    sleep(PROMPTLY).await;
    let began = ElectorCost::of(&again).await?;
    testbed.figure("an elector that begins then is ready within", ready);

    let mib = |kib: u64| format!("{} MiB", kib >> 10);
    let bounds = [
        Bound::time(
            "longest fail-over",
            noisy.fail_over,
            quiet.fail_over + LATER,
        ),
        Bound::time("longest hand-over", noisy.hand_over, HAND_OVER),
        Bound::count(
            "writes of the elector",
            cost.writes - before.writes,
            WRITES + WRITES_A_SECOND * seconds,
        ),
        Bound::count(
            "lines of the elector",
            cost.lines - before.lines,
            LINES + LINES_A_MINUTE * seconds / 60.0,
        ),
        Bound::new(
            "resident at most",
            cost.peak_kib < MOST_KIB,
            mib(cost.peak_kib),
            mib(MOST_KIB),
        ),
        Bound::new(
            "resident at most of one that begins then",
            began.peak_kib < MOST_KIB,
            mib(began.peak_kib),
            mib(MOST_KIB),
        ),
    ];
    testbed.figure("longest fail-over, undisturbed", quiet.fail_over);
    testbed.figure("longest hand-over, undisturbed", quiet.hand_over);
    for bound in &bounds {
        testbed.amount(
            bound.what,
            format!("{} (bound: {})", bound.measured, bound.most),
        );
    }
    let broken: Vec<_> = bounds.iter().filter(|bound| !bound.holds).collect();
    ensure!(broken.is_empty(), "in {seconds:.0} s: {broken:?}");
    Ok(())
}

/// A figure and what it may be at most.
#[derive(Debug)]
struct Bound {
    what: &'static str,
    holds: bool,
    measured: String,
    most: String,
}

// === impl Bound ===

impl Bound {
    const fn new(what: &'static str, holds: bool, measured: String, most: String) -> Self {
        Self {
            what,
            holds,
            measured,
            most,
        }
    }

    fn time(what: &'static str, measured: Duration, most: Duration) -> Self {
        let text = |time: Duration| format!("{:.3} s", time.as_secs_f64());
        Self::new(what, measured <= most, text(measured), text(most))
    }

    fn count(what: &'static str, measured: f64, most: f64) -> Self {
        let text = |count: f64| format!("{count:.0}");
        Self::new(what, measured <= most, text(measured), text(most))
    }
}

/// The cost of an elector so far.
struct ElectorCost {
    /// Requests that write.
    writes: f64,
    lines: f64,
    /// The most that it has had resident.
    peak_kib: u64,
}

// === impl ElectorCost ===

impl ElectorCost {
    async fn of(elector: &ScrapedElector) -> Result<Self> {
        let text = elector.figures.scrape().await?;
        let writes = text
            .lines()
            .filter(|line| line.starts_with("elector_writes_total{"));
        let writes = writes.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        let lines = elector.process.output()?.lines().count();
        let path = format!("/proc/{}/status", elector.process.id());
        let status = fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|value| value.trim().strip_suffix(" kB"));
        Ok(Self {
            writes: writes.sum(),
            lines: f64::from(u32::try_from(lines)?),
            peak_kib: peak
                .context("the kernel does not tell the peak")?
                .trim()
                .parse()?,
        })
    }
}

/// The longest of twenty fail-overs and of twenty hand-overs.
struct Disturbance {
    fail_over: Duration,
    hand_over: Duration,
}

// === impl Disturbance ===

impl Disturbance {
    /// Lets all leaders crash, and then hands over to candidates of a better version.
    async fn measure(neighbours: &mut Neighbours<'_>, better: &str) -> Result<Self> {
        let fail_over = longest(neighbours.fail_over().await?)?;
        let hand_over = longest(neighbours.hand_over(better).await?)?;
        Ok(Self {
            fail_over,
            hand_over,
        })
    }
}

fn longest(times: Vec<Duration>) -> Result<Duration> {
    times.into_iter().max().context("nothing was measured")
}

fn rate(count: usize, time: Duration) -> f64 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    f64::from(count) / time.as_secs_f64()
}
