//! The reports of the participants, in lines as they come.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use elector::LeadershipChange;
use elector_candidate::{Event, TermOrigin};
use elector_protocol::holder::StopReason;
use elector_protocol::{Identity, LeaseKey, Term};

use super::narration::Narration;
use super::participants::{ParticipantReport, TimedReport};

/// The leader, the candidates and the reasons, as far as they were reported.
#[derive(Debug)]
pub(super) struct Reporter<W> {
    pub(super) narration: Narration<W>,
    lease: LeaseKey,
    /// The candidates that this process runs.
    participants: BTreeSet<Identity>,
    registered: BTreeSet<Identity>,
    at_work: BTreeSet<Identity>,
    most_at_work: usize,
    /// The elector's reasons for the leader of each term.
    reasons: BTreeMap<(Identity, Term), String>,
    /// The elector's newest request, so that a repetition is not printed twice.
    preference: Option<String>,
    /// The leader that makes room.
    yielding: Option<Identity>,
    vacant: Option<LeaderGap>,
    leader: Option<CurrentLeader>,
}

/// A candidate of this process that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CurrentLeader {
    pub(super) name: Identity,
    pub(super) term: Term,
    /// True once the elector has said why.
    pub(super) explained: bool,
}

/// Since when the work is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LeaderGap {
    Crash(Identity, Instant),
    HandOver(Instant),
}

/// A duration as one would say it.
struct SpokenDuration(Duration);

// === impl Reporter ===

impl<W: Write> Reporter<W> {
    /// A reporter on that lease that has received nothing yet.
    pub(super) fn new(narration: Narration<W>, lease: LeaseKey) -> Self {
        Self {
            narration,
            lease,
            participants: BTreeSet::new(),
            registered: BTreeSet::new(),
            at_work: BTreeSet::new(),
            most_at_work: 0,
            reasons: BTreeMap::new(),
            preference: None,
            yielding: None,
            vacant: None,
            leader: None,
        }
    }

    /// A candidate of this process is about to start.
    pub(super) fn introduce(&mut self, name: &Identity, version: &str) -> io::Result<()> {
        self.participants.insert(name.clone());
        let lease = &self.lease;
        self.narration.say(
            Instant::now(),
            format_args!("{name} wants to lead {lease}, version {version}"),
        )
    }

    /// True where that candidate may be elected.
    pub(super) fn is_registered(&self, name: &Identity) -> bool {
        self.registered.contains(name)
    }

    /// The most candidates that have been at work at the same time.
    pub(super) const fn most_at_work(&self) -> usize {
        self.most_at_work
    }

    /// The leader, if it is a candidate of this process.
    pub(super) const fn leader(&self) -> Option<&CurrentLeader> {
        self.leader.as_ref()
    }

    /// A candidate has just crashed.
    pub(super) fn crashed(&mut self, name: &Identity, at: Instant) -> io::Result<()> {
        self.at_work.remove(name);
        if self.leader.take_if(|leader| leader.name == *name).is_some() {
            self.vacant = Some(LeaderGap::Crash(name.clone(), at));
        }
        self.narration.say(
            at,
            format_args!(
                "{name} crashes: dropped in the middle of its work, with nothing released"
            ),
        )
    }

    /// Tells what was reported, and remembers it.
    pub(super) fn handle(&mut self, reports: TimedReport) -> io::Result<()> {
        let at = reports.at;
        match reports.what {
            ParticipantReport::Elector(elector::Event::Listed { .. }) => self.narration.say(
                at,
                format_args!("the elector is up and has listed all candidates"),
            ),
            ParticipantReport::Elector(elector::Event::LeadershipChanged(change)) => {
                self.handle_change(at, change)
            }
            ParticipantReport::Elector(elector::Event::Preferred { reason, .. }) => {
                if self.preference.as_ref() == Some(&reason) {
                    return Ok(());
                }
                self.narration.say(at, format_args!("{reason}"))?;
                self.preference = Some(reason);
                Ok(())
            }
            // Events that the elector may have one day.
            ParticipantReport::Elector(_) => Ok(()),
            ParticipantReport::Candidate(name, event) => {
                self.handle_candidate_event(at, name, event)
            }
            ParticipantReport::Left(name, how) => self
                .narration
                .say(at, format_args!("{name} has left: {how}")),
        }
    }

