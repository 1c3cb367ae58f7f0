//! What a step decides, as data: effects, the reason, and when to ask again.

use std::fmt;
use std::time::Duration;

use crate::candidacy::Rejection;
use crate::lease::{LeaseRecord, LeaseWrite};
use crate::names::{Identity, ResourceVersion, Term, Uid};
use crate::renumber::{Renumber, Renumbering};
use crate::resolution::Conflict;
use crate::strategy::Strategy;
use crate::time::{Instant, Timestamp};

/// The outcome of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the step amounts to, in one word.
    pub action: Action,
    /// Writes to perform now, in this order.
    pub effects: Vec<Effect>,
    /// When to step again if nothing is seen before.
    pub wake_at: Option<Instant>,
    /// Why.
    pub reason: Reason,
}

/// A write to perform. Each names the revision that was judged (R2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// POST a born record. It may land late, so it names no holder.
    Create(LeaseRecord),
    /// PUT a Lease: a grant, a preference, its withdrawal, or a stamp of the strategy.
    Write(LeaseWrite),
    /// PUT `pingTime` of a candidate: a question, its repetition, or its settlement (R15).
    Ping {
        /// The candidate.
        name: Identity,
        /// Its uid.
        uid: Uid,
        /// Its revision that was judged.
        version: ResourceVersion,
        /// The pingTime to write.
        ping: Timestamp,
    },
    /// DELETE a candidate that has been silent for its validity and left a last question unanswered.
    Collect {
        /// The candidate.
        name: Identity,
        /// Its uid.
        uid: Uid,
        /// Its revision that was judged.
        version: ResourceVersion,
    },
}

/// What a step amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing is to be done.
    None,
    /// Something is to be waited for.
    Wait,
    /// Candidates are asked.
    Ping,
    /// The Lease is created, unheld.
    Create,
    /// The Lease is granted.
    Grant,
    /// The holder is asked to make room.
    Prefer,
    /// The holder is no longer asked to make room.
    Withdraw,
    /// The holder is replaced by a placeholder, since it cannot be asked to make room.
    Reserve,
    /// The Lease is left to others.
    Leave,
}

/// Why a lease may be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vacancy {
    /// Its holder released it.
    Released,
    /// It is unheld, and was provably absent or unchanged for so long that nobody can lead (R6).
    Unheld,
    /// Its record has not changed for its whole duration (R4).
    Expired {
        /// Whose term ended.
        holder: Identity,
        /// The duration of the record.
        after: Duration,
    },
    /// A grant was not accepted in time (R5).
    NotAccepted {
        /// Who did not accept.
        holder: Identity,
        /// The accept window.
        after: Duration,
    },
    /// A placeholder has stood for its whole duration (R3 d, R4).
    Reserved {
        /// Whom it replaced.
        from: Identity,
        /// The duration of the placeholder.
        after: Duration,
    },
}

