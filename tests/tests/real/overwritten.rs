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
    ClusterChoice, EntryContent, EventKind, HistoryEntry, Implementation, Suite, Testbed, between,
    now,
};
use futures::future::try_join_all;

use self::stranger_writes::{BLANKED, LEADER, MARGIN, OVERWRITTEN, STANDBY, StrangerWrite};
use crate::hosted::Host;
use crate::{CLIENT_GO, CLIENT_GO_MODES, EVERYWHERE, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, run| {
        for (implementations, modes) in [(OURS, EVERYWHERE), (CLIENT_GO, CLIENT_GO_MODES)] {
            let lasts = Duration::from_secs(60);
            suite.add(
                name,
                ClusterChoice::Shared,
                implementations,
                modes,
                lasts,
                run,
            );
        }
    };
    add("lease_is_overwritten_by_a_stranger", |testbed| {
        Box::pin(done_to(testbed, OVERWRITTEN))
    });
    add("lease_is_blanked_by_a_stranger", |testbed| {
        Box::pin(done_to(testbed, BLANKED))
    });
}

/// The writes where client-go's candidates lead, whose belief is their own affair.
const TO_CLIENT_GO: [&str; 4] = ["held", "renewed", "blank", "as-if-released"];

/// Does all of it at once, each to a lease of its own.
async fn done_to(testbed: Arc<Testbed>, stranger_writes: &[StrangerWrite]) -> Result<()> {
    let leases: Vec<&str> = stranger_writes.iter().map(|write| write.name).collect();
    testbed.admit(&leases).await?;
    let done = match testbed.implementation() {
        Implementation::Elector => {
            let host = Host::connect(&testbed).await?;
            let start = |stranger_write: &StrangerWrite, name: &str, version: &str| {
                host.start(stranger_write.name, name, version)
            };
            try_join_all(
                stranger_writes
                    .iter()
                    .map(|stranger_write| done_to_one(&testbed, stranger_write, start)),
            )
            .await?
        }
        Implementation::ClientGo => {
            let start = |stranger_write: &StrangerWrite, name: &str, version: &str| {
                let plan = testbed
                    .candidate(name)
                    .lease(stranger_write.name)
                    .version(version);
                plan.flag("--rejoin").start()
            };
            let chosen = stranger_writes
                .iter()
                .filter(|stranger_write| TO_CLIENT_GO.contains(&stranger_write.name));
            try_join_all(chosen.map(|stranger_write| done_to_one(&testbed, stranger_write, start)))
                .await?
        }
    };
    for (stranger_write, took) in done {
        testbed.figure(stranger_write, took);
    }
    Ok(())
}

/// Does it to a lease that is led, and waits until one of the two leads, has renewed its lease, and is the only one.
async fn done_to_one<'d, C>(
    testbed: &Testbed,
    stranger_write: &'d StrangerWrite,
    start: impl Fn(&StrangerWrite, &str, &str) -> Result<C>,
) -> Result<(&'d str, Duration)> {
    let names = [LEADER, STANDBY].map(|role| format!("{}{role}", stranger_write.name));
    let outcome = async {
        let _leader = start(stranger_write, &names[0], "1.1.0")?;
        says(testbed, &names[0], EventKind::Leading).await?;
        let _standby = start(stranger_write, &names[1], "1.2.0")?;
        says(testbed, &names[1], EventKind::Start).await?;

        let (done, version) = write(testbed, stranger_write).await?;
        let mut recovery = Recovery::new(stranger_write.name, &names, version);
        let limit = stranger_write.until + margin(testbed.implementation());
        let patience = limit + PROMPTLY * 2;
        let led = testbed
            .journal()
            .until("one leads and renews", patience, |entries| {
                recovery.look(entries)
            })
            .await?;
        let took = between(done, led);
        ensure!(took <= limit, "nobody led for {took:?}");
        ensure!(
            !stranger_write.until.is_zero() || took.is_zero(),
            "the leader did not lead on"
        );
        Ok(took)
    };
    let took: Result<Duration> = outcome.await;
    Ok((
        stranger_write.name,
        took.with_context(|| stranger_write.name.to_owned())?,
    ))
}

/// For the news to spread and the work to be done.
fn margin(implementation: Implementation) -> Duration {
    match implementation {
        Implementation::Elector => MARGIN,
        // It leads on for 10 s after its lease is lost, and looks every 2 to 4.4 s whether it is elected again. Meanwhile
        // the standby may have been elected and told to make room, which takes another 12 s at client-go's pace.
        Implementation::ClientGo => MARGIN + Duration::from_secs(10 + 12),
    }
}

/// Waits until a candidate says that.
async fn says(testbed: &Testbed, name: &str, kind: EventKind) -> Result<()> {
    let said = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Event(event) if event.name == name && event.kind == kind);
    let what = format!("{name} says {kind:?}");
    testbed
        .journal()
        .until(&what, PROMPTLY * 2, |entries| {
            entries.iter().any(said).then_some(())
        })
        .await
}

/// Writes on the newest revision of the lease, as often as its holder is quicker; when, and which revision it became.
async fn write(testbed: &Testbed, stranger_write: &StrangerWrite) -> Result<(Timestamp, u64)> {
    loop {
        let mut lease = testbed.leases().get(stranger_write.name).await?;
        (stranger_write.change)(&mut lease);
        let start = now();
        match testbed.write(&lease).await {
            Ok(written) => {
                let version = number(&written)?;
                // Not when the recorder gets to it: this is what the time of a stranger's record is judged by.
                let what = EntryContent::Lease(stranger_write.name.to_owned(), Arc::new(written));
                testbed.journal().record(now(), what);
                return Ok((start, version));
            }
            Err(error) => match error.downcast_ref() {
                Some(kube::Error::Api(status)) if status.code == 409 => {}
                _ => return Err(error),
            },
        }
    }
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
