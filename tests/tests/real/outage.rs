//! The API server is restarted, and it is gone for 8, 30 and 60 s: no lease that can still be kept is taken over, no process
//! believes for longer than its last renewal allows, and afterwards there is a leader again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, HistoryEntry, Implementation,
    StartedCandidate, Suite, TestProcess, Testbed, WorkInterval, between, now, warm_up,
    work_intervals,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        suite.add(
            name,
            ClusterChoice::Own,
            OURS,
            &[
                ClusterMode::GateOn,
                ClusterMode::GateOff,
                ClusterMode::Embedded,
            ],
            Duration::from_secs(seconds),
            run,
        );
    };
    add("api_server_is_briefly_gone", 70, |testbed| {
        Box::pin(briefly(testbed))
    });
    add("api_server_is_gone_for_long", 160, |testbed| {
        Box::pin(for_long(testbed))
    });
}

/// H: how long our candidates believe after they sent their last renewal.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// The tolerance for the end of a belief: the work is a process that has to be ended.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The longest outage that every leader outlives, if it begins right after a renewal: candidates try again every 2 s at
/// most.
const OUTLIVED: Duration = Duration::from_millis(8_500);

/// By how much an outage may be shorter than it was meant to be, since it is not known how long a start takes.
const NEARLY: Duration = Duration::from_secs(1);

/// The candidate of ours that leads whenever it can.
const BEST: &str = "leader";

/// A machine that is busy with all the other scenarios may take longer to start an API server.
const ATTEMPTS: usize = 4;

/// An outage.
struct Outage {
    /// When the API server had just been ended.
    gone: Timestamp,
    /// When it was started again; a moment later it answers.
    started: Timestamp,
    /// When it was ready.
    back: Timestamp,
    /// The length of the journal when it was ended.
    seen: usize,
}

/// The processes: an elector, two candidates the first of which leads, and perhaps two of client-go's for another
/// lease.
struct OutageProcesses {
    elector: TestProcess,
    ours: Vec<StartedCandidate>,
    theirs: Vec<StartedCandidate>,
}

/// Restarted, and gone for 8 s: no change of leader, and no end of a term.
async fn briefly(testbed: Arc<Testbed>) -> Result<()> {
    let _processes = OutageProcesses::enter(&testbed).await?;
    // The shortest time of a start, which the restart shows.
    let mut starting = Duration::MAX;
    for (name, length) in [
        ("restarted", Duration::ZERO),
        ("gone for", Duration::from_secs(8)),
    ] {
        let mut outlived = false;
        for _ in 0..ATTEMPTS {
            best_leads(&testbed).await?;
            testbed.stays(BEST, 1).await?;
            let down = length.saturating_sub(starting);
            let outage = outage(&testbed, down, async { Ok(()) }).await?;
            starting = starting.min(between(outage.started, outage.back));
            testbed.figure(name, outage.length());
            let kept = testbed.stays(BEST, 3).await;
            let kept = kept.and_then(|()| outage.changed_nothing(&testbed));
            if outage.length() <= OUTLIVED {
                kept?;
            } else if kept.is_err() {
                // Too long to be held against any candidate.
                any_candidate_leads(&testbed, LEASE_DURATION + PROMPTLY).await?;
                continue;
            }
            outlived = outage.length() + NEARLY >= length;
            if outlived {
                break;
            }
        }
        ensure!(outlived, "no outage of {length:?} was short enough");
    }
    Ok(())
}

