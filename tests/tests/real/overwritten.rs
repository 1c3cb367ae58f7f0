//! A stranger writes on a lease that is led: names a holder, changes times and terms, blanks it, or strips it. After
//! each of these, one candidate leads again, as soon as the record that the stranger left allows.

mod stranger_writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::Lease;
use elector_protocol::Timestamp;
use elector_tests::rig::{
    EntryContent, EventKind, HistoryEntry, Implementation, Suite, Testbed, between, events, now,
};
use futures::future::try_join_all;

use self::stranger_writes::{BLANKED, LEADER, MARGIN, OVERWRITTEN, STANDBY, StrangerWrite};
use crate::hosted_candidates::Host;
use crate::{CLIENT_GO, CLIENT_GO_MODES, EVERYWHERE, GATE_ON, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite
        .shared(OURS, EVERYWHERE)
        .and(CLIENT_GO, CLIENT_GO_MODES)
        .every_change_on(GATE_ON);
    shared.add("lease_is_overwritten_by_a_stranger", 60, |testbed| {
        done_to(testbed, OVERWRITTEN)
    });
    shared.add("lease_is_blanked_by_a_stranger", 60, |testbed| {
        done_to(testbed, BLANKED)
    });
}

/// The writes where client-go's candidates lead, whose belief is their own affair.
const TO_CLIENT_GO: [&str; 4] = ["held", "renewed", "blank", "as-if-released"];

/// Does all of it at once, each to a lease of its own.
async fn done_to(testbed: Arc<Testbed>, writes: &'static [StrangerWrite]) -> Result<()> {
    let testbed = &*testbed;
    let names = writes.iter().map(|write| write.name.to_owned());
    let leases: Vec<String> = names.collect();
    testbed.admit(&leases).await?;
    let done = match testbed.implementation() {
        Implementation::Elector => {
            let host = Host::connect(testbed, &leases).await?;
            let start = |lease: &str, name: &str, version: &str| host.start(lease, name, version);
            let all = writes.iter();
            try_join_all(all.map(|write| done_to_one(testbed, write, start))).await?
        }
        Implementation::ClientGo => {
            let start = |lease: &str, name: &str, version: &str| {
                let plan = testbed.candidate(name).lease(lease).version(version);
                plan.flag("--rejoin").start()
            };
            let mut chosen: Vec<&StrangerWrite> = writes.iter().collect();
            chosen.retain(|write| TO_CLIENT_GO.contains(&write.name));
            let all = chosen.into_iter();
            try_join_all(all.map(|write| done_to_one(testbed, write, start))).await?
        }
    };
    for (write, took) in done {
        testbed.figure(write, took);
    }
    Ok(())
}

/// Does it to a lease that is led, and waits until one of the two leads, has renewed its lease, and is the only one.
async fn done_to_one<C>(
    testbed: &Testbed,
    write: &'static StrangerWrite,
    start: impl Fn(&str, &str, &str) -> Result<C>,
) -> Result<(&'static str, Duration)> {
    let (lease, journal) = (write.name, testbed.journal());
    let names = [LEADER, STANDBY].map(|role| format!("{lease}{role}"));
    let outcome = async {
        let _leader = start(lease, &names[0], "1.1.0")?;
        says(testbed, &names[0], EventKind::Leading).await?;
        let _standby = start(lease, &names[1], "1.2.0")?;
        says(testbed, &names[1], EventKind::Start).await?;

        let done = now();
        let written = testbed.overwrite(lease, write.change).await?;
        let version = number(&written)?;
        // Not when the recorder gets to it: this is what the time of a stranger's record is judged by.
        let what = EntryContent::Lease(lease.to_owned(), Arc::new(written));
        journal.record(now(), what);
        let mut recovery = Recovery::new(lease, &names, version);
        let limit = write.until + margin(testbed.implementation());
        let look = |entries: &[HistoryEntry]| recovery.look(entries);
        let led = journal.until("one leads and renews", limit + PROMPTLY * 2, look);
        let took = between(done, led.await?);
        ensure!(took <= limit, "no candidate led for {took:?}");
        let holds = !write.until.is_zero() || took.is_zero();
        ensure!(holds, "the leader did not lead on");
        Ok(took)
    };
    let took: Result<Duration> = outcome.await;
    Ok((lease, took.with_context(|| lease.to_owned())?))
}

