//! The guards of all terms, asked whenever a process has done something.
//!
//! A guard's answer changes from no to yes only while its process is polled, and back also by the clock, which never
//! runs backwards. So asking all of them after each poll finds every instant at which two believe.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_candidate::{Event, Leadership, TermEnd, TermOrigin};
use elector_protocol::{Identity, Instant, ResourceVersion, Token};

use crate::history::LeaseHistory;

/// The guard of a term that has begun.
#[derive(Debug)]
struct Guard {
    /// The name and the incarnation of the process.
    name: String,
    incarnation: u32,
    leadership: Leadership,
    /// H of its process.
    limit: Duration,
    /// The end of its belief as last seen.
    deadline: Option<Instant>,
}

/// A term of a candidate without a guard, as far as it is known to believe in it.
#[derive(Clone, Debug)]
pub(crate) struct UnguardedTerm {
    pub(crate) name: String,
    /// The version of its first write.
    pub(crate) token: Token,
    /// When its belief ends.
    pub(crate) until: Duration,
}

/// Asks every guard, and counts how leadership changes.
#[derive(Debug, Default)]
pub(crate) struct GuardMonitor {
    guards: Vec<Guard>,
    /// The terms without a guard, by lease.
    unguarded: BTreeMap<String, UnguardedTerm>,
    tokens: BTreeMap<String, u64>,
    /// Pairs that were found to overlap, so that each is reported once.
    reported: BTreeSet<(String, String)>,
    /// When a leader's work stopped for a hand-over, by lease.
    handed_over: BTreeMap<String, Duration>,
    /// When a leader crashed, by lease.
    crashed: BTreeMap<String, Duration>,
    /// When a process's work stopped, by process and lease.
    stopped: BTreeMap<(String, String), Duration>,
    pub(crate) leadership: LeadershipStats,
}

/// The changes of leadership in a run.
#[derive(Clone, Debug, Default)]
pub struct LeadershipStats {
    /// Terms that were accepted.
    pub elections: u64,
    /// Those of them that their holders acquired themselves.
    pub acquired: u64,
    /// Those with which a leader led on after it had lapsed (R20).
    pub resumed: u64,
    /// Those that a later life of the leader began (R21).
    pub rejoined: u64,
    /// Writes that were sent beside one that had no answer (R22).
    pub hedged: u64,
    /// From the end of a leader's work to the beginning of its chosen successor's.
    pub hand_overs: Vec<Duration>,
    /// From the crash of a leader to the next one's beginning.
    pub fail_overs: Vec<Duration>,
    /// The same after the recovery, while there is no elector.
    pub unelected: Vec<Duration>,
    /// From the end of all faults to the first leader, lease by lease.
    pub recoveries: Vec<Duration>,
    /// From the end of all faults until the best one leads, lease by lease.
    pub best: Vec<Duration>,
    /// Terms of the lock of the electors.
    pub elector_terms: u64,
    /// From the crash of the elector that leads the others to the next one's term, after the recovery.
    pub elector_fail_overs: Vec<Duration>,
    /// Writes of the work of all terms.
    pub work_writes: u64,
    /// The exemptions from S1 and S5 by foreign writes: of what, and by which kind of write.
    pub exempt: BTreeMap<(&'static str, &'static str), u64>,
}

/// The breaches that may be exempt.
pub(crate) const BELIEVERS: &str = "two believers";
pub(crate) const DISPLACED_CLIENT_GO: &str = "a believer like client-go's beside its successor";
pub(crate) const LATE_TERMS: &str = "a term that begins after its successor";
pub(crate) const WORK: &str = "work beside that of a successor";
pub(crate) const ELECTORS: &str = "two electors that lead the others";

// === impl LeadershipStats ===

impl LeadershipStats {
    /// Counts a breach that a write of this kind exempts.
    pub(crate) fn exempt(&mut self, what: &'static str, why: &'static str) {
        *self.exempt.entry((what, why)).or_default() += 1;
    }
}

// === impl GuardMonitor ===