/// Gone for 30 s, and for 60 s in which the elector is replaced by one that knows nothing.
async fn for_long(testbed: Arc<Testbed>) -> Result<()> {
    let mut processes = OutageProcesses::enter(&testbed).await?;
    processes.joined_by_client_go(&testbed).await?;
    testbed.stays(BEST, 1).await?;
    let long = outage(&testbed, Duration::from_secs(30), async { Ok(()) }).await?;
    long.ended_the_term_of(BEST, &testbed)?;
    long.is_over(&testbed, &processes).await?;

    best_leads(&testbed).await?;
    testbed.stays(BEST, 1).await?;
    let elector = &mut processes.elector;
    let (site, name) = (testbed.site(), "second-elector");
    let account = site.elector_account(name).await?;
    let replace = async {
        elector.kill()?;
        let flags = site.mode().elector_flags().iter().copied();
        *elector = site.elector_under(account.as_ref(), name, flags)?;
        Ok(())
    };
    let longer = outage(&testbed, Duration::from_secs(60), replace).await?;
    longer.ended_the_term_of(BEST, &testbed)?;
    let led = longer.is_over(&testbed, &processes).await?;
    // It has seen the record for as long as that lasts before it grants (R4).
    let waited = between(longer.started, led);
    ensure!(
        waited >= LEASE_DURATION,
        "an elector that knew nothing granted after {waited:?}"
    );
    best_leads(&testbed).await?;
    testbed.stays(BEST, 2).await
}

/// Starts an elector for the whole cluster.
async fn elect(testbed: &Testbed, name: &str) -> Result<TestProcess> {
    let site = testbed.site();
    site.elector(name, site.mode().elector_flags().iter().copied())
        .await
}

/// Takes the API server away, and starts it again after so long; `meanwhile` is done in the middle of it.
async fn outage(
    testbed: &Testbed,
    down: Duration,
    meanwhile: impl Future<Output = Result<()>>,
) -> Result<Outage> {
    let site = testbed.site();
    testbed.note("end the API server");
    let seen = testbed.journal().len();
    site.stop().await?;
    let (start, gone) = (Instant::now(), now());
    // This is the outage, not a wait for anything.
    sleep(down / 2).await;
    meanwhile.await?;
    sleep_until(start + down).await;
    let started = testbed.note("start the API server");
    site.start_again().await?;
    let back = testbed.note("the API server is ready");
    Ok(Outage {
        gone,
        started,
        back,
        seen,
    })
}

/// Waits until a process believes that it leads.
async fn any_candidate_leads(testbed: &Testbed, patience: Duration) -> Result<()> {
    let leads = |entries: &[HistoryEntry]| {
        let lasting = work_intervals(entries)
            .iter()
            .any(|interval| interval.to.is_none());
        lasting.then_some(())
    };
    testbed
        .journal()
        .until("somebody leads", patience, leads)
        .await
}

/// Waits until the better one of ours leads, which may have to be made room for.
async fn best_leads(testbed: &Testbed) -> Result<()> {
    let leads = |entries: &[HistoryEntry]| {
        let lasting = |interval: &WorkInterval| interval.to.is_none() && interval.name == BEST;
        work_intervals(entries).iter().any(lasting).then_some(())
    };
    let what = format!("{BEST} leads again");
    testbed.journal().until(&what, PROMPTLY, leads).await
}

// === impl OutageProcesses ===

impl OutageProcesses {
    /// Waits until the first one leads.
    async fn enter(testbed: &Testbed) -> Result<Self> {
        let elector = elect(testbed, "elector").await?;
        warm_up(testbed.site()).await?;
        // The acts of electors after an outage are seen only where candidates take nothing by themselves.
        let candidate = |name, version| {
            let candidate = testbed.candidate(name).version(version);
            candidate.flag("--mode=elected").start()
        };
        let leader = candidate(BEST, "1.1.0")?;
        leader.leads(PROMPTLY).await?;
        let standby = candidate("standby", "1.2.0")?;
        standby.says(EventKind::Start, 0, PROMPTLY).await?;
        Ok(Self {
            elector,
            ours: vec![leader, standby],
            theirs: Vec::new(),
        })
    }

