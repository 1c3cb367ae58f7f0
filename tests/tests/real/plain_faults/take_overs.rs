//! The candidates' words on a run, held against what struck them: who believed at once, and how soon the next one led.

use std::time::Duration;

use elector_protocol::Timestamp;
use elector_tests::rig::{
    EntryContent, EventKind, HistoryEntry, Implementation, WorkInterval, between, work_intervals,
};

/// A process, from its start to its end.
#[derive(Clone, Debug)]
pub(super) struct ProcessLife {
    pub(super) name: String,
    pub(super) implementation: Implementation,
    pub(super) from: Timestamp,
    pub(super) to: Option<Timestamp>,
    /// From SIGSTOP to SIGCONT.
    pub(super) stops: Vec<(Timestamp, Timestamp)>,
}

/// A time without a leader of which the end is judged: a candidate of ours was there all along.
#[derive(Clone, Debug)]
pub(super) struct TakeOver {
    pub(super) after: LastTermEnd,
    pub(super) from: Timestamp,
    pub(super) took: Duration,
    pub(super) next: String,
    pub(super) ours: bool,
}

/// The end of the last leader's term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastTermEnd {
    /// It was killed or stopped.
    Crash,
    /// One of ours released it.
    Release,
    /// client-go's released it, and left the token of one of ours on it: to ours, such a record is unproven.
    ReleaseOfClientGo,
}

/// From one instant to another, one process believed that it leads.
#[derive(Clone, Debug)]
struct BeliefInterval {
    name: String,
    ours: bool,
    from: Timestamp,
    to: Timestamp,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct RunJudgement {
    pub(super) take_overs: Vec<TakeOver>,
    /// Two of ours that believed at the same time, and since when.
    pub(super) overlaps: Vec<(String, String, Timestamp)>,
    /// For how long client-go's believed beside one of ours.
    pub(super) beside_client_go: Duration,
    /// The longest that one of ours went on after it woke up, with a lease that was lost.
    pub(super) after_waking: Duration,
    pub(super) terms: usize,
}

/// The time from a process's start until it knows the lease, on a busy machine.
const STARTS: Duration = Duration::from_secs(2);

/// The time after a wake-up within which a process's word that its work goes on means only that it is just awake.
pub(super) const AWAKE: Duration = Duration::from_millis(300);

/// Judges a run by its journal, until `end`.
pub(super) fn judge(
    entries: &[HistoryEntry],
    lives: &[ProcessLife],
    end: Timestamp,
) -> RunJudgement {
    let mut entries = entries.to_vec();
    // Events from before a kill may be read later.
    entries.sort_by_key(|entry| entry.at);
    let mut judgement = RunJudgement::default();
    let beliefs: Vec<BeliefInterval> = work_intervals(&entries)
        .iter()
        .map(|interval| belief(interval, lives, end, &mut judgement.after_waking))
        .collect();
    judgement.terms = beliefs.len();
    for (index, early) in beliefs.iter().enumerate() {
        for late in &beliefs[index + 1..] {
            let both = between(late.from, early.to.min(late.to));
            if both.is_zero() {
                continue;
            }
            if early.ours && late.ours {
                let names = (early.name.clone(), late.name.clone());
                judgement.overlaps.push((names.0, names.1, late.from));
            } else {
                judgement.beside_client_go += both;
            }
        }
    }
    judgement.take_overs = take_overs(&entries, &beliefs, lives);
    judgement
}

/// The belief behind an interval of work. A process that is stopped does nothing: what it says when it wakes up, and
/// finds its lease lost, is told late.
fn belief(
    interval: &WorkInterval,
    lives: &[ProcessLife],
    end: Timestamp,
    after_waking: &mut Duration,
) -> BeliefInterval {
    let said = interval.to.unwrap_or(end);
    let life = life_of(&interval.name, interval.from, lives);
    let stop = life.and_then(|life| {
        let mut stops = life.stops.iter();
        stops.find(|(stopped, woken)| {
            *stopped >= interval.from && *stopped < said && between(*woken, said) <= AWAKE
        })
    });
    let ours = life.is_some_and(|life| life.implementation == Implementation::Elector);
    let to = stop.map_or(said, |(stopped, woken)| {
        if ours {
            *after_waking = (*after_waking).max(between(*woken, said));
        }
        *stopped
    });
    BeliefInterval {
        name: interval.name.clone(),
        ours,
        from: interval.from,
        to,
    }
}

fn life_of<'l>(name: &str, at: Timestamp, lives: &'l [ProcessLife]) -> Option<&'l ProcessLife> {
    lives
        .iter()
        .rev()
        .find(|life| life.name == name && life.from <= at)
}

