//! The status of leases as it changes.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use elector_api::{HoldBackEvent, Lease, LeaseCandidate};
use elector_protocol::LeaseKey;
use elector_runtime::{Cluster, Reflection, reflect_candidates, reflect_leases};
use tokio::time::{Instant, timeout_at};

use super::printer::Printer;
use super::query::StatusQuery;
use super::row::{StatusRow, rows, settings};
use crate::explain::input::{Collector, InputObjects};
use crate::explain::{cluster, present};
use crate::output;

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
    let mut leases = reflect_leases(cluster, namespace);
    let mut candidates = reflect_candidates(cluster, api, namespace);
    let hold_backs = cluster::hold_backs(cluster, namespace).await;
    let mut shown: BTreeMap<LeaseKey, StatusRow> = BTreeMap::new();
    loop {
        let mut until = Instant::now() + LOOK_EVERY;
        loop {
            let (changed, is_complete) = tokio::select! {
                biased;
                changed = timeout_at(until, leases.changed()) => (changed, leases.is_complete()),
                changed = candidates.changed() => (Ok(changed), candidates.is_complete()),
            };
            match changed {
                Err(_) => break,
                Ok(Ok(())) => {}
                // A watch that once worked goes on by itself when the server is back.
                Ok(Err(error)) if is_complete && !error.is_refusal_of_rights() => {
                    output::print_error(format_args!("failed to {error}"));
                }
                Ok(Err(error)) => return Err(error.into()),
            }
            until = until.min(Instant::now() + GATHER);
        }
        // Nothing is known before both are listed.
        if !leases.is_complete() || !candidates.is_complete() {
            continue;
        }
        let now = rows(&input(&leases, &candidates, &hold_backs, query), present());
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

/// The objects that are known now.
fn input(
    leases: &Reflection<Lease>,
    candidates: &Reflection<LeaseCandidate>,
    hold_backs: &[HoldBackEvent],
    query: &StatusQuery,
) -> InputObjects {
    let mut collector = Collector::new(query.choice());
    for candidate in candidates.objects() {
        collector.candidate(&candidate);
    }
    for lease in leases.objects() {
        collector.lease(Lease::clone(&lease));
    }
    for event in hold_backs {
        collector.hold_back(event.clone());
    }
    let mut objects = collector.finish();
    objects.assign_groups(present(), &settings(&objects));
    objects.keep(query.namespace.as_deref(), query.lease.as_deref());
    objects
}