    /// Starts two of client-go's too, where there are any, and waits until one of them leads.
    async fn joined_by_client_go(&mut self, testbed: &Testbed) -> Result<()> {
        if testbed.site().programs().interop.is_none() {
            return Ok(());
        }
        testbed.admit(&["client-go"]).await?;
        for (name, version) in [("client-go-1", "1.1.0"), ("client-go-2", "1.2.0")] {
            let plan = testbed
                .candidate_of(Implementation::ClientGo, name)
                .lease("client-go");
            let candidate = plan.version(version).flag("--rejoin").start()?;
            if self.theirs.is_empty() {
                candidate.leads(PROMPTLY).await?;
            }
            self.theirs.push(candidate);
        }
        Ok(())
    }
}

// === impl Outage ===

impl Outage {
    fn length(&self) -> Duration {
        between(self.gone, self.back)
    }

    /// Checks that no process began or ended to lead since.
    fn changed_nothing(&self, testbed: &Testbed) -> Result<()> {
        testbed.journal().read(|entries| {
            let change = entries[self.seen..]
                .iter()
                .find_map(|entry| match &entry.content {
                    EntryContent::Event(event) => Some(event.clone()),
                    _ => None,
                });
            ensure!(change.is_none(), "{change:?}");
            Ok(())
        })
    }

    /// Checks that each leader of the time when it began stopped when its last renewal had been sent for as long as that allows,
    /// neither sooner nor later.
    fn ended_the_term_of(&self, name: &str, testbed: &Testbed) -> Result<()> {
        let (renewed, stopped) = testbed.journal().read(|entries| {
            let (before, since) = entries.split_at(self.seen);
            let renewed = before.iter().rev().find_map(|entry| match &entry.content {
                EntryContent::Lease(lease, revision) if lease == testbed.lease_name() => {
                    revision.spec.renew_time
                }
                _ => None,
            });
            let stopped = since.iter().find_map(|entry| match &entry.content {
                EntryContent::Event(event)
                    if event.name == name && event.kind == EventKind::WorkStopped =>
                {
                    Some(entry.at)
                }
                _ => None,
            });
            (renewed, stopped)
        });
        let renewed = renewed.context("the lease was never renewed")?;
        let stopped = stopped.with_context(|| format!("{name} worked on"))?;
        let led_on = between(renewed, stopped);
        testbed.figure("worked on after its last renewal", led_on);
        ensure!(
            led_on >= RENEW_DEADLINE && led_on <= RENEW_DEADLINE + TOLERANCE,
            "{name} worked on for {led_on:?} after its last renewal"
        );
        Ok(())
    }

    /// Waits until there is a leader again, of ours and of client-go's; since when one of ours leads.
    async fn is_over(&self, testbed: &Testbed, processes: &OutageProcesses) -> Result<Timestamp> {
        let mut first = None;
        for (whose, candidates, limit) in [
            ("led again", &processes.ours, LEASE_DURATION + PROMPTLY),
            // It is granted the lease as soon, and polls for it; if it sleeps through the grant, it gets another.
            ("client-go led again", &processes.theirs, LEASE_DURATION * 3),
        ] {
            if candidates.is_empty() {
                continue;
            }
            let names: Vec<&str> = candidates.iter().map(StartedCandidate::name).collect();
            let leading = |entry: &HistoryEntry| match &entry.content {
                EntryContent::Event(event) => {
                    event.kind == EventKind::Leading && names.contains(&event.name.as_str())
                }
                _ => false,
            };
            let leads = |entries: &[HistoryEntry]| {
                let mut since = entries[self.seen..].iter();
                since.find(|entry| leading(entry)).map(|entry| entry.at)
            };
            let what = format!("one of {names:?} leads again");
            let led = testbed.journal().until(&what, limit, leads).await?;
            ensure!(
                led >= self.started,
                "one of {names:?} began to lead without an API server"
            );
            testbed.figure(whose, between(self.back, led));
            first.get_or_insert(led);
        }
        first.context("nobody takes part")
    }
}
