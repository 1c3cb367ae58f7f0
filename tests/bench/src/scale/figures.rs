//! The results of one measurement.

use std::time::Duration;

use serde::Serialize;

use crate::scale::args::{RunSize, size_name};
use crate::scale::bare::BareTimes;
use crate::scale::bare_client::BareClientTimes;
use crate::scale::benchmarked_elector::{ResourceUsage, ScrapedFigures};
use crate::scale::fleet::{ElectionTimes, FleetCounts, MoveTimes};

/// The figures of one measurement: what was counted and timed, and what follows from it. Times are seconds, memory is bytes.
#[derive(Clone, Debug, Serialize)]
pub struct ScaleFigures {
    /// The server of the API.
    pub server: String,
    /// The number of leases.
    pub leases: u32,
    /// The number of candidates of each.
    pub candidates: u32,
    /// The leases of each group, where there are groups.
    pub parts: Option<u32>,
    /// Over how many namespaces.
    pub namespaces: u32,
    /// The number of electors, each of which elects in its share of them.
    pub electors: u32,
    /// The lease duration of all, seconds.
    pub lease_duration: u64,
    /// The renew interval of all, seconds.
    pub renew_interval: f64,
    /// The number of requests of candidates under way at the same time.
    pub connections: u32,
    /// The number of leases that got their candidates in a second, at most.
    pub rate: Option<u32>,
    /// The number of open connections of the elector at the end of the elections.
    pub elector_connections: u32,
    /// The number of leases that came to be led.
    pub leases_led: u32,
    /// From the first registration until the last one was answered, in the same run.
    pub registered: Option<f64>,
    /// From the first registration until the last of these leases was led.
    pub led: f64,
    /// From the registration of a lease's first candidate until its grant was seen.
    pub to_grant: LatencySummary,
    /// The same until the accept was answered.
    pub to_lead: LatencySummary,
    /// Resident memory of the elector before the first candidate, after the elections, after the renewals, and at most.
    pub resident: Resident,
    /// The elections.
    pub election: Phase,
    /// The moves that followed, where there are groups.
    pub balance: Option<GroupMoves>,
    /// The renewals that followed.
    pub hold: Phase,
    /// The moves to a member that joined a group after that, where there are groups.
    pub join: Option<GroupMoves>,
    /// The events and requests of a client that decides nothing, where there were any.
    pub client: Option<BareClient>,
    /// The writes by themselves, where they were timed.
    pub bare: Option<BareWrites>,
}

/// A distribution of times, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// The middle one.
    pub p50: f64,
    /// All but one of a hundred are below.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Resident memory of the elector, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resident {
    /// Before the first candidate.
    pub idle: u64,
    /// When all leases were led.
    pub elected: u64,
    /// After the renewals.
    pub held: u64,
    /// The most there ever was.
    pub most: u64,
    /// After the renewals, above the idle one, for each lease.
    pub per_lease: f64,
}

/// The events and requests in a time, and their cost for the elector.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its duration, seconds.
    pub seconds: f64,
    /// Processor time of the elector, seconds.
    pub processor: f64,
    /// Watch events that were delivered to it.
    pub events: u64,
    /// Its requests, each of which has a response.
    pub requests: u64,
    /// Processor time for each event and response, microseconds.
    pub per_event: f64,
    /// Requests by kind.
    pub by_kind: Vec<(String, u64)>,
    /// The number of times that a lease was queued to be decided.
    pub decisions: u64,
    /// Watches of the elector that had to list again.
    pub watch_restarts: u64,
    /// The counts of the candidates.
    pub fleet: FleetCounts,
}

/// The moves that even out the members of groups, and their cost for the elector.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GroupMoves {
    /// The leases that moved.
    pub moves: u64,
    /// From the begin of the phase until the last of them was handed over, seconds.
    pub last: f64,
    /// The requests of the elector.
    pub requests: u64,
    /// Processor time of the elector, seconds.
    pub processor: f64,
}

/// The events and requests of the elections, received and sent by kube alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BareClient {
    /// Processor time for each event and response of each run, microseconds; the shortest first.
    pub per_event: Vec<f64>,
    /// The same of the elector.
    pub of_elector: Vec<f64>,
    /// The median of the elector, divided by that of the client.
    pub ratio: f64,
    /// The times that a watch of the client listed again.
    pub watch_restarts: u64,
}

/// The same writes without an election.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BareWrites {
    /// The number of connections that wrote: those of the candidates and those of the elector.
    pub connections: u32,
    /// The creation of all LeaseCandidates, seconds.
    pub registrations: f64,
    /// Creation, grant and accept of all Leases, seconds.
    pub leases: f64,
    /// Both together.
    pub total: f64,
    /// The time of the elections, divided by this.
    pub ratio: f64,
}

