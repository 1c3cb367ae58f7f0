//! The report for people: the leaders and their terms, what is proven, and the first thing that is wrong.

use std::fmt::Write as _;
use std::time::Duration;

use elector_api::{Lease, Rfc3339};
use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};
use elector_runtime::printable;
use elector_verify::{Breach, EntryContent, GuaranteeLevel, History, LeaseVerdict, Times, Verdict};

use super::report::{InvariantStatus, LeaseReport, TermRow, one_leader};
use crate::output::columns;

/// The number of terms at each end of a long list.
const TERMS: usize = 20;
/// The most violations shown after the first.
const VIOLATIONS: usize = 10;

/// The whole report.
pub(super) fn of(
    history: &History,
    tolerance: Duration,
    verdict: &Verdict,
    reports: &[LeaseReport],
) -> String {
    let mut text = match history.times() {
        Times::Seen => format!(
            "Times are those at which changes were recorded; {} of difference count as none.\n",
            duration(tolerance)
        ),
        Times::Written => format!(
            "Times are those that stand in the objects: all below holds if their writers' clocks are at most {} apart.\n",
            duration(tolerance)
        ),
    };
    for ((lease, lease_verdict), report) in verdict.leases.iter().zip(reports) {
        let mut lines = TextReport(&mut text);
        lines.head(lease, lease_verdict);
        lines.terms(&report.terms);
        lines.invariants(report);
        lines.excuses(lease_verdict);
        lines.violations(history, lease, lease_verdict);
    }
    text
}

/// That so many leases are not judged.
pub(super) fn left_out(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "\n1 other lease, which no candidate names and no token marks, is left out.\n"
            .to_owned(),
        count => format!(
            "\n{count} other leases, which no candidate names and no token marks, are left out.\n"
        ),
    }
}

/// Writing to a text does not fail, so that no result is looked at.
struct TextReport<'t>(&'t mut String);

// === impl TextReport ===

impl TextReport<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.0, "{}", printable(line.trim_end()));
    }

    /// The sentence that matters most.
    fn head(&mut self, lease: &LeaseKey, lease_verdict: &LeaseVerdict) {
        let extent = &lease_verdict.extent;
        let said = match one_leader(lease_verdict) {
            InvariantStatus::Refuted => "REFUTED".to_owned(),
            InvariantStatus::NotJudged => "not proven".to_owned(),
            InvariantStatus::ExemptBreach => match lease_verdict.excused.first() {
                Some(excused) => format!("NOT HELD after the write of @{}", excused.by),
                None => "excused".to_owned(),
            },
            InvariantStatus::Held if extent.terms == 0 => "no leader".to_owned(),
            InvariantStatus::Held if !lease_verdict.breaches.is_empty() => "held".to_owned(),
            InvariantStatus::Held => "proven".to_owned(),
        };
        let count = |count: usize, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let other = if one_leader(lease_verdict) != InvariantStatus::Refuted
            && !lease_verdict.breaches.is_empty()
        {
            "; BUT RULES WERE BROKEN"
        } else {
            ""
        };
        let from = extent
            .from
            .map(|from| format!(" from {}", Rfc3339(from)))
            .unwrap_or_default();
        self.line("");
        self.line(&format!(
            "{lease}: at most one leader at a time: {said} for {} of {}, {} ({}{from}){other}",
            count(extent.terms, "term", "terms"),
            count(extent.leaders, "leader", "leaders"),
            duration(extent.covered),
            count(extent.revisions, "revision", "revisions"),
        ));
        if extent.terms > 1 {
            self.line(&format!(
                "  longest from a leader's last sign to the next one's accept: {}",
                duration(extent.longest_gap)
            ));
        }
    }

    fn terms(&mut self, terms: &[TermRow]) {
        if terms.is_empty() {
            return;
        }
        let head = [
            "TERM",
            "TOKEN",
            "LEADER",
            "ACCEPTED",
            "LAST SIGN",
            "RENEWALS",
            "END",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        let many = terms.len() > 2 * TERMS + 1;
        for (index, term) in terms.iter().enumerate() {
            if many && index == TERMS {
                let mut dots = [const { String::new() }; 7];
                dots[2] = format!("… {} more …", terms.len() - 2 * TERMS);
                rows.push(dots);
            }
            if !many || index < TERMS || index >= terms.len() - TERMS {
                rows.push(row(term));
            }
        }
        for line in columns(&rows, 2) {
            self.line(&format!("  {line}"));
        }
    }

    fn invariants(&mut self, report: &LeaseReport) {
        let of = |wanted| {
            report
                .invariants
                .iter()
                .filter(move |line| line.verdict == wanted)
        };
        let held: Vec<&str> = of(InvariantStatus::Held).map(|line| line.id).collect();
        self.line(&format!("  held: {}", held.join(" ")));
        for line in &report.invariants {
            let word = match line.verdict {
                InvariantStatus::Held if line.missing.is_empty() => continue,
                InvariantStatus::Held | InvariantStatus::NotJudged => "not judged",
                InvariantStatus::Refuted => "REFUTED",
                InvariantStatus::ExemptBreach => "excused",
            };
            if line.missing.is_empty() {
                self.line(&format!("  {word}: {} {}", line.id, line.says));
            }
            for why in &line.missing {
                self.line(&format!("  {word}: {} {}: {why}", line.id, line.says));
            }
        }
    }

    fn excuses(&mut self, lease_verdict: &LeaseVerdict) {
        for excused in &lease_verdict.excused {
            let breach = &excused.breach;
            self.line(&format!(
                "  excused by the write of revision @{}: {} at {}: {}",
                excused.by,
                breach.invariant,
                Rfc3339(breach.at),
                breach.message
            ));
        }
    }

    fn violations(&mut self, history: &History, lease: &LeaseKey, lease_verdict: &LeaseVerdict) {
        let Some((first, others)) = lease_verdict.breaches.split_first() else {
            return;
        };
        self.line(&format!("  first violation: {}", message(first)));
        self.sides(history, lease, first);
        for breach in others.iter().take(VIOLATIONS) {
            self.line(&format!("  then: {}", message(breach)));
        }
        if let Some(more) = others
            .len()
            .checked_sub(VIOLATIONS)
            .filter(|more| *more > 0)
        {
            self.line(&format!("  and {more} more"));
        }
    }

    /// Both revisions side by side, where it is about a change.
    fn sides(&mut self, history: &History, lease: &LeaseKey, breach: &Breach) {
        let Some(after) = breach.after else {
            return;
        };
        let versions: Vec<ResourceVersion> = breach.before.into_iter().chain([after]).collect();
        let sides: Vec<(Timestamp, &Lease)> = versions
            .iter()
            .filter_map(|version| revision(history, lease, *version))
            .collect();
        if sides.len() < versions.len() {
            return;
        }
        let mut rows = vec![vec![String::new(), "revision".to_owned()]];
        rows[0].extend(versions.iter().map(|version| format!("@{version}")));
        let columns_of: Vec<_> = sides.iter().map(|(at, lease)| fields(*at, lease)).collect();
        for (index, (field, value)) in columns_of[0].iter().enumerate() {
            let values: Vec<&String> = columns_of.iter().map(|column| &column[index].1).collect();
            let mark = if values.iter().any(|other| *other != value) {
                "*"
            } else {
                ""
            };
            let mut row = vec![mark.to_owned(), (*field).to_owned()];
            row.extend(values.into_iter().cloned());
            rows.push(row);
        }
        for line in columns(&rows, 2) {
            self.line(&format!("   {line}"));
        }
    }
}