    fn handle_change(&mut self, at: Instant, change: LeadershipChange) -> io::Result<()> {
        self.preference = None;
        let LeadershipChange {
            lease,
            holder,
            term,
            reason,
            ..
        } = change;
        let ours = lease == self.lease;
        let Some(holder) = holder else {
            if ours {
                (self.leader, self.vacant) = (None, None);
            }
            return self
                .narration
                .say(at, format_args!("nobody leads {lease}: {reason}"));
        };
        if !ours || !self.participants.contains(&holder) {
            if ours {
                (self.leader, self.vacant) = (None, None);
            }
            self.narration
                .say(at, format_args!("{holder} leads {lease}, term {term}"))?;
            return self.narration.explain(format_args!("why: {reason}"));
        }
        // A candidate of this process will say so itself, once it has accepted, and may have done so before this came.
        if let Some(leader) = &mut self.leader
            && (&leader.name, leader.term) == (&holder, term)
        {
            leader.explained = true;
            return self.narration.explain(format_args!("why: {reason}"));
        }
        self.reasons.insert((holder, term), reason);
        Ok(())
    }

    fn handle_candidate_event(
        &mut self,
        at: Instant,
        name: Identity,
        event: Event,
    ) -> io::Result<()> {
        match event {
            Event::Registered => {
                self.registered.insert(name);
                Ok(())
            }
            Event::Leading { term, by, .. } => {
                if let TermOrigin::Acquired { free, .. } = by {
                    self.narration.say(
                        at,
                        format_args!(
                            "{name} takes the lease itself, which was free for {:.1} s: no elector acts",
                            free.as_secs_f64()
                        ),
                    )?;
                }
                self.handle_leading(at, name, Term(term))
            }
            Event::Stopping { reason, .. } => match reason {
                StopReason::HandOver { to } => {
                    self.narration.say(
                        at,
                        format_args!("{name} stops its work and makes room for {to}"),
                    )?;
                    self.yielding = Some(name);
                    Ok(())
                }
                StopReason::Lost(loss) => self
                    .narration
                    .say(at, format_args!("{name} stops its work: {loss}")),
                _ => Ok(()),
            },
            Event::WorkStopped { .. } => {
                self.at_work.remove(&name);
                if self
                    .yielding
                    .take_if(|yielding| *yielding == name)
                    .is_some()
                {
                    self.vacant = Some(LeaderGap::HandOver(at));
                }
                Ok(())
            }
            Event::Ended { .. } => {
                self.leader = self.leader.take().filter(|leader| leader.name != name);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn handle_leading(&mut self, at: Instant, name: Identity, term: Term) -> io::Result<()> {
        self.at_work.insert(name.clone());
        self.most_at_work = self.most_at_work.max(self.at_work.len());
        self.narration
            .say(at, format_args!("{name} leads, term {term}"))?;
        let reason = self.reasons.remove(&(name.clone(), term));
        if let Some(reason) = &reason {
            self.narration.explain(format_args!("why: {reason}"))?;
        }
        self.leader = Some(CurrentLeader {
            name,
            term,
            explained: reason.is_some(),
        });
        match self.vacant.take() {
            Some(LeaderGap::Crash(former, since)) => {
                let gap = SpokenDuration(at.saturating_duration_since(since));
                self.narration
                    .explain(format_args!("{gap} after {former} crashed"))
            }
            Some(LeaderGap::HandOver(since)) => {
                let gap = SpokenDuration(at.saturating_duration_since(since));
                self.narration.explain(format_args!("hand-over in {gap}"))
            }
            None => Ok(()),
        }
    }
}

// === impl SpokenDuration ===

impl fmt::Display for SpokenDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        if seconds < 1.0 {
            write!(f, "{:.1} ms", seconds * 1000.0)
        } else {
            write!(f, "{seconds:.1} s")
        }
    }
}

#[cfg(test)]
mod tests;
