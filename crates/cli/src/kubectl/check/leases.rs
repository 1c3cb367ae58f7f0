//! The check that each lease has a leader.

use elector_api::{age, parse_time};

use super::line::CheckLine;
use super::place::CheckedPlace;
use crate::explain::cluster::{self, ListedObjects};
use crate::explain::input::LeaseChoice;
use crate::kubectl::status::row::{LeaseState, StatusRow, rows};

const CHECK: &str = "leases";

/// After how many seconds without a leader a lease is stuck: a fail-over takes little more than the lease duration, which
/// is 15 s unless configured otherwise.
const STUCK_AFTER: i64 = 30;

/// The most leases without a leader that have a line each.
const LONGEST: usize = 20;

/// The seconds that a renewal may lie ahead of the server's clock.
const TOLERATED: i64 = 5;

/// Looks at all leases that are elected.
pub(super) async fn check(place: &CheckedPlace, listed: ListedObjects, lines: &mut Vec<CheckLine>) {
    let namespace = place.namespace.as_deref();
    let hold_backs = cluster::hold_backs(&place.cluster, namespace).await;
    let mut objects = listed.collect(LeaseChoice::Elected, hold_backs);
    objects.keep(namespace, place.lease.as_deref());
    for fault in &objects.faults {
        let fix = "fix the object: an invalid Lease is left unchanged, an invalid candidate is not elected";
        lines.push(CheckLine::error(CHECK, fault, fix));
    }
    let rows = rows(&objects, place.now);
    let mut led = 0;
    let mut leaderless = Vec::new();
    for row in &rows {
        lines.extend(ahead(row, place));
        match row.state {
            LeaseState::Led => led += 1,
            LeaseState::Leaderless => leaderless.push(judge(row, place)),
            LeaseState::Unreadable => {}
        }
    }
    let all = leaderless.len();
    lines.extend(leaderless.into_iter().take(LONGEST));
    if all > LONGEST {
        let text = format!("{} more leases have no leader", all - LONGEST);
        lines.push(CheckLine::error(CHECK, text, "kubectl elector status -A"));
    }
    if led == rows.len() {
        let text = match led {
            0 => "no lease is elected here".to_owned(),
            led => format!("every lease has a leader: {led}"),
        };
        lines.push(CheckLine::ok(CHECK, text));
    }
}

/// The line on a lease without a leader.
fn judge(row: &StatusRow, place: &CheckedPlace) -> CheckLine {
    let name = format!("{}/{}", row.namespace, row.lease);
    let fix = format!("kubectl elector explain {} -n {}", row.lease, row.namespace);
    let seconds = seconds_ago(row.leaderless_since.as_deref(), place);
    let text = match seconds {
        Some(seconds) => format!(
            "{name} has had no leader for {}: {}",
            age(seconds.max(0)),
            row.why
        ),
        None => format!("{name} has no leader: {}", row.why),
    };
    // A lease that is left to others, or has no candidate, is no affair of the electors.
    if row.candidates.is_empty() {
        let fix =
            "start its candidates, or have an administrator delete the Lease that they left behind";
        return CheckLine::warning(CHECK, text, fix);
    }
    if seconds.is_none_or(|seconds| seconds < STUCK_AFTER) {
        let fix = format!("it may be in the middle of an election: {fix}");
        return CheckLine::warning(CHECK, text, fix).awaited();
    }
    CheckLine::error(CHECK, text, fix)
}

/// A warning where the holder's clock is ahead of the server's: its renewals lie in the future.
fn ahead(row: &StatusRow, place: &CheckedPlace) -> Option<CheckLine> {
    let seconds = seconds_ago(row.renewed.as_deref(), place)?;
    (seconds < -TOLERATED).then(|| {
        CheckLine::warning(
            "clocks",
            format!("the clock of {}, which holds {}/{}, is {} ahead of the server's", row.holder, row.namespace, row.lease, age(-seconds)),
            "synchronize it by NTP: electors use their own clocks, but status and explain would count it as alive that much longer",
        )
    })
}

fn seconds_ago(time: Option<&str>, place: &CheckedPlace) -> Option<i64> {
    let time = parse_time(time?).ok()?;
    Some((place.now.as_micros() - time.as_micros()).div_euclid(1_000_000))
}