/// For the news to spread and the work to be done.
fn margin(implementation: Implementation) -> Duration {
    match implementation {
        Implementation::Elector => MARGIN,
        // It leads on for 10 s after its lease is lost, and looks every 2 to 4.4 s whether it is elected again. Meanwhile
        // the standby may have been elected and asked to make room, which takes another 12 s at client-go's pace.
        Implementation::ClientGo => MARGIN + Duration::from_secs(10 + 12),
    }
}

/// Waits until a candidate says that.
async fn says(testbed: &Testbed, name: &str, kind: EventKind) -> Result<()> {
    let said = |entries: &[HistoryEntry]| {
        let mut all = events(entries, kind);
        all.any(|(event, _)| event.name == name).then_some(())
    };
    let (journal, what) = (testbed.journal(), format!("{name} says {kind:?}"));
    journal.until(&what, PROMPTLY * 2, said).await
}

/// The version of a revision as the number that it is.
fn number(lease: &Lease) -> Result<u64> {
    let version = lease.metadata.resource_version.as_deref();
    let version = version.context("a revision without a version")?;
    version.parse().context("a version that is no number")
}

/// The state of a lease since a stranger wrote on it.
struct Recovery<'a> {
    lease: &'a str,
    names: &'a [String; 2],
    /// The revision that the stranger wrote.
    version: u64,
    /// The number of journal entries looked at.
    looked: usize,
    /// The process that believes that it leads, and since when.
    believers: BTreeMap<String, Timestamp>,
    /// The holder of the lease, its term, and when it renewed.
    holder: Option<(String, i32)>,
    renewals: BTreeSet<Timestamp>,
}

/// The accept and two renewals.
const RENEWALS: usize = 3;

// === impl Recovery ===

impl<'a> Recovery<'a> {
    fn new(lease: &'a str, names: &'a [String; 2], version: u64) -> Self {
        Self {
            lease,
            names,
            version,
            looked: 0,
            believers: BTreeMap::new(),
            holder: None,
            renewals: BTreeSet::new(),
        }
    }

    /// Since when the only believer leads, once there is one that renews.
    fn look(&mut self, entries: &[HistoryEntry]) -> Option<Timestamp> {
        for entry in &entries[self.looked..] {
            match &entry.content {
                EntryContent::Event(event) if self.names.contains(&event.name) => {
                    match event.kind {
                        EventKind::Leading => {
                            self.believers.insert(event.name.clone(), entry.at);
                        }
                        EventKind::WorkStopped => {
                            self.believers.remove(&event.name);
                        }
                        EventKind::Start | EventKind::Lost | EventKind::Killed => {}
                    }
                }
                EntryContent::Lease(name, revision) if name == self.lease => self.revised(revision),
                _ => {}
            }
        }
        self.looked = entries.len();
        let (holder, _) = self.holder.as_ref()?;
        let since = self.believers.get(holder)?;
        let settled = self.believers.len() == 1 && self.renewals.len() >= RENEWALS;
        settled.then_some(*since)
    }

    fn revised(&mut self, revision: &Lease) {
        if number(revision).is_ok_and(|number| number <= self.version) {
            return;
        }
        let spec = &revision.spec;
        let holder = (
            spec.holder_identity.clone().unwrap_or_default(),
            spec.lease_transitions.unwrap_or_default(),
        );
        if self.holder.as_ref() != Some(&holder) {
            self.holder = Some(holder);
            self.renewals.clear();
        }
        self.renewals.extend(spec.renew_time);
    }
}
