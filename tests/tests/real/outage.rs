//! The API server is restarted, and it is gone for 16, 30 and 60 s, and 10 min: no lease that can still be kept is taken over, no process
//! believes for longer than its last renewal allows, and afterwards the former leader leads on (R20), of one lease and of two
//! hundred.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterMode, EntryContent, EventKind, HistoryEntry, JournalMark, StartedCandidate, Suite,
    TestProcess, Testbed, between, events, eventually, now, revisions, warm_up, work_intervals,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::electors::two_of_client_go;
use crate::groups::{holders, led_by_others};
use crate::{GATE_OFF, LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let modes = &[
        ClusterMode::GateOn,
        ClusterMode::GateOff,
        ClusterMode::Embedded,
    ];
    let mut own = suite.own(OURS, modes).every_change_on(GATE_OFF);
    own.add("api_server_is_briefly_gone", 120, briefly);
    let mut own = suite.own(OURS, modes).every_change_on(&[]);
    own.add("api_server_is_gone_for_long", 160, for_long);
    let mut own = suite.own(OURS, GATE_OFF).every_change_on(&[]);
    for (name, mode) in [
        ("former_leaders_lead_after_a_minute", "elected"),
        ("former_leaders_lead_without_an_elector", "auto"),
    ] {
        own.add(name, 100, move |testbed| async move {
            of_many(&testbed, mode, Duration::from_secs(60)).await
        });
    }
    let ten_minutes = "former_leaders_lead_after_ten_minutes";
    own.add_long(ten_minutes, 640, |testbed| async move {
        of_many(&testbed, "elected", Duration::from_secs(600)).await
    });
}

/// H: how long our candidates believe after they sent their last renewal.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// The tolerance for the end of a belief: the work is a process that has to be ended.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Terms that outlive a start of the API server on a machine that is busy with all the other scenarios: 10 s and more.
const LONG_TERMS: [&str; 3] = [
    "--lease-duration=30s",
    "--renew-deadline=24s",
    "--retry-period=2s",
];

/// The lease duration of these terms.
const LONG_LEASE: Duration = Duration::from_secs(30);

/// The time after the last renewal by which an outage has to end for every leader of such a term to outlive it: candidates
/// try again every 2 s at most.
const OUTLIVED: Duration = Duration::from_secs(22);

/// By how much an outage may be shorter than it was meant to be, since it is not known how long a start takes.
const NEARLY: Duration = Duration::from_secs(1);

/// The number of parts of a group.
const PARTS: usize = 200;

/// The time after the API server's return within which a former leader leads again, where no other process came between.
const LEADS_AGAIN: Duration = Duration::from_secs(2);

/// The candidate of ours that leads whenever it can.
const BEST: &str = "leader";

/// An API server may take longer to start than the last time.
const ATTEMPTS: usize = 4;

/// An outage.
struct Outage {
    /// Just before the API server was ended.
    begun: JournalMark,
    /// When it had just been ended.
    gone: Timestamp,
    /// When it was started again; a moment later it answers.
    started: Timestamp,
    /// When it was ready.
    back: Timestamp,
}