fn message(breach: &Breach) -> String {
    let of = match breach.level {
        GuaranteeLevel::Promised => "",
        GuaranteeLevel::AsClientGo => " (client-go's part, where nothing is promised)",
    };
    let version = breach
        .after
        .map(|version| format!(" @{version}"))
        .unwrap_or_default();
    format!(
        "{}{version} at {}: {}{of}",
        breach.invariant,
        Rfc3339(breach.at),
        breach.message
    )
}

fn revision<'h>(
    history: &'h History,
    key: &LeaseKey,
    version: ResourceVersion,
) -> Option<(Timestamp, &'h Lease)> {
    history
        .entries()
        .iter()
        .find_map(|entry| match &entry.content {
            EntryContent::Lease(_, lease)
                if entry.content.version() == Some(version) && lease.key() == *key =>
            {
                Some((entry.at, lease.as_ref()))
            }
            _ => None,
        })
}

/// The fields of a revision that the rules are about.
fn fields(at: Timestamp, lease: &Lease) -> [(&'static str, String); 8] {
    let spec = &lease.spec;
    let time = |time: Option<Timestamp>| {
        time.map(|time| Rfc3339(time).to_string())
            .unwrap_or_default()
    };
    let number = |number: Option<i32>| number.map(|number| number.to_string()).unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let annotations = lease.metadata.annotations.as_ref();
    let annotation = |name: &str| {
        annotations
            .and_then(|all| all.get(name).cloned())
            .unwrap_or_default()
    };
    let token = match annotation(elector_api::annotation::TOKEN) {
        token if token.is_empty() => token,
        token => format!(
            "{token} of term {}",
            annotation(elector_api::annotation::TOKEN_TERM)
        ),
    };
    let preferred = match text(&spec.preferred_holder) {
        preferred if preferred.is_empty() => annotation(elector_api::annotation::PREFERRED_HOLDER),
        preferred => preferred,
    };
    [
        ("seen", Rfc3339(at).to_string()),
        ("holderIdentity", text(&spec.holder_identity)),
        ("leaseTransitions", number(spec.lease_transitions)),
        ("leaseDurationSeconds", number(spec.lease_duration_seconds)),
        ("acquireTime", time(spec.acquire_time)),
        ("renewTime", time(spec.renew_time)),
        ("preferredHolder", preferred),
        ("token", token),
    ]
}

fn row(term: &TermRow) -> [String; 7] {
    let time = |time: &str| {
        time.split_once('T')
            .map_or(time, |(_, clock)| clock)
            .to_owned()
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        term.term.to_string(),
        or_dash(term.token.map(|token| token.to_string())),
        term.leader.clone(),
        or_dash(term.accepted.as_ref().map(|revision| time(&revision.time))),
        or_dash(term.last_sign.as_ref().map(|revision| time(&revision.time))),
        term.renewals.to_string(),
        term.end.to_owned(),
    ]
}

/// A duration for people: the two largest units, and a tenth of a second below a minute.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) if duration < Duration::from_millis(100) => {
            format!("{:.3} s", duration.as_secs_f64())
        }
        (0, 0) => format!("{:.1} s", duration.as_secs_f64()),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_for_people() {
        for (millis, text) in [
            (7, "0.007 s"),
            (1_250, "1.2 s"),
            (61_900, "1 min 1 s"),
            (7_800_000, "2 h 10 min"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }
}