/// The state of elector and candidates at the border of two phases.
#[derive(Clone, Debug)]
pub(crate) struct PhaseBorder {
    pub(crate) at: tokio::time::Instant,
    pub(crate) usage: ResourceUsage,
    pub(crate) scrape: ScrapedFigures,
    pub(crate) fleet: FleetCounts,
    /// The Events that there are.
    pub(crate) recorded: u64,
}

/// The kinds of the elector's writes: resource and verb as its metrics have them, and the name in the table.
const KINDS: [(&str, &str, &str); 5] = [
    ("leases", "create", "creates of Leases"),
    ("leases", "update", "updates of Leases"),
    ("leasecandidates", "patch", "pings"),
    ("leasecandidates", "delete", "collections"),
    ("leasecandidates", "update", "updates of candidates"),
];

/// The most that an event costs, compared with a bare client, where there are so many leases.
const MOST_OF_BARE: f64 = 1.6;
const JUDGED: u32 = 100_000;

// === impl LatencySummary ===

impl LatencySummary {
    /// Of these times.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let index = (times.len() * share).div_ceil(100).saturating_sub(1);
            times.get(index).map_or(0.0, Duration::as_secs_f64)
        };
        Self {
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

// === impl Phase ===

impl Phase {
    /// The time between two states.
    pub(crate) fn between(before: &PhaseBorder, after: &PhaseBorder) -> Self {
        let grown = |name: &str, labels: &[&str]| {
            let difference = after.scrape.sum(name, labels) - before.scrape.sum(name, labels);
            difference.max(0.0).round() as u64
        };
        let written = |labels: &[&str]| grown("elector_writes_total", labels);
        let mut by_kind: Vec<(String, u64)> = KINDS
            .iter()
            .map(|(resource, verb, name)| {
                let labels = [
                    format!("resource=\"{resource}\""),
                    format!("verb=\"{verb}\""),
                ];
                ((*name).to_owned(), written(&[&labels[0], &labels[1]]))
            })
            .collect();
        // After each of these the elector reads the Lease.
        let reads = ["conflict", "unknown"].map(|outcome| {
            written(&[
                "resource=\"leases\"",
                "verb=\"update\"",
                &format!("outcome=\"{outcome}\""),
            ])
        });
        by_kind.push(("reads of Leases".to_owned(), reads.iter().sum()));
        by_kind.push(("Events".to_owned(), after.recorded - before.recorded));
        by_kind.retain(|(_, count)| *count > 0);
        let fleet = after.fleet.since(&before.fleet);
        let events = fleet.lease_events + fleet.candidate_events;
        let requests = by_kind.iter().map(|(_, count)| count).sum();
        let processor = after.usage.processor - before.usage.processor;
        Self {
            seconds: (after.at - before.at).as_secs_f64(),
            processor,
            events,
            requests,
            per_event: processor * 1e6 / (events + requests).max(1) as f64,
            by_kind,
            decisions: grown("workqueue_adds_total", &[]),
            watch_restarts: grown("elector_watch_restarts_total", &[]),
            fleet,
        }
    }
}

// === impl Resident ===

impl Resident {
    pub(crate) fn of(
        leases: u32,
        idle: &ResourceUsage,
        elected: &ResourceUsage,
        held: &ResourceUsage,
    ) -> Self {
        Self {
            idle: idle.resident,
            elected: elected.resident,
            held: held.resident,
            most: held.most_resident,
            per_lease: (held.resident as f64 - idle.resident as f64) / f64::from(leases),
        }
    }
}

// === impl GroupMoves ===

impl GroupMoves {
    pub(crate) fn of(times: MoveTimes, before: &PhaseBorder, after: &PhaseBorder) -> Self {
        let phase = Phase::between(before, after);
        Self {
            moves: times.moves,
            last: times.last.as_secs_f64(),
            requests: phase.requests,
            processor: phase.processor,
        }
    }
}

// === impl BareClient ===

impl BareClient {
    /// `None` unless there were as many runs as of the elector.
    fn of(runs: &[BareClientTimes], of_elector: Vec<f64>) -> Option<Self> {
        let mut per_event: Vec<f64> = runs.iter().map(|run| run.per_event).collect();
        if per_event.len() != of_elector.len() {
            return None;
        }
        per_event.sort_by(f64::total_cmp);
        let median = |sorted: &[f64]| sorted.get(sorted.len() / 2).copied();
        Some(Self {
            ratio: median(&of_elector)? / median(&per_event)?,
            watch_restarts: runs.iter().map(|run| run.further_lists).sum(),
            per_event,
            of_elector,
        })
    }
}

// === impl BareWrites ===

impl BareWrites {
    pub(crate) fn of(connections: u32, times: BareTimes, led: Duration) -> Self {
        let (registrations, leases) = (times.registrations, times.lease_writes);
        let total = (registrations + leases).as_secs_f64();
        Self {
            connections,
            registrations: registrations.as_secs_f64(),
            leases: leases.as_secs_f64(),
            total,
            ratio: led.as_secs_f64() / total,
        }
    }
}

// === impl ScaleFigures ===

impl ScaleFigures {
    /// Of a run through these four states.
    pub(crate) fn of(
        server: String,
        size: &RunSize,
        times: ElectionTimes,
        [idle, elected, balanced, held]: &[PhaseBorder; 4],
        bare: Option<BareTimes>,
    ) -> Self {
        let elector_connections = elected.usage.sockets.saturating_sub(idle.usage.sockets);
        let all_connections = size.connections + elector_connections;
        let election = Phase::between(idle, elected);
        Self {
            server,
            leases: size.leases,
            candidates: size.candidates,
            parts: size.parts,
            namespaces: size.namespaces,
            electors: size.electors,
            lease_duration: size.timing.lease_duration.as_secs(),
            renew_interval: size.timing.renew_interval.as_secs_f64(),
            connections: size.connections,
            rate: size.rate,
            elector_connections,
            leases_led: times.leases_led,
            registered: times.registered.map(|time| time.as_secs_f64()),
            led: times.led.as_secs_f64(),
            to_grant: LatencySummary::of(times.to_grant),
            to_lead: LatencySummary::of(times.to_lead),
            resident: Resident::of(size.leases, &idle.usage, &elected.usage, &held.usage),
            client: None,
            election,
            balance: None,
            hold: Phase::between(balanced, held),
            join: None,
            bare: bare.map(|bare| BareWrites::of(all_connections, bare, times.led)),
        }
    }

    /// The round in the middle, with the times of all.
    pub(crate) fn median(mut rounds: Vec<Self>, clients: &[BareClientTimes]) -> Option<Self> {
        rounds.sort_by(|a, b| a.election.per_event.total_cmp(&b.election.per_event));
        let of_elector = rounds.iter().map(|it| it.election.per_event).collect();
        let middle = rounds.len() / 2;
        let client = BareClient::of(clients, of_elector);
        let round = rounds.into_iter().nth(middle);
        round.map(|it| Self { client, ..it })
    }

    /// A sentence where there is no ratio to the bare client, or it has a target and misses it.
    pub(crate) fn missed(&self) -> Option<String> {
        let is_judged = self.parts.is_none() && self.electors == 1 && self.leases >= JUDGED;
        let ratio = self.client.as_ref().map(|client| client.ratio);
        missed_target(is_judged, ratio).map(|missed| format!("{}: {missed}", self.name()))
    }

    /// The number of leases, and of those in a group.
    pub(crate) fn name(&self) -> String {
        size_name(self.leases, self.parts, self.electors)
    }

    /// True if all leases came to be led.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.leases_led == self.leases
    }

    /// Processor time of the elections for each lease, microseconds.
    pub(crate) fn processor_per_lease(&self) -> f64 {
        self.election.processor * 1e6 / f64::from(self.leases)
    }
}

