//! Which processes may have led when: by what the candidates say, and by the Lease where they say nothing. S1, S2, S6 and
//! S9.

use std::collections::BTreeSet;
use std::time::Duration;

use elector_protocol::{LeaseKey, Timestamp};

use crate::checker::CheckedRevisions;
use crate::entry::between;
use crate::history::TraceCoverage;
use crate::limits::Limits;
use crate::participants::{Implementation, Participants};
use crate::term_record::{RecordedEnd, TermRecord};
use crate::verdict::{Breach, ExemptBreach, GuaranteeLevel, Invariant, LeaseVerdict, Unjudged};
use crate::work_trace::{WorkInterval, WorkTrace};

/// From one instant to another, a process led, or may have.
#[derive(Clone, Debug)]
struct LeadershipInterval<'a> {
    name: &'a str,
    implementation: Implementation,
    from: Timestamp,
    /// `None` while it leads.
    to: Option<Timestamp>,
    /// True where a trace says so, and not the Lease alone.
    traced: bool,
}

/// The check of the leaders of one lease.
#[derive(Debug)]
pub(crate) struct LeadershipCheck<'a> {
    lease: &'a LeaseKey,
    limits: &'a Limits,
    terms: &'a [TermRecord],
    /// The work on this lease, and the code that did it.
    work_intervals: &'a [(&'a WorkInterval, Implementation)],
    intervals: Vec<LeadershipInterval<'a>>,
    breaches: Vec<Breach>,
    unjudged: Vec<Unjudged>,
}

/// Joins what the candidates say to the check of the Lease.
pub(crate) fn check(
    lease: &LeaseKey,
    traces: TraceCoverage,
    participants: &Participants,
    trace: &WorkTrace<'_>,
    checked: CheckedRevisions,
) -> LeaseVerdict {
    let mut leaders =
        LeadershipCheck::new(lease, traces, participants, trace, &checked.term_records);
    leaders.founded();
    leaders.given_away();
    leaders.one_life();
    let mut lease_verdict = LeaseVerdict {
        breaches: checked.breaches,
        unjudged: checked.unjudged,
        extent: checked.extent,
        ..LeaseVerdict::default()
    };
    lease_verdict.extent.traced = !leaders.work_intervals.is_empty();
    let spans = || leaders.span().into_iter().chain(checked.seen);
    lease_verdict.extent.from = spans().map(|(from, _)| from).min();
    let last = spans().map(|(_, to)| to).max();
    if let (Some(first), Some(last)) = (lease_verdict.extent.from, last) {
        lease_verdict.extent.covered = between(first, last);
    }
    for breach in leaders.overlaps() {
        // A write after the overlap began exempts nothing.
        let covers = |at: Timestamp| {
            let mut exemptions = checked.exemptions.iter().rev();
            let seen = participants.limits.recording_delay;
            exemptions
                .find(|exemption| between(at, exemption.from) <= seen && at <= exemption.until)
        };
        match covers(breach.at) {
            Some(exemption) => lease_verdict.excused.push(ExemptBreach {
                by: exemption.by,
                breach,
            }),
            None => lease_verdict.breaches.push(breach),
        }
    }
    lease_verdict.breaches.append(&mut leaders.breaches);
    lease_verdict.unjudged.append(&mut leaders.unjudged);
    lease_verdict
        .breaches
        .sort_by_key(|breach| (breach.at, breach.after));
    lease_verdict.terms = checked.term_records;
    lease_verdict
}

// === impl LeadershipCheck ===

impl<'a> LeadershipCheck<'a> {
    fn new(
        lease: &'a LeaseKey,
        traces: TraceCoverage,
        participants: &'a Participants,
        trace: &'a WorkTrace<'a>,
        terms: &'a [TermRecord],
    ) -> Self {
        let mut all = Self {
            lease,
            limits: &participants.limits,
            terms,
            work_intervals: &trace.intervals,
            intervals: Vec::new(),
            breaches: Vec::new(),
            unjudged: Vec::new(),
        };
        all.collect(&trace.traced, traces);
        all
    }