/// Why a step decided as it did. `Display` is one line for the log and for `elector explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No complete list has been seen.
    NotSynced,
    /// No candidate names this lease.
    NoCandidate,
    /// No candidate can be elected; the first by name and what it lacks.
    NoEligible {
        /// The candidate.
        name: Identity,
        /// What it lacks.
        rejection: Rejection,
        /// How many others there are.
        others: usize,
    },
    /// Candidates disagree on the strategy.
    StrategyConflict(Conflict),
    /// The strategy belongs to somebody else.
    ForeignStrategy(Strategy),
    /// The Lease does not exist.
    Missing,
    /// The Lease was created; the watch has not brought it yet.
    AwaitCreated,
    /// Unheld, but somebody may still believe that it leads (R6).
    AwaitProof {
        /// How much longer.
        remaining: Duration,
    },
    /// A grant has not been accepted yet.
    AwaitAccept {
        /// The electee.
        holder: Identity,
    },
    /// The holder is late; standbys are being asked, so that the answer is in at expiry.
    HolderLate {
        /// The late holder.
        holder: Identity,
        /// Who would be granted the lease.
        next: Option<Identity>,
    },
    /// Candidates have been asked.
    AwaitAnswer(Vec<Identity>),
    /// Nobody answers.
    NobodyAnswers(Vec<Identity>),
    /// The holder is the best.
    HolderIsBest(Identity),
    /// The holder is no candidate: a plain client, left alone while it renews.
    HolderIsNoCandidate(Identity),
    /// A better candidate exists, but this holder cannot be asked: the server drops `spec.preferredHolder` and the
    /// holder reads nothing else.
    HolderCannotYield {
        /// The holder.
        holder: Identity,
        /// The better candidate.
        better: Identity,
    },
    /// A holder that cannot be asked to yield is replaced by a placeholder (R3 d).
    Reserved {
        /// The better candidate.
        better: Identity,
        /// The holder.
        holder: Identity,
        /// Why it is better, as a fragment that follows the candidate's name.
        because: String,
        /// How long the placeholder stands.
        lasts: Duration,
    },
    /// A placeholder stands; whom it replaced may lead until it expires (R3 d).
    AwaitReserved {
        /// Whom it replaced.
        from: Identity,
        /// Who would be granted the lease.
        next: Option<Identity>,
        /// How much longer.
        remaining: Duration,
    },
    /// Better candidates exist and do not answer.
    BetterIsSilent {
        /// The holder.
        holder: Identity,
        /// The better candidates.
        silent: Vec<Identity>,
    },
    /// The holder has been asked to make room.
    AwaitYield {
        /// The holder.
        holder: Identity,
        /// For whom.
        preferred: Identity,
    },
    /// The lease is granted.
    Granted {
        /// The electee.
        to: Identity,
        /// The new term.
        term: Term,
        /// Why the lease was free.
        vacancy: Vacancy,
        /// Why this one, as a fragment that follows its name.
        because: String,
        /// Better ones that did not answer.
        silent: Vec<Identity>,
    },
    /// The holder is asked to make room.
    Preferred {
        /// The better candidate.
        preferred: Identity,
        /// The holder.
        holder: Identity,
        /// Why, as a fragment that follows the candidate's name.
        because: String,
    },
    /// The holder is no longer asked to make room.
    Withdrawn {
        /// Whom it was to make room for.
        preferred: Identity,
        /// The holder.
        holder: Identity,
        /// Why, as a fragment that follows the candidate's name.
        because: &'static str,
    },
}

// === impl Effect ===

impl Renumber for Effect {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Create(record) => record.renumber(by),
            Self::Write(write) => write.renumber(by),
            Self::Ping { version, ping, .. } => {
                version.renumber(by);
                by.candidate_time(ping);
            }
            Self::Collect { version, .. } => version.renumber(by),
        }
    }
}

// === impl Action ===

impl Action {
    /// The word that `elector explain` prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Wait => "wait",
            Self::Ping => "ping",
            Self::Create => "create",
            Self::Grant => "grant",
            Self::Prefer => "prefer",
            Self::Withdraw => "withdraw",
            Self::Reserve => "reserve",
            Self::Leave => "leave",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Vacancy ===

impl fmt::Display for Vacancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the lease is released"),
            Self::Unheld => f.write_str("the lease is unheld and nobody can lead any more"),
            Self::Expired { holder, after } => {
                write!(f, "{holder} has not renewed for {}s", after.as_secs())
            }
            Self::NotAccepted { holder, after } => {
                write!(
                    f,
                    "{holder} has not accepted its grant within {}s",
                    after.as_secs()
                )
            }
            Self::Reserved { from, after } => {
                write!(
                    f,
                    "the lease was reserved for {}s, and {from} cannot lead any more",
                    after.as_secs()
                )
            }
        }
    }
}

