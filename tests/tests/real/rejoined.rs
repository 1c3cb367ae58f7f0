//! Leaders are killed and started again a second later: with an instance lock they lead on, although their lease has not
//! expired and another candidate waits for it (R21).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{Suite, Testbed, between};
use tokio::time::{Instant, sleep_until};

use crate::{GATE_OFF, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("killed_leaders_rejoin", 40, once);
    shared.add_long("leaders_rejoin_after_a_kill_each_second", 110, often);
}

/// The pause of the supervisor that starts a process again.
const PAUSE: Duration = Duration::from_secs(1);

async fn once(testbed: Arc<Testbed>) -> Result<()> {
    rejoin(&testbed, 1).await
}

async fn often(testbed: Arc<Testbed>) -> Result<()> {
    rejoin(&testbed, 20).await
}

/// This number of kills in each mode, one mode after the other on one lease. Each life has a name of its own.
async fn rejoin(testbed: &Testbed, kills: usize) -> Result<()> {
    for mode in ["elected", "auto", "plain"] {
        let candidate = |name: &str| {
            let candidate = testbed.candidate(&format!("{mode}-{name}"));
            match mode {
                "plain" => candidate.plain(),
                mode => candidate.flag(&format!("--mode={mode}")),
            }
        };
        let lock = testbed.folder().join(format!("{mode}.lock"));
        let lock = format!("--instance-lock={}", lock.display());
        let life = |number: usize| candidate(&format!("life-{number}")).flag(&lock).start();
        let mut leader = life(0)?;
        leader.leads(2 * PROMPTLY).await?;
        let mut standby = candidate("standby").start()?;
        standby.begins().await?;
        let mut took = Vec::new();
        for number in 1..=kills {
            let killed = leader.kill()?;
            sleep_until(Instant::now() + PAUSE).await;
            leader = life(number)?;
            let led = leader.leads_since(killed, PROMPTLY).await?;
            took.push(between(killed.at, led));
        }
        took.sort_unstable();
        // The lease would last for longer.
        ensure!(took[kills - 1] <= PROMPTLY, "{mode}: {took:?}");
        testbed.figure(&format!("{mode}: median"), took[kills / 2]);
        testbed.figure(&format!("{mode}: the longest"), took[kills - 1]);
        for last in [&mut standby, &mut leader] {
            last.terminate()?;
            last.ends_well().await?;
        }
    }
    Ok(())
}
