//! The status of leases as it changes.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use elector_api::{HoldBackEvent, Lease, LeaseCandidate};
use elector_protocol::LeaseKey;
use elector_runtime::{
    Cluster, RequestError, Scope, Watch, WatchEvent, WatchOptions, random_seed, watch_candidates,
    watch_leases,
};
use tokio::time::{Instant, timeout_at};

use super::printer::Printer;
use super::query::StatusQuery;
use super::row::{StatusRow, rows};
use crate::explain::input::{Collector, InputObjects};
use crate::explain::{cluster, present};
use crate::output;

/// The objects that are watched, each in its newest revision.
#[derive(Debug, Default)]
struct WatchedObjects {
    leases: BTreeMap<LeaseKey, Lease>,
    candidates: BTreeMap<LeaseKey, LeaseCandidate>,
    hold_backs: Vec<HoldBackEvent>,
}

/// A change from either watch.
enum WatchedChange {
    Lease(WatchEvent<Lease>),
    Candidate(WatchEvent<LeaseCandidate>),
}

/// A holder that dies changes no object: what is shown is computed anew this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// For how long changes are gathered: renewals come all the time, and few change what is shown.
const GATHER: Duration = Duration::from_millis(100);

/// Prints all leases, and then each one that changes, without an end.
pub(super) async fn follow(
    cluster: &Cluster,
    query: &StatusQuery,
    printer: &mut Printer,
) -> anyhow::Result<ExitCode> {
    let api = cluster.candidate_api().await?;
    let namespace = query.namespace.as_deref();
    let scope = Scope::of_namespaces(namespace);
    let options = WatchOptions::elector(random_seed());
    let mut leases: Watch<Lease> = watch_leases(cluster, &scope, &options);
    let mut candidates: Watch<LeaseCandidate> = watch_candidates(cluster, api, &scope, &options);
    let mut objects = WatchedObjects {
        hold_backs: cluster::hold_backs(cluster, namespace).await,
        ..WatchedObjects::default()
    };
    // Nothing is known before both are listed.
    let (mut leases_listed, mut candidates_listed) = (false, false);
    let mut shown: BTreeMap<LeaseKey, StatusRow> = BTreeMap::new();
    loop {
        let mut until = Instant::now() + LOOK_EVERY;
        while let Ok(change) = timeout_at(until, next(&mut leases, &mut candidates)).await {
            let (listed, told) = match change {
                WatchedChange::Lease(event) => {
                    let told = apply(&mut objects.leases, event, Lease::key);
                    (&mut leases_listed, told)
                }
                WatchedChange::Candidate(event) => {
                    let told = apply(&mut objects.candidates, event, candidate_key);
                    (&mut candidates_listed, told)
                }
            };
            match told {
                Ok(is_list) => *listed |= is_list,
                // A watch that once worked goes on by itself when the server is back.
                Err(error) if *listed && !error.is_refusal_of_rights() => {
                    output::print_error(format_args!("failed to {error}"));
                }
                Err(error) => return Err(error.into()),
            }
            until = until.min(Instant::now() + GATHER);
        }
        if !leases_listed || !candidates_listed {
            continue;
        }
        let now = rows(&objects.input(query), present());
        let key = |row: &StatusRow| LeaseKey::new(row.namespace.as_str(), row.lease.as_str());
        let is_new = |row: &&StatusRow| {
            let before = shown.get(&key(row));
            before.is_none_or(|before| !before.says_the_same(row))
        };
        let changed: Vec<StatusRow> = now.iter().filter(is_new).cloned().collect();
        printer.print_changed(&changed)?;
        shown = now.into_iter().map(|row| (key(&row), row)).collect();
    }
}

/// The next change from either watch.
async fn next(leases: &mut Watch<Lease>, candidates: &mut Watch<LeaseCandidate>) -> WatchedChange {
    tokio::select! {
        biased;
        event = leases.next() => WatchedChange::Lease(event),
        event = candidates.next() => WatchedChange::Candidate(event),
    }
}

/// Takes in what a watch reported. Whether it was a list.
fn apply<T>(
    known: &mut BTreeMap<LeaseKey, T>,
    event: WatchEvent<T>,
    key: impl Fn(&T) -> LeaseKey,
) -> Result<bool, RequestError> {
    match event {
        WatchEvent::Listed { items, .. } => {
            *known = items.into_iter().map(|item| (key(&item), item)).collect();
            return Ok(true);
        }
        WatchEvent::Applied(item) => drop(known.insert(key(&item), item)),
        WatchEvent::Deleted(item) => drop(known.remove(&key(&item))),
        WatchEvent::Failed(error) => return Err(error),
        WatchEvent::Gap { .. } | WatchEvent::Rewound { .. } | WatchEvent::Synced => {}
    }
    Ok(false)
}

/// Namespace and name of a candidate.
fn candidate_key(candidate: &LeaseCandidate) -> LeaseKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let metadata = &candidate.metadata;
    LeaseKey::new(text(&metadata.namespace), text(&metadata.name))
}

// === impl WatchedObjects ===

impl WatchedObjects {
    fn input(&self, query: &StatusQuery) -> InputObjects {
        let mut collector = Collector::new(query.choice());
        for candidate in self.candidates.values() {
            collector.candidate(candidate);
        }
        for lease in self.leases.values() {
            collector.lease(lease.clone());
        }
        for event in &self.hold_backs {
            collector.hold_back(event.clone());
        }
        let mut objects = collector.finish();
        objects.keep(query.namespace.as_deref(), query.lease.as_deref());
        objects
    }
}