impl GuardMonitor {
    /// Adds the guard of a term that has begun, and returns the rule that it violates. A term whose answer comes late may begin
    /// beside the one by which a stranger displaced it: that is the overlap that S1 exempts.
    pub(crate) fn add_term(
        &mut self,
        now: Duration,
        (name, incarnation): (&str, u32),
        limit: Duration,
        leadership: Leadership,
        history: &LeaseHistory,
    ) -> Option<(&'static str, String)> {
        let lease = leadership.lease().name.to_string();
        let token = leadership.token();
        self.leadership.elections += 1;
        if let Some(since) = self.handed_over.remove(&lease) {
            self.leadership.hand_overs.push(now.saturating_sub(since));
        }
        if let Some(since) = self.crashed.remove(&lease) {
            self.leadership.fail_overs.push(now.saturating_sub(since));
        }
        self.guards.push(Guard {
            name: name.to_owned(),
            incarnation,
            leadership,
            limit,
            deadline: None,
        });
        let newest = self.tokens.entry(lease.clone()).or_default();
        let before = *newest;
        // A term that began in a history that was lost may be heard of late. Later ones may have lower tokens.
        if !history.is_lost(token) {
            *newest = token.max(before);
        }
        let tokens = [token, before].map(|token| Token(ResourceVersion(token)));
        if token > before {
            return None;
        }
        let exempt = history.exemption(&lease, now, tokens.into());
        if let Some(why) = exempt.filter(|_| token < before) {
            self.leadership.exempt(LATE_TERMS, why);
            return None;
        }
        let text = format!("{name} leads {lease} with token {token} after {before}");
        Some(("S5", text))
    }

    /// Takes in an event of a candidate.
    pub(crate) fn handle_event(&mut self, now: Duration, name: &str, lease: &str, event: &Event) {
        let of = (name.to_owned(), lease.to_owned());
        match event {
            Event::Leading { by, .. } => match by {
                TermOrigin::Resumed => self.leadership.resumed += 1,
                TermOrigin::Rejoined => self.leadership.rejoined += 1,
                _ => {}
            },
            Event::WorkStopped { .. } => {
                self.stopped.insert(of, now);
            }
            Event::Ended {
                end: TermEnd::HandedOver { .. },
                ..
            } => {
                // The successor may already lead when the answer to the hand-over comes.
                let successor = self
                    .leader_of(lease)
                    .is_some_and(|(leader, _)| leader != name);
                if let Some(stopped) = self.stopped.remove(&of).filter(|_| !successor) {
                    self.handed_over.insert(lease.to_owned(), stopped);
                }
            }
            _ => {}
        }
    }

    /// Tokens may come about once more: an acquisition has that of the record which it replaces.
    pub(crate) fn forget_tokens(&mut self) {
        self.tokens.clear();
    }

    /// A candidate without a guard has renewed. The terms of others before it are no hand-over from one to the next.
    pub(crate) fn believe(&mut self, lease: &str, term: UnguardedTerm) {
        self.handed_over.remove(lease);
        self.crashed.remove(lease);
        self.unguarded.insert(lease.to_owned(), term);
    }

    /// The candidate without a guard has ended.
    pub(crate) fn end_unguarded(&mut self, lease: &str) {
        self.unguarded.remove(lease);
    }

    /// A process crashes.
    pub(crate) fn handle_crash(&mut self, now: Duration, name: &str) {
        for guard in &self.guards {
            if guard.name == name && guard.leadership.is_leader() {
                let lease = guard.leadership.lease().name.to_string();
                self.handed_over.remove(&lease);
                self.crashed.insert(lease, now);
            }
        }
    }

    /// The process that leads, and its identity.
    pub(crate) fn leader_of(&self, lease: &str) -> Option<(&str, &Identity)> {
        let leading = |guard: &&Guard| {
            *guard.leadership.lease().name == *lease && guard.leadership.is_leader()
        };
        let guard = self.guards.iter().rev().find(leading)?;
        Some((&guard.name, guard.leadership.identity()))
    }

