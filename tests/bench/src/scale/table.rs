//! The table of what was measured.

use std::fmt::Write as _;

use crate::scale::figures::{
    BareClient, BareWrites, GroupMoves, LatencySummary, Phase, ScaleFigures,
};

/// A figure of a measurement, as text.
type Cell = fn(&ScaleFigures) -> String;

macro_rules! lines {
    ($($name:literal: $it:ident => $cell:expr;)*) => {
        /// The figures, one line each.
        const LINES: &[(&str, Cell)] = &[$(($name, |$it| $cell)),*];
    };
}

lines! {
    "candidates of each lease": it => it.candidates.to_string();
    "leases of each group": it => it.parts.map(|parts| parts.to_string()).unwrap_or_default();
    "namespaces": it => it.namespaces.to_string();
    "electors": it => if it.electors == 1 { String::new() } else { it.electors.to_string() };
    "lease duration, renew interval": it => format!("{} s, {:.1} s", it.lease_duration, it.renew_interval);
    "connections of the candidates, of the elector": it => format!("{}, {}", it.connections, it.elector_connections);
    "leases that get candidates in a second, at most": it => it.rate.map_or_else(|| "any".to_owned(), |rate| rate.to_string());
    "all candidates registered after": it => it.registered.map(seconds).unwrap_or_default();
    "**all leases led after**": it => if it.is_complete() { seconds(it.led) } else {
        format!("**never**: {} in {}", it.leases_led, seconds(it.election.seconds))
    };
    "registration to grant: p50, p99, max": it => latency(&it.to_grant);
    "registration to accept: p50, p99, max": it => latency(&it.to_lead);
    "events that the elector got": it => it.election.events.to_string();
    "requests of the elector": it => it.election.requests.to_string();
    "of these": it => kinds(&it.election);
    "requests for each lease": it => format!("{:.2}", it.election.requests as f64 / f64::from(it.leases));
    "decisions for each lease": it => format!("{:.2}", it.election.decisions as f64 / f64::from(it.leases));
    "processor time of the elector": it => seconds(it.election.processor);
    "**processor time for each event and response**": it => micros(it.election.per_event);
    "processor time for each lease": it => micros(it.processor_per_lease());
    "groups are evened out: moves, the last one after; requests, processor time of the elector": it => moves(it.balance);
    "resident, idle": it => megabytes(it.resident.idle);
    "resident, all led": it => megabytes(it.resident.elected);
    "resident, after the renewals": it => megabytes(it.resident.held);
    "resident, at most": it => megabytes(it.resident.most);
    "**resident for each lease**, above idle": it => format!("{:.2} KB", it.resident.per_lease / 1024.0);
    "renewals: for so long, so many": it => format!("{}, {}", seconds(it.hold.seconds), it.hold.fleet.renewals);
    "renewals: events, requests of the elector": it => format!("{}, {}", it.hold.events, it.hold.requests);
    "renewals: processor time of the elector": it =>
        format!("{}, {}", seconds(it.hold.processor), micros(it.hold.per_event));
    "a member joins one group: moves, the last one after; requests, processor time of the elector": it => moves(it.join);
    "bare client: processor time for each event and response, of each run": it =>
        client(it, |client| runs(&client.per_event));
    "the same of the elector": it => client(it, |client| runs(&client.of_elector));
    "**elector ÷ bare client**, in that, by the median": it => client(it, |client| format!("{:.2}", client.ratio));
    "bare writes: connections": it => bare(it, |bare| bare.connections.to_string());
    "bare writes: registrations, Leases, both": it =>
        bare(it, |bare| [bare.registrations, bare.leases, bare.total].map(seconds).join(", "));
    "**all led ÷ bare writes**": it => bare(it, |bare| format!("{:.2}", bare.ratio));
}

/// One column for each measurement, Markdown, and below what went wrong; then how the costs grow.
#[must_use]
pub fn table(figures: &[ScaleFigures]) -> String {
    let mut text = String::from("| leases |");
    // Writing to a String does not fail.
    for measured in figures {
        let _ = write!(text, " {} |", measured.leases);
    }
    let _ = writeln!(text, "\n|---|{}", "--:|".repeat(figures.len()));
    for (name, cell) in LINES {
        let mut cells: Vec<String> = figures.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            for empty in cells.iter_mut().filter(|cell| cell.is_empty()) {
                empty.push('–');
            }
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
        }
    }
    for measured in figures {
        for note in notes(measured) {
            let _ = writeln!(text, "\n{}: {note}.", measured.name());
        }
    }
    text.push_str(&growth(figures));
    text
}

/// The cost for each lease and event against that of the first measurement.
fn growth(figures: &[ScaleFigures]) -> String {
    let mut text = String::new();
    let Some((first, rest)) = figures.split_first() else {
        return text;
    };
    for measured in rest {
        let ratio = |cost: fn(&ScaleFigures) -> f64| cost(measured) / cost(first);
        let _ = write!(
            text,
            "\n{} ÷ {}: {:.2} in processor time for each lease, {:.2} for each event and response, {:.2} in \
             resident memory for each lease.\n",
            measured.name(),
            first.name(),
            ratio(ScaleFigures::processor_per_lease),
            ratio(|it| it.election.per_event),
            ratio(|it| it.resident.per_lease),
        );
    }
    text
}

/// The words for the counts that make figures less exact.
const NOTES: [&str; 4] = [
    "writes of candidates failed and were repeated",
    "lists of the candidates' watches hid events, which are not counted",
    "watches of the elector listed again",
    "leases were granted again, as their holders were late",
];

/// The limits to the exactness of the figures.
fn notes(measured: &ScaleFigures) -> Vec<String> {
    let mut notes = Vec::new();
    let phases = [
        (&measured.election, "elections"),
        (&measured.hold, "renewals"),
    ];
    for (phase, name) in phases {
        let fleet = &phase.fleet;
        let counts = [
            fleet.failures,
            fleet.gaps,
            phase.watch_restarts,
            fleet.further_terms,
        ];
        for (count, what) in counts.into_iter().zip(NOTES) {
            if count > 0 {
                notes.push(format!("{count} {what}, in the {name}"));
            }
        }
    }
    let restarts = measured.client.as_ref().map(|client| client.watch_restarts);
    if let Some(restarts) = restarts.filter(|restarts| *restarts > 0) {
        notes.push(format!(
            "{restarts} watches of the bare client listed again, in all runs"
        ));
    }
    notes
}

fn kinds(phase: &Phase) -> String {
    let kind = |(kind, count): &(String, u64)| format!("{count} {kind}");
    let kinds: Vec<String> = phase.by_kind.iter().map(kind).collect();
    kinds.join(", ")
}

fn bare(measured: &ScaleFigures, cell: fn(&BareWrites) -> String) -> String {
    measured.bare.as_ref().map(cell).unwrap_or_default()
}

fn client(measured: &ScaleFigures, cell: fn(&BareClient) -> String) -> String {
    measured.client.as_ref().map(cell).unwrap_or_default()
}

fn runs(each: &[f64]) -> String {
    let each: Vec<String> = each.iter().copied().map(micros).collect();
    each.join(", ")
}

fn moves(moves: Option<GroupMoves>) -> String {
    moves.map_or_else(String::new, |it| {
        let (last, processor) = (seconds(it.last), seconds(it.processor));
        format!("{}, {last}; {}, {processor}", it.moves, it.requests)
    })
}

fn latency(latency: &LatencySummary) -> String {
    let LatencySummary { p50, p99, max } = latency;
    [*p50, *p99, *max].map(seconds).join(", ")
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

fn micros(micros: f64) -> String {
    format!("{micros:.1} µs")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}
