//! Whom to ask, and when to stop asking: ping and ack are the election (R15).

use crate::elector::election::Election;
use crate::elector::observation::{Liveness, Seen};
use crate::names::Identity;
use crate::order::Contender;
use crate::time::{Instant, Timestamp};
use crate::timing::ElectorTiming;

/// Why candidates are asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occasion<'a> {
    pub(super) now: Instant,
    /// When the round began: answers to questions asked since then count. `None`: only fresh answers do.
    pub(super) round: Option<Instant>,
    /// The late, expired or former holder. It is asked too, but nobody waits for it.
    pub(super) aside: Option<&'a Identity>,
    /// The electee of a grant that has just expired without an accept.
    pub(super) failed: Option<&'a Identity>,
    /// Whether a leader is needed, so that those passed over and those silent get another chance.
    pub(super) vacant: bool,
}

/// What the asking came to.
#[derive(Debug, Default)]
pub(super) struct Poll<'a> {
    /// The best candidate that answered, when no better one still has time to answer.
    pub(super) elected: Option<Contender<'a>>,
    /// Questions to write now.
    pub(super) questions: Vec<(&'a Seen, Timestamp)>,
    /// Whose answers are awaited.
    pub(super) awaited: Vec<&'a Identity>,
    /// When an awaited answer is late, or a question is to be raised.
    pub(super) wake_at: Option<Instant>,
    /// Better candidates that did not answer.
    pub(super) silent: Vec<&'a Identity>,
}

// === impl Poll ===

impl<'a> Poll<'a> {
    /// Walks the contenders, the best one first. The best is asked first; when it stays silent the next two, then all.
    pub(super) fn take(
        election: &'a Election,
        contenders: &[Contender<'a>],
        occasion: &Occasion<'_>,
        timing: &ElectorTiming,
    ) -> Self {
        let mut poll = Self::default();
        let (passed_over, regular): (Vec<_>, Vec<_>) = contenders
            .iter()
            .filter_map(|contender| {
                Some((
                    *contender,
                    election.candidates.get(&contender.candidate.name)?,
                ))
            })
            .partition(|(contender, _)| {
                occasion.passes_over(election, &contender.candidate.name, timing)
            });
        let silent = regular
            .iter()
            .filter(|(_, seen)| occasion.liveness(seen, timing) == Liveness::Silent)
            .count();
        let mut batch = match silent {
            0 => 1,
            1 | 2 => 2,
            _ => usize::MAX,
        };
        for (contender, seen) in &regular {
            match occasion.liveness(seen, timing) {
                Liveness::Answered => {
                    if poll.awaited.is_empty() {
                        poll.elected = Some(*contender);
                    }
                    return poll;
                }
                Liveness::Silent => poll.silent.push(&seen.candidate.name),
                Liveness::Unasked if occasion.is_aside(seen) => poll.ask(seen, false),
                Liveness::Asked { .. } if occasion.is_aside(seen) => {}
                Liveness::Unasked if batch == 0 => return poll,
                Liveness::Unasked => {
                    poll.ask(seen, true);
                    batch -= 1;
                }
                Liveness::Asked { until } => {
                    poll.wait(seen, until);
                    batch = batch.saturating_sub(1);
                }
            }
        }
        if poll.awaited.is_empty() && occasion.vacant {
            poll.last_resort(&regular, &passed_over, occasion, timing);
        }
        poll
    }

    /// Nobody regular answered: those passed over count again, the former holder is waited for, and questions that
    /// nobody answered for long are raised.
    fn last_resort(
        &mut self,
        regular: &[(Contender<'a>, &'a Seen)],
        passed_over: &[(Contender<'a>, &'a Seen)],
        occasion: &Occasion<'_>,
        timing: &ElectorTiming,
    ) {
        for (contender, seen) in passed_over {
            match occasion.liveness(seen, timing) {
                Liveness::Answered => {
                    if self.awaited.is_empty() {
                        self.elected = Some(*contender);
                    }
                    return;
                }
                Liveness::Silent => self.silent.push(&seen.candidate.name),
                Liveness::Unasked => self.ask(seen, true),
                Liveness::Asked { until } => self.wait(seen, until),
            }
        }
        for (_, seen) in regular.iter().filter(|(_, seen)| occasion.is_aside(seen)) {
            match occasion.liveness(seen, timing) {
                Liveness::Asked { until } => self.wait(seen, until),
                // Asked by this very step.
                Liveness::Unasked => self.awaited.push(&seen.candidate.name),
                Liveness::Answered | Liveness::Silent => {}
            }
        }
        if !self.awaited.is_empty() || !self.questions.is_empty() {
            return;
        }
        for (_, seen) in regular.iter().chain(passed_over) {
            let (Some(asked), Some(ping)) = (seen.asked, seen.candidate.ping) else {
                continue;
            };
            let Some(raised) = ping.next().filter(|_| seen.is_pending()) else {
                continue;
            };
            let due = asked.at.after(timing.raise_after);
            if occasion.now >= due {
                self.questions.push((seen, raised));
            } else {
                self.wake(due);
            }
        }
    }

    fn ask(&mut self, seen: &'a Seen, wait: bool) {
        // Liveness::Unasked implies that a question can be written.
        if let Some(question) = seen.candidate.question() {
            self.questions.push((seen, question));
        }
        if wait {
            self.awaited.push(&seen.candidate.name);
        }
    }

    fn wait(&mut self, seen: &'a Seen, until: Instant) {
        self.awaited.push(&seen.candidate.name);
        self.wake(until);
    }

    fn wake(&mut self, at: Instant) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

// === impl Occasion ===

impl Occasion<'_> {
    fn is_aside(&self, seen: &Seen) -> bool {
        self.aside == Some(&seen.candidate.name)
    }

    /// The liveness that counts here: of the one set aside, only an answer of this round does.
    fn liveness(&self, seen: &Seen, timing: &ElectorTiming) -> Liveness {
        let liveness = seen.liveness(self.now, self.round, timing);
        let stale = |round| !seen.answered_since(round);
        if liveness == Liveness::Answered && self.is_aside(seen) && self.round.is_some_and(stale) {
            return match (seen.is_pending(), seen.candidate.question()) {
                (false, Some(_)) => Liveness::Unasked,
                _ => Liveness::Silent,
            };
        }
        // A preference can wait until an open question is answered. Who has slept takes old answers for fresh ones, and
        // those who asked would withdraw what it prefers, again and again. The same goes for one that cannot be asked.
        if liveness == Liveness::Answered && self.is_for_preference() {
            if seen.candidate.question().is_none() {
                return Liveness::Silent;
            }
            if let Some(asked) = seen.asked.filter(|_| seen.is_pending()) {
                let until = asked.at.after(seen.ack_window(timing));
                return Liveness::Asked { until };
            }
        }
        liveness
    }

    /// Whether somebody leads and renews, so that there is no haste.
    fn is_for_preference(&self) -> bool {
        self.round.is_none() && !self.vacant
    }

    /// Whether a candidate that did not take up a grant is passed over for now (R5).
    fn passes_over(&self, election: &Election, name: &Identity, timing: &ElectorTiming) -> bool {
        self.failed == Some(name) || election.passes_over(name, self.now, timing)
    }
}