/// Restarted, and gone until 16 s after the last renewal: no change of leader, and no end of a term.
async fn briefly(testbed: Arc<Testbed>) -> Result<()> {
    let _processes = enter(&testbed, &LONG_TERMS).await?;
    // The time of the last start, which the restart shows.
    let mut starting = Duration::MAX;
    for (name, length) in [
        ("restarted", Duration::ZERO),
        ("gone for", Duration::from_secs(16)),
    ] {
        let mut outlived = false;
        for _ in 0..ATTEMPTS {
            leads_on(&testbed, Some(BEST), PROMPTLY).await?;
            testbed.stays(BEST, 1).await?;
            let renewed = testbed.lease()?.spec.renew_time.context("no renewal")?;
            let down = length.saturating_sub(between(renewed, now()));
            let down = down.saturating_sub(starting);
            let outage = outage(&testbed, down, async { Ok(()) }).await?;
            let gone = between(outage.renewed(&testbed)?, outage.back);
            starting = between(outage.started, outage.back);
            testbed.figure(name, between(outage.gone, outage.back));
            let kept = testbed.stays(BEST, 3).await;
            let kept = kept.and_then(|()| outage.changed_nothing(&testbed));
            if gone <= OUTLIVED {
                kept?;
            } else if kept.is_err() {
                // Too long to be held against any candidate.
                leads_on(&testbed, None, LONG_LEASE + PROMPTLY).await?;
                continue;
            }
            outlived = gone + NEARLY >= length;
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
    let (mut elector, ours) = enter(&testbed, &[]).await?;
    let theirs = two_of_client_go(&testbed).await?;
    testbed.stays(BEST, 1).await?;
    let long = outage(&testbed, Duration::from_secs(30), async { Ok(()) }).await?;
    long.ended_the_term(&testbed)?;
    long.is_over(&testbed, &ours, &theirs).await?;

    leads_on(&testbed, Some(BEST), PROMPTLY).await?;
    testbed.stays(BEST, 1).await?;
    let (site, name) = (testbed.site(), "second-elector");
    let account = site.elector_account(name).await?;
    let replace = async {
        elector.kill()?;
        let flags = site.mode().elector_flags().iter().copied();
        elector = site.elector_under(account.as_ref(), name, flags)?;
        Ok(())
    };
    let longer = outage(&testbed, Duration::from_secs(60), replace).await?;
    longer.ended_the_term(&testbed)?;
    longer.is_over(&testbed, &ours, &theirs).await?;
    leads_on(&testbed, Some(BEST), PROMPTLY).await?;
    testbed.stays(BEST, 2).await
}

/// Gone under a group of two hundred parts in two processes, beside an elector where they accept what it grants.
async fn of_many(testbed: &Testbed, mode: &str, down: Duration) -> Result<()> {
    let _elector = match mode {
        "elected" => Some(testbed.site().start_elector("elector").await?),
        _ => None,
    };
    warm_up(testbed.site()).await?;
    let parts: Vec<String> = (0..PARTS).map(|part| format!("p{part:03}")).collect();
    let leases: Vec<String> = parts
        .iter()
        .map(|part| format!("{}-{part}", testbed.lease_name()))
        .collect();
    testbed.admit_group(&leases).await?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let member = |name| {
        testbed
            .candidate(name)
            .parts(&parts)
            .flag(&format!("--mode={mode}"))
            .start()
    };
    let _members = [member("one")?, member("other")?];
    let before = led_by_others(testbed, PARTS, "nobody", LONG_LEASE * 2).await?;
    let outage = outage(testbed, down, async { Ok(()) }).await?;
    let led_again = async || {
        let after = holders(testbed).await?;
        let same = before.iter().filter(|(part, (holder, term))| {
            let next = after.get(*part);
            next.is_some_and(|(next, newer)| next == holder && newer > term)
        });
        let same = same.count();
        ensure!(same * 20 >= PARTS * 19, "{same} of {PARTS} parts");
        Ok(same)
    };
    let same = eventually(LEADS_AGAIN, led_again).await?;
    let [ready, led] = [outage.back, now()].map(|at| between(outage.started, at));
    testbed.figure("the API server is ready", ready);
    testbed.figure("the former leaders lead again", led);
    testbed.amount("led by them", format!("{same} of {PARTS} parts"));
    Ok(())
}

/// An elector for the whole cluster, and two candidates, once the first one leads.
async fn enter(testbed: &Testbed, timing: &[&str]) -> Result<(TestProcess, [StartedCandidate; 2])> {
    let elector = testbed.site().start_elector("elector").await?;
    warm_up(testbed.site()).await?;
    // The acts of electors after an outage are seen only where candidates take nothing by themselves.
    let candidate = |name, version| {
        let candidate = testbed.candidate(name).version(version);
        let candidate = candidate.flag("--mode=elected");
        timing
            .iter()
            .fold(candidate, |it, flag| it.flag(flag))
            .start()
    };
    let leader = candidate(BEST, "1.1.0")?;
    // An elector grants nothing before it has been there for as long as the lease lasts.
    leader.leads(LONG_LEASE + PROMPTLY).await?;
    let standby = candidate("standby", "1.2.0")?;
    standby.begins().await?;
    Ok((elector, [leader, standby]))
}

/// Takes the API server away, and starts it again after this time; `meanwhile` is done in the middle of it.
async fn outage(
    testbed: &Testbed,
    down: Duration,
    meanwhile: impl Future<Output = Result<()>>,
) -> Result<Outage> {
    let site = testbed.site();
    let begun = testbed.note("end the API server");
    site.stop().await?;
    let (start, gone) = (Instant::now(), now());
    // This is the outage, not a wait for anything.
    sleep(down / 2).await;
    meanwhile.await?;
    sleep_until(start + down).await;
    let started = testbed.note("start the API server").at;
    site.start_again().await?;
    let back = testbed.note("the API server is ready").at;
    Ok(Outage {
        begun,
        gone,
        started,
        back,
    })
}

/// Waits until a process believes that it leads, that one if it is named.
async fn leads_on(testbed: &Testbed, name: Option<&str>, patience: Duration) -> Result<()> {
    let leads = |entries: &[HistoryEntry]| {
        let intervals = work_intervals(entries);
        let mut lasting = intervals.iter().filter(|interval| interval.to.is_none());
        let is_it = |found: &str| name.is_none_or(|name| name == found);
        lasting.any(|interval| is_it(&interval.name)).then_some(())
    };
    let what = format!("{} leads again", name.unwrap_or("one"));
    testbed.journal().until(&what, patience, leads).await
}

// === impl Outage ===

impl Outage {
    /// Checks that no process began or ended to lead since.
    fn changed_nothing(&self, testbed: &Testbed) -> Result<()> {
        testbed.journal().read(|entries| {
            let mut since = self.begun.since(entries).iter();
            let change = since.find_map(|entry| match &entry.content {
                EntryContent::Event(event) => Some(event.clone()),
                _ => None,
            });
            ensure!(change.is_none(), "{change:?}");
            Ok(())
        })
    }

    /// The time of the last renewal before it.
    fn renewed(&self, testbed: &Testbed) -> Result<Timestamp> {
        testbed.journal().read(|entries| {
            let newest = revisions(self.begun.split(entries).0, testbed.lease_name()).next_back();
            let renewed = newest.and_then(|(lease, _)| lease.spec.renew_time);
            renewed.context("the lease was never renewed")
        })
    }

    /// Checks that the leader of the time when it began stopped when its last renewal had been sent for as long as that
    /// allows, neither sooner nor later.
    fn ended_the_term(&self, testbed: &Testbed) -> Result<()> {
        let renewed = self.renewed(testbed)?;
        let stopped = testbed.journal().read(|entries| {
            let mut stops = events(self.begun.since(entries), EventKind::WorkStopped);
            let stopped = stops.find(|(event, _)| event.name == BEST);
            stopped.map(|(_, at)| at)
        });
        let stopped = stopped.with_context(|| format!("{BEST} worked on"))?;
        let led_on = between(renewed, stopped);
        testbed.figure("worked on after its last renewal", led_on);
        let allowed = RENEW_DEADLINE..=RENEW_DEADLINE + TOLERANCE;
        ensure!(
            allowed.contains(&led_on),
            "{BEST} worked on for {led_on:?} after its last renewal"
        );
        Ok(())
    }

    /// Waits until the former leader of ours leads on by itself, and one of client-go's.
    async fn is_over(
        &self,
        testbed: &Testbed,
        ours: &[StartedCandidate],
        theirs: &[StartedCandidate],
    ) -> Result<()> {
        // An elector that knows nothing grants no sooner than after a whole lease (R4).
        self.leads_again(testbed, &ours[..1], LEASE_DURATION / 2)
            .await?;
        if !theirs.is_empty() {
            // It is granted the lease as soon, and polls for it; if it sleeps through the grant, it gets another.
            let limit = LEASE_DURATION * 3;
            self.leads_again(testbed, theirs, limit).await?;
        }
        Ok(())
    }

    async fn leads_again(
        &self,
        testbed: &Testbed,
        candidates: &[StartedCandidate],
        limit: Duration,
    ) -> Result<()> {
        let names: Vec<&str> = candidates.iter().map(StartedCandidate::name).collect();
        let leads = |entries: &[HistoryEntry]| {
            let mut leading = events(self.begun.since(entries), EventKind::Leading);
            let led = leading.find(|(event, _)| names.contains(&event.name.as_str()));
            led.map(|(_, at)| at)
        };
        let what = format!("one of {names:?} leads again");
        let led = testbed.journal().until(&what, limit, leads).await?;
        ensure!(
            led >= self.started,
            "one of {names:?} began to lead without an API server"
        );
        let figure = format!("{} or another led again", names[0]);
        testbed.figure(&figure, between(self.back, led));
        Ok(())
    }
}