fn take_overs(
    entries: &[HistoryEntry],
    beliefs: &[BeliefInterval],
    lives: &[ProcessLife],
) -> Vec<TakeOver> {
    let mut take_overs = Vec::new();
    let mut last: Option<Timestamp> = None;
    for belief in beliefs {
        if let Some(lost) = last.filter(|lost| *lost < belief.from) {
            take_overs.extend(take_over(entries, lives, lost, belief));
        }
        last = last.max(Some(belief.to));
    }
    take_overs
}

/// Between two leaders; `None` where no candidate of ours was there all along.
fn take_over(
    entries: &[HistoryEntry],
    lives: &[ProcessLife],
    lost: Timestamp,
    next: &BeliefInterval,
) -> Option<TakeOver> {
    // One that was struck as it took the lease, before it could say so, begins the wait anew.
    let struck = |at: Timestamp| {
        let holder = holder_at(entries, at);
        lives.iter().any(|life| {
            let ended = life.to == Some(at) || life.stops.iter().any(|(from, _)| *from == at);
            ended && Some(life.name.as_str()) == holder.as_deref()
        })
    };
    let strikes = lives
        .iter()
        .flat_map(|life| {
            life.to
                .into_iter()
                .chain(life.stops.iter().map(|(from, _)| *from))
        })
        .filter(|at| *at > lost && *at < next.from && struck(*at));
    let from = strikes.max().unwrap_or(lost);
    // The revisions until the one that the next leader wrote; the release of that one may follow at once.
    let revisions = entries.iter().filter(|entry| entry.at >= from);
    let holders = revisions.filter_map(|entry| match &entry.content {
        EntryContent::Lease(_, lease) => {
            let holder = lease.spec.holder_identity.as_deref();
            Some((holder.unwrap_or_default(), entry.at))
        }
        _ => None,
    });
    let released = holders
        .take_while(|(holder, _)| *holder != next.name)
        .find_map(|(holder, at)| holder.is_empty().then_some(at));
    let of_ours = last_to_lead(entries, from).is_some_and(|name| {
        let ours = |life: &ProcessLife| life.implementation == Implementation::Elector;
        lives.iter().any(|life| life.name == name && ours(life))
    });
    let after = match released {
        None => LastTermEnd::Crash,
        Some(_) if of_ours => LastTermEnd::Release,
        Some(_) => LastTermEnd::ReleaseOfClientGo,
    };
    // From the write itself: how long a busy server takes for it is no wait of the next one.
    let from = released.map_or(from, |released| released.min(next.from));
    let there = lives.iter().any(|life| {
        let undisturbed = life.to.is_none_or(|to| to > next.from)
            && life
                .stops
                .iter()
                .all(|(stopped, woken)| *stopped > next.from || between(*woken, from) >= STARTS);
        life.implementation == Implementation::Elector
            && between(life.from, from) >= STARTS
            && undisturbed
    });
    there.then(|| TakeOver {
        after,
        from,
        took: between(from, next.from),
        next: next.name.clone(),
        ours: next.ours,
    })
}

/// The holder that the newest revision by then names.
fn holder_at(entries: &[HistoryEntry], at: Timestamp) -> Option<String> {
    let mut until = entries.iter().filter(|entry| entry.at <= at).rev();
    until.find_map(|entry| match &entry.content {
        EntryContent::Lease(_, lease) => lease.spec.holder_identity.clone(),
        _ => None,
    })
}

/// The candidate that began to lead last by then.
fn last_to_lead(entries: &[HistoryEntry], at: Timestamp) -> Option<String> {
    let mut until = entries.iter().filter(|entry| entry.at <= at).rev();
    until.find_map(|entry| match &entry.content {
        EntryContent::Event(event) if event.kind == EventKind::Leading => Some(event.name.clone()),
        _ => None,
    })
}