    /// Checks S1 and S2 at this instant.
    pub(crate) fn check(
        &mut self,
        now: Duration,
        history: &LeaseHistory,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        // A guard without a deadline never gets another.
        self.guards
            .retain(|guard| guard.leadership.deadline().is_some());
        for guard in &mut self.guards {
            let deadline = guard.leadership.deadline();
            if deadline == guard.deadline {
                continue;
            }
            guard.deadline = deadline;
            let lease = &guard.leadership.lease().name;
            let proven = history.proven(lease, &guard.name, guard.incarnation);
            let limit = proven.map(|sent| sent.after(guard.limit));
            if deadline > limit {
                found.push((
                    "S2",
                    format!(
                        "{} believes until {deadline:?}, and its newest write allows {limit:?}",
                        guard.name
                    ),
                ));
            }
        }
        let believers = self.believers(now);
        for (index, (lease, one, label)) in believers.iter().enumerate() {
            for (_, other, of_other) in believers.iter().skip(index + 1).filter(|it| it.0 == *lease)
            {
                let pair = (label.clone(), of_other.clone());
                let tokens = (*one.min(other), *one.max(other));
                // It notices nothing before its next try fails, and believes for 12 s more.
                let unguarded = self.unguarded.get(lease);
                let what = match unguarded.is_some_and(|it| it.token == tokens.0) {
                    true => DISPLACED_CLIENT_GO,
                    false => BELIEVERS,
                };
                if let Some(why) = history.exemption(lease, now, tokens) {
                    if self.reported.insert(pair) {
                        self.leadership.exempt(what, why);
                    }
                } else if self.reported.insert(pair) {
                    let text = format!("{label} and {of_other} both believe in {lease}");
                    found.push(("S1", text));
                }
            }
        }
        found
    }

    /// Those who believe now: the lease, the token and the description of each.
    fn believers(&self, now: Duration) -> Vec<(String, Token, String)> {
        let leading = self
            .guards
            .iter()
            .filter(|guard| guard.leadership.is_leader());
        let guarded = leading.map(
            |Guard {
                 name, leadership, ..
             }| {
                let (term, token) = (leadership.term(), leadership.token());
                let lease = leadership.lease().name.to_string();
                let text = format!("{name} (term {term}, token {token})");
                (lease, Token(ResourceVersion(token)), text)
            },
        );
        let unguarded = self.unguarded.iter().filter(|(_, term)| now < term.until);
        let unguarded = unguarded.map(|(lease, UnguardedTerm { name, token, .. })| {
            let text = format!("{name} (since version {})", token.0.0);
            (lease.clone(), *token, text)
        });
        guarded.chain(unguarded).collect()
    }
}

#[cfg(test)]
mod tests {
    use elector_candidate::TestTerm;

    use super::*;

    #[test]
    fn tokens_grow_and_only_one_that_a_restore_lost_may_come_late() {
        let mut guards = GuardMonitor::default();
        let mut history = LeaseHistory::default();
        let mut begins = |token, history: &LeaseHistory, restored| {
            if restored {
                guards.forget_tokens();
            }
            let leadership = TestTerm::new().with_token(token).leadership();
            let wrong = guards.add_term(
                Duration::ZERO,
                ("c0", 1),
                Duration::ZERO,
                leadership,
                history,
            );
            wrong.map(|(rule, _)| rule)
        };
        assert_eq!(begins(12, &history, false), None);
        assert_eq!(begins(11, &history, false), Some("S5"));
        let (at, kept_at) = (Duration::from_secs(9), Duration::from_secs(4));
        history.restore(at, kept_at, 10, 15);
        assert_eq!(begins(8, &history, true), None);
        assert_eq!(begins(13, &history, false), None, "it was on its way");
        assert_eq!(
            begins(9, &history, false),
            None,
            "and tells of none before it"
        );
        assert_eq!(begins(9, &history, false), Some("S5"));
        assert_eq!(begins(20, &history, false), None);
        assert_eq!(
            begins(14, &history, false),
            Some("S5"),
            "no write explains it"
        );
    }
}