// === impl Reason ===

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSynced => f.write_str("leases and candidates have not been listed yet"),
            Self::NoCandidate => f.write_str("no candidate names this lease"),
            Self::NoEligible {
                name,
                rejection,
                others,
            } => {
                write!(f, "no eligible candidate: {name}: {rejection}")?;
                match others {
                    0 => Ok(()),
                    more => write!(f, " (and {more} more)"),
                }
            }
            Self::StrategyConflict(conflict) => conflict.fmt(f),
            Self::ForeignStrategy(strategy) => {
                write!(f, "strategy {strategy} is decided by its own elector")
            }
            Self::Missing => f.write_str("the lease does not exist"),
            Self::AwaitCreated => f.write_str("the lease has just been created"),
            Self::AwaitProof { remaining } => write!(
                f,
                "the lease is unheld, but a former holder may lead for another {:.1}s",
                remaining.as_secs_f64()
            ),
            Self::AwaitAccept { holder } => write!(f, "{holder} has not accepted its grant yet"),
            Self::HolderLate { holder, next } => {
                write!(f, "{holder} is late with its renewal; ")?;
                match next {
                    Some(next) => write!(f, "{next} is next"),
                    None => f.write_str("standbys are asked"),
                }
            }
            Self::AwaitAnswer(names) => write!(f, "waiting for the answer of {}", List(names)),
            Self::NobodyAnswers(names) => write!(f, "no candidate answers: {}", List(names)),
            Self::HolderIsBest(holder) => write!(f, "{holder} leads and no candidate is better"),
            Self::HolderIsNoCandidate(holder) => {
                write!(
                    f,
                    "{holder} holds the lease without being a candidate, and is left alone while it renews"
                )
            }
            Self::HolderCannotYield { holder, better } => write!(
                f,
                "{better} is better, but {holder} cannot be asked to yield: the server drops spec.preferredHolder \
                 and {holder} does not read the annotation"
            ),
            Self::Reserved {
                better,
                holder,
                because,
                lasts,
            } => write!(
                f,
                "{holder} cannot be asked to yield, so the lease is reserved for {}s, until it must have stopped: \
                 {better} {because}",
                lasts.as_secs()
            ),
            Self::AwaitReserved {
                from,
                next,
                remaining,
            } => {
                f.write_str("reserved")?;
                if let Some(next) = next {
                    write!(f, " for {next}")?;
                }
                write!(
                    f,
                    ": {from} could not be asked to yield; grant in {:.1}s",
                    remaining.as_secs_f64()
                )
            }
            Self::BetterIsSilent { holder, silent } => {
                write!(
                    f,
                    "{holder} leads; better candidates do not answer: {}",
                    List(silent)
                )
            }
            Self::AwaitYield { holder, preferred } => {
                write!(f, "{holder} has been asked to make room for {preferred}")
            }
            Self::Granted {
                to,
                vacancy,
                because,
                silent,
                ..
            } => {
                write!(f, "{vacancy}; {to} {because}")?;
                if silent.is_empty() {
                    return Ok(());
                }
                write!(f, "; better ones do not answer: {}", List(silent))
            }
            Self::Preferred {
                preferred,
                holder,
                because,
            } => {
                write!(f, "{holder} is asked to make room: {preferred} {because}")
            }
            Self::Withdrawn {
                preferred,
                holder,
                because,
            } => {
                write!(
                    f,
                    "{holder} need not make room any more: {preferred} {because}"
                )
            }
        }
    }
}

/// Names, as many as fit into a line: a lease may have thousands of candidates.
struct List<'a>(&'a [Identity]);

impl List<'_> {
    const NAMED: usize = 8;
}

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().take(Self::NAMED).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{name}")?;
        }
        match self.0.len().saturating_sub(Self::NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_fits_into_a_line_whoever_is_silent() {
        let names = |count: usize| {
            let name = |index| Identity::new(format!("c-{index}")).unwrap();
            Reason::NobodyAnswers((0..count).map(name).collect()).to_string()
        };
        assert_eq!(names(2), "no candidate answers: c-0, c-1");
        assert_eq!(
            names(5000),
            "no candidate answers: c-0, c-1, c-2, c-3, c-4, c-5, c-6, c-7 and 4992 more"
        );
    }
}