    /// Intervals by trace, and by the Lease for processes that have none.
    fn collect(&mut self, traced: &BTreeSet<&str>, traces: TraceCoverage) {
        for (interval, implementation) in self.work_intervals {
            let to = match (interval.to, traces) {
                (Some(to), _) => Some(to),
                (None, TraceCoverage::Complete) => None,
                (None, TraceCoverage::Partial) => Some(self.latest(interval)),
            };
            self.intervals.push(LeadershipInterval {
                name: &interval.name,
                implementation: *implementation,
                from: interval.from,
                to,
                traced: true,
            });
        }
        let mut silent = BTreeSet::new();
        for term_record in self.terms {
            let Some(accepted) = term_record.accepted else {
                continue;
            };
            if traced.contains(term_record.holder.as_str()) {
                continue;
            }
            if term_record.implementation != Some(Implementation::Elector) {
                silent.insert(term_record.holder.as_str());
                continue;
            }
            self.intervals.push(LeadershipInterval {
                name: &term_record.holder,
                implementation: Implementation::Elector,
                from: accepted.at,
                to: Some(limit(term_record, self.limits)),
                traced: false,
            });
        }
        self.intervals.sort_by_key(|interval| interval.from);
        for holder in silent {
            let why = format!(
                "how long {holder} led: it runs client-go, whose Lease does not show that, and its work was not traced"
            );
            self.missing(Invariant::S1, why);
        }
        if self.work_intervals.is_empty()
            && self
                .terms
                .iter()
                .any(|term_record| term_record.accepted.is_some())
        {
            let why = "no work was traced; each leader is taken to lead from its accept to its last renewal + the \
                       renew deadline";
            self.missing(Invariant::S2, why.to_owned());
            self.missing(Invariant::S9, "no work was traced".to_owned());
        }
    }

    /// When work of which no end is known was over at the latest.
    fn latest(&self, interval: &WorkInterval) -> Timestamp {
        let limit = self
            .term_record_of(interval)
            .map(|term_record| limit(term_record, self.limits));
        let end = limit.unwrap_or(interval.from).max(interval.from);
        interval.restart.map_or(end, |restart| end.min(restart))
    }

