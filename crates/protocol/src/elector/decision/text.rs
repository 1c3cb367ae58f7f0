//! Decisions in words: one line each, for the log and for `elector explain`.

use std::fmt;

use crate::elector::decision::{GrantCause, Reason};
use crate::names::Identity;

/// The names that fit into a line: a lease may have thousands of candidates.
struct List<'a>(&'a [Identity]);

// === impl GrantCause ===

impl fmt::Display for GrantCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the lease is released"),
            Self::Unheld => f.write_str("the lease is unheld and no former holder can still lead"),
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
                    None => f.write_str("standbys are pinged"),
                }
            }
            Self::AwaitAck(names) => write!(f, "waiting for the ack of {}", List(names)),
            Self::NoAck(names) => write!(f, "no candidate answers: {}", List(names)),
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
            Self::BetterIsSilent { holder, silent } => {
                write!(
                    f,
                    "{holder} leads; better candidates do not answer: {}",
                    List(silent)
                )
            }
            Self::HeldBack {
                holder,
                better,
                because,
                remaining,
            } => write!(
                f,
                "{better} is better, but {holder} is not asked to make room for another {:.1}s: {because}",
                remaining.as_secs_f64()
            ),
            Self::Frozen {
                holder,
                better,
                remaining,
            } => write!(
                f,
                "{better} is better, but {holder} is not asked to make room: the lease is frozen for another {:.1}s",
                remaining.as_secs_f64()
            ),
            Self::AwaitYield { holder, preferred } => {
                write!(f, "{holder} has been asked to make room for {preferred}")
            }
            Self::Granted {
                to,
                cause,
                because,
                silent,
                ..
            } => {
                write!(f, "{cause}; {to} {because}")?;
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
                    "{holder} is no longer asked to make room: {preferred} {because}"
                )
            }
        }
    }
}

// === impl List ===

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
    fn a_reason_fits_into_a_line_however_many_are_silent() {
        let names = |count: usize| {
            let name = |index| Identity::new(format!("c-{index}")).unwrap();
            Reason::NoAck((0..count).map(name).collect()).to_string()
        };
        assert_eq!(names(2), "no candidate answers: c-0, c-1");
        let expected = "no candidate answers: c-0, c-1, c-2, c-3, c-4, c-5, c-6, c-7 and 4992 more";
        assert_eq!(names(5000), expected);
    }
}