fn missed_target(is_judged: bool, ratio: Option<f64>) -> Option<String> {
    match ratio {
        Some(ratio) if is_judged && ratio > MOST_OF_BARE => Some(format!(
            "elector ÷ bare client is {ratio:.3}, and the target is at most {MOST_OF_BARE}"
        )),
        Some(_) => None,
        None => Some("the bare client has failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_its_target_is_told_and_so_is_one_that_is_missing() {
        let told = "elector ÷ bare client is 1.601, and the target is at most 1.6";
        for (is_judged, ratio, missed) in [
            (true, Some(1.6), None),
            (true, Some(1.601), Some(told)),
            (false, Some(2.0), None),
            (false, None, Some("the bare client has failed")),
        ] {
            assert_eq!(missed_target(is_judged, ratio).as_deref(), missed);
        }
    }

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let millis = |numbers: &[u64]| numbers.iter().copied().map(Duration::from_millis).collect();
        let hundred: Vec<u64> = (1..=100).rev().collect();
        for (times, expected) in [
            (hundred.as_slice(), (0.05, 0.099, 0.1)),
            (&[3, 1, 2], (0.002, 0.003, 0.003)),
            (&[], (0.0, 0.0, 0.0)),
        ] {
            let latency = LatencySummary::of(millis(times));
            assert_eq!((latency.p50, latency.p99, latency.max), expected);
        }
    }
}