    /// The term that work is of: the newest that this holder had accepted by then.
    fn term_record_of(&self, interval: &WorkInterval) -> Option<&'a TermRecord> {
        let clocks = self.limits.clock_difference;
        let mut accepted = self.terms.iter().rev().filter(|term_record| {
            let by_then =
                term_record
                    .accepted
                    .is_some_and(|moment| match (clocks, moment.written) {
                        // Both are times of the candidate's own clock.
                        (Some(_), Some(written)) => written <= interval.from,
                        _ => between(interval.from, moment.at) <= self.limits.recording_delay,
                    });
            by_then && term_record.holder == interval.name
        });
        accepted.find(|term_record| {
            interval
                .token
                .is_none_or(|token| term_record.token == Some(token))
                && interval
                    .term
                    .is_none_or(|term| i64::from(term_record.term.0) == term)
        })
    }

    /// S2: no process leads before its own write on a record that names it; and Elector's not for longer than that allows.
    fn founded(&mut self) {
        for &(interval, implementation) in self.work_intervals {
            let Some(term_record) = self.term_record_of(interval) else {
                let message = format!("{} led without having accepted", interval.name);
                self.find(Invariant::S2, interval.from, message);
                if let Some(breach) = self.breaches.last_mut()
                    && implementation == Implementation::ClientGo
                {
                    breach.level = GuaranteeLevel::AsClientGo;
                }
                continue;
            };
            if implementation == Implementation::ClientGo {
                continue;
            }
            let (Some(to), Some(renewed)) = (interval.to, term_record.renewed) else {
                continue;
            };
            let sent = match (self.limits.clock_difference, renewed.written) {
                (Some(_), Some(written)) => written,
                _ => renewed.at,
            };
            let limit = self.limits.work_limit(term_record.duration);
            let worked = between(sent, to);
            if worked > limit + self.limits.recording_delay {
                let message = format!(
                    "{} worked until {:.3} s after it sent its last renewal @{}, {:.0} s are allowed",
                    interval.name,
                    worked.as_secs_f64(),
                    renewed.version,
                    limit.as_secs_f64(),
                );
                self.find(Invariant::S2, to, message);
            }
        }
    }

    /// S6: a term that its holder lost was not given away by its holder, however the record looks.
    fn given_away(&mut self) {
        for &(interval, implementation) in self.work_intervals {
            let (Some(lost), Some(term_record), Implementation::Elector) =
                (interval.lost, self.term_record_of(interval), implementation)
            else {
                continue;
            };
            let own = match term_record.end {
                RecordedEnd::Released => "released",
                RecordedEnd::HandedOver => "handed over",
                RecordedEnd::Lasts
                | RecordedEnd::Replaced
                | RecordedEnd::Died
                | RecordedEnd::Overwritten
                | RecordedEnd::Deleted
                | RecordedEnd::Unseen => {
                    continue;
                }
            };
            let version = term_record.ended.map(|moment| moment.version);
            let message = format!(
                "term {} of {} was {own} by another writer: it says that it lost the lease while it worked",
                term_record.term, interval.name
            );
            self.find(Invariant::S6, lost, message);
            if let Some(breach) = self.breaches.last_mut() {
                breach.after = version;
            }
        }
    }

    /// S9: no term is led twice, since each life waits for a grant of its own.
    fn one_life(&mut self) {
        let mut led = BTreeSet::new();
        for (interval, _) in self.work_intervals {
            if let Some(token) = interval.token
                && !led.insert((&interval.name, token))
            {
                let message = format!(
                    "two processes of {} led with the token {token}",
                    interval.name
                );
                self.find(Invariant::S9, interval.from, message);
            }
        }
    }

    /// S1 and, for two of one name, S9: each process that began while another still led.
    fn overlaps(&self) -> Vec<Breach> {
        let mut breaches = Vec::new();
        for (index, early) in self.intervals.iter().enumerate() {
            for late in &self.intervals[index + 1..] {
                if early.to.is_some_and(|end| end <= late.from) {
                    break; // and all that begin later
                }
                let traced = early.traced && late.traced;
                if early.name == late.name && !traced {
                    continue; // a process that begins a term has left its last one
                }
                let tolerance = if traced {
                    self.limits.trace_clock_difference
                } else {
                    self.limits.recording_delay
                };
                let longer = early.to.map(|end| between(late.from, end));
                if longer.is_some_and(|longer| longer <= tolerance) {
                    continue;
                }
                breaches.push(self.overlap(early, late, longer));
            }
        }
        breaches
    }

    fn overlap(
        &self,
        early: &LeadershipInterval<'_>,
        late: &LeadershipInterval<'_>,
        longer: Option<Duration>,
    ) -> Breach {
        let longer = longer.map_or_else(
            || "and leads on".to_owned(),
            |longer| format!("for {:.3} s longer", longer.as_secs_f64()),
        );
        let message = if early.traced {
            format!(
                "two believed at once: {} led {longer} when {} began",
                early.name, late.name
            )
        } else {
            format!(
                "two may have believed at once: {} could lead {longer} when {} began",
                early.name, late.name
            )
        };
        let ours = [early.implementation, late.implementation] == [Implementation::Elector; 2];
        Breach {
            invariant: if early.name == late.name {
                Invariant::S9
            } else {
                Invariant::S1
            },
            lease: self.lease.clone(),
            level: if ours {
                GuaranteeLevel::Promised
            } else {
                GuaranteeLevel::AsClientGo
            },
            at: late.from,
            before: None,
            after: None,
            message,
        }
    }

    fn find(&mut self, invariant: Invariant, at: Timestamp, message: String) {
        self.breaches.push(Breach {
            invariant,
            lease: self.lease.clone(),
            level: GuaranteeLevel::Promised,
            at,
            before: None,
            after: None,
            message,
        });
    }

    fn missing(&mut self, invariant: Invariant, why: String) {
        self.unjudged.push(Unjudged { invariant, why });
    }

    /// From the first to the last thing that the candidates say.
    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let first = self.work_intervals.first()?.0.from;
        let last = self
            .work_intervals
            .iter()
            .map(|(interval, _)| interval.to.unwrap_or(interval.from));
        Some((first, last.max()?))
    }
}

/// When the belief of a term was over at the latest, known from the Lease.
fn limit(term_record: &TermRecord, limits: &Limits) -> Timestamp {
    let renewed = term_record.renewed.unwrap_or(term_record.granted).at;
    let lasts = limits.longest_belief(term_record.duration);
    let limit = i64::try_from(lasts.as_micros())
        .ok()
        .and_then(|lasts| Timestamp::from_micros(renewed.as_micros().saturating_add(lasts)))
        .unwrap_or(Timestamp::MAX);
    match (&term_record.end, term_record.ended) {
        // The holder stopped before it wrote that (R12), or may have, or was dead.
        (
            RecordedEnd::HandedOver
            | RecordedEnd::Released
            | RecordedEnd::Died
            | RecordedEnd::Unseen,
            Some(ended),
        ) => limit.min(ended.at),
        _ => limit,
    }
}
