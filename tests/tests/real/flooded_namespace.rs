//! The effect on the leases of one namespace of another one that is filled and changed without end, and its cost (L7;
//! `docs/bounds.md`).

mod flood;
mod neighbours;
pub(crate) mod scraped;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{Suite, Testbed, warm_up};
use tokio::time::{Instant, sleep};

use self::flood::{Flood, FloodSize};
use self::neighbours::Neighbours;
use self::scraped::ScrapedElector;
use crate::{OURS, PROMPTLY, WITHOUT_GATE};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, WITHOUT_GATE).alone();
    own.add_long("a_noisy_namespace_disturbs_no_other", 240, noisy);
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
    let elector = ScrapedElector::start(&testbed, "elector").await?;
    warm_up(site).await?;
    let mut neighbours = Neighbours::start(&testbed).await?;
    let quiet = neighbours.measure("1.8.0").await?;

    let namespace = format!("{}-noisy", testbed.namespace());
    let _other = testbed.open_beside(&namespace).await?;
    let flood = Flood::new(site, &namespace);
    let before = elector.cost().await?;
    let start = Instant::now();
    testbed.note("the flood begins");
    let refused = flood.pour(FLOOD).await?;
    let poured = start.elapsed();
    testbed.figure("the flood is written within", poured);
    let of = FLOOD.illegal;
    testbed.amount(
        "names of leases that the server refuses",
        format!("{refused} of {of}"),
    );
    let restless = flood.change().await?;
    let changing = Instant::now();
    let noisy = neighbours.measure("1.7.0").await?;
    let changes = restless.changes() as f64 / changing.elapsed().as_secs_f64();
    testbed.amount(
        "changes of versions meanwhile",
        format!("{changes:.0} a second"),
    );
    let seconds = start.elapsed().as_secs_f64();
    let cost = elector.cost().await?;

    // An elector that begins has all of it to read at once, which costs no more than to write it, on a slow machine too.
    drop(elector);
    let again = ScrapedElector::start(&testbed, "again").await?;
    let start = Instant::now();
    again.ready(poured.max(PROMPTLY * 6)).await?;
    let ready = start.elapsed();
    sleep(PROMPTLY).await;
    let began = again.cost().await?;
    testbed.figure("an elector that begins then is ready within", ready);

    let most_writes = WRITES + WRITES_A_SECOND * seconds;
    let most_lines = LINES + LINES_A_MINUTE * seconds / 60.0;
    let (fail_over, most_kib) = (quiet.fail_over + LATER, MOST_KIB as f64);
    let bounds = [
        (
            "longest fail-over",
            noisy.fail_over.as_secs_f64(),
            fail_over.as_secs_f64(),
            SECONDS,
        ),
        (
            "longest hand-over",
            noisy.hand_over.as_secs_f64(),
            HAND_OVER.as_secs_f64(),
            SECONDS,
        ),
        (
            "writes of the elector",
            cost.writes - before.writes,
            most_writes,
            COUNT,
        ),
        (
            "lines of the elector",
            cost.lines - before.lines,
            most_lines,
            COUNT,
        ),
        ("resident at most", cost.peak_kib as f64, most_kib, MIB),
        (
            "resident at most of one that begins then",
            began.peak_kib as f64,
            most_kib,
            MIB,
        ),
    ];
    testbed.figure("longest fail-over, undisturbed", quiet.fail_over);
    testbed.figure("longest hand-over, undisturbed", quiet.hand_over);
    for (what, measured, most, text) in bounds {
        testbed.amount(what, format!("{} (bound: {})", text(measured), text(most)));
    }
    let broken: Vec<_> = bounds.iter().filter(|bound| bound.1 > bound.2).collect();
    ensure!(broken.is_empty(), "in {seconds:.0} s: {broken:?}");
    Ok(())
}

/// The units of the bounds.
const SECONDS: fn(f64) -> String = |time| format!("{time:.3} s");
const COUNT: fn(f64) -> String = |count| format!("{count:.0}");
const MIB: fn(f64) -> String = |kib| format!("{:.0} MiB", (kib / 1024.0).floor());
