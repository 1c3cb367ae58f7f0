//! Mutants that end in two believers, in a token that does not grow, or in an electee that was never pinged.

use super::super::mutant::Mutant;
use super::super::run::{Expectation, Run, Start};
use super::super::store::{Fence, Interference, Lax, Property};
use super::base::{BASE, BLANKED, DELETED, ORDERLY, PINGED, RENEWS_AT_WILL, WIPED, broken, safe};

/// The runs of this file.
pub(super) fn runs() -> Vec<Run> {
    [belief(), writes(), expiry(), terms(), vacancies()].concat()
}

/// When a candidate believes.
fn belief() -> Vec<Run> {
    vec![
        broken(
            "MC-M3",
            "R8",
            "belief counted from the reply",
            Mutant::CountFromReply,
            BASE,
        ),
        broken(
            "MC-M4",
            "R8",
            "lead on an event of the watch",
            Mutant::LeadByEvent,
            BASE,
        ),
        broken(
            "MC-M4b",
            "R8",
            "lead after a fresh read",
            Mutant::LeadByRead,
            BASE,
        ),
        broken(
            "MC-M5",
            "R12",
            "release first, stop after",
            Mutant::ReleaseFirst,
            BASE,
        ),
        Run {
            one_name: true,
            ..broken(
                "MC-M13",
                "R1, R8",
                "two processes of one name, which trust it",
                Mutant::TrustTheName,
                BASE,
            )
        },
        broken(
            "MC-M14",
            "R11",
            "a holder shortens W",
            Mutant::Shorten,
            BASE,
        ),
        Run {
            timing: RENEWS_AT_WILL,
            ..broken(
                "MC-M14b",
                "R11",
                "it shortens H too, but counts late replies",
                Mutant::ShortenAndClamp,
                BASE,
            )
        },
        broken(
            "MC-M19",
            "R9",
            "belief ends when a timer runs",
            Mutant::BelieveUntilEvent,
            BASE,
        ),
        broken(
            "MC-M20",
            "R9",
            "the holder's clock stops in suspend",
            Mutant::ClockStops,
            BASE,
        ),
    ]
}

/// The writes of the Lease.
fn writes() -> Vec<Run> {
    let forbidden = |run| Run {
        expectation: Expectation::Unsafe(Property::AllowedMove),
        ..run
    };
    let old_record = |id, rule, about| Run {
        lagging: 0,
        releases: true,
        ..broken(id, rule, about, Mutant::ReleaseByOldRecord, BASE)
    };
    let lax = |id, rule, about, lax, run| Run {
        lax,
        breaks: Some(rule),
        expectation: Expectation::Unsafe(Property::OneBeliever),
        ..safe(id, about, run)
    };
    vec![
        forbidden(old_record(
            "MC-M6",
            "R12",
            "release decided by the old record: a wiped term",
        )),
        old_record(
            "MC-M6b",
            "R12",
            "release decided by the old record: two leaders",
        ),
        lax(
            "MC-M7",
            "R2",
            "electors write without a condition",
            Lax::Electors,
            BASE,
        ),
        lax(
            "MC-M8",
            "R2",
            "holders write without a condition",
            Lax::Candidates,
            BASE,
        ),
        lax(
            "MC-S12b",
            "R2",
            "any PUT recreates a deleted lease",
            Lax::AnyPut,
            Run {
                interference: DELETED,
                ..BASE
            },
        ),
        Run {
            start: Start::Absent,
            interference: DELETED,
            ..broken(
                "MC-RT1",
                "R2",
                "grants by POST, which may land late",
                Mutant::GrantByPost,
                BASE,
            )
        },
        Run {
            start: Start::Absent,
            interference: DELETED,
            ..broken(
                "MC-RT2",
                "R2",
                "grants by POST on unanimous acks",
                Mutant::PostOnUnanimity,
                PINGED,
            )
        },
    ]
}

/// When a live record is taken from its holder.
fn expiry() -> Vec<Run> {
    vec![
        Run {
            lagging: 0,
            ..broken(
                "MC-M1",
                "R4",
                "renewTime compared with a clock that is a tick ahead",
                Mutant::ExpireByRenewTime(3),
                BASE,
            )
        },
        broken(
            "MC-M10",
            "R4",
            "a restarted elector expires the record",
            Mutant::RestartExpires,
            BASE,
        ),
        broken(
            "MC-M11",
            "R7",
            "a preference rewrites the duration",
            Mutant::PreferringShortens,
            BASE,
        ),
        broken(
            "MC-M12",
            "R7",
            "taken a tick after the preference was written",
            Mutant::TakeFromNotified,
            BASE,
        ),
        broken(
            "MC-M16",
            "R11",
            "renewals look alike to the electors",
            Mutant::RepeatRenewTime,
            BASE,
        ),
    ]
}

/// The worth of a token, and of an electee.
fn terms() -> Vec<Run> {
    let stale = |id, rule, about, interference| Run {
        breaks: Some(rule),
        fence: Fence::Term,
        interference,
        expectation: Expectation::Unsafe(Property::TokenGrows),
        ..safe(id, about, BASE)
    };
    vec![
        Run {
            fence: Fence::Term,
            expectation: Expectation::Unsafe(Property::TokenGrows),
            ..broken(
                "MC-M17",
                "R5",
                "a grant keeps the term",
                Mutant::KeepTerm,
                BASE,
            )
        },
        stale(
            "MC-M17b",
            "R14",
            "the term as the token, a deletion",
            DELETED,
        ),
        stale(
            "MC-M17c",
            "R14",
            "the term as the token, a lease blanked",
            BLANKED,
        ),
        Run {
            expectation: Expectation::Unsafe(Property::ElecteeAcked),
            ..broken(
                "MC-M21",
                "R15",
                "elected without an ack",
                Mutant::NoPings,
                PINGED,
            )
        },
    ]
}

/// When a lease without a holder is free.
fn vacancies() -> Vec<Run> {
    let with = |interference, run| Run {
        interference,
        ..run
    };
    vec![
        with(
            DELETED,
            broken(
                "MC-M9",
                "R6",
                "missing lease granted at once",
                Mutant::MissingIsFree,
                BASE,
            ),
        ),
        with(
            DELETED,
            broken(
                "MC-M9b",
                "R6",
                "missing lease granted at once, if never seen",
                Mutant::NeverSeenIsFree,
                BASE,
            ),
        ),
        with(
            DELETED,
            broken(
                "MC-F3",
                "R6",
                "born record granted at once",
                Mutant::BornIsFree,
                BASE,
            ),
        ),
        with(
            BLANKED,
            broken(
                "MC-X1",
                "R6",
                "unproven record counted from its uid",
                Mutant::CountFromUid,
                BASE,
            ),
        ),
        with(
            WIPED,
            broken(
                "MC-X2",
                "R3",
                "release trusted whatever the token",
                Mutant::TrustAnyRelease,
                BASE,
            ),
        ),
        with(
            Interference {
                object_deletions: 1,
                ..BLANKED
            },
            broken(
                "MC-X3",
                "R6",
                "unanimous acks, an object deleted",
                Mutant::GrantOnUnanimity,
                PINGED,
            ),
        ),
        with(
            Interference {
                creations: 1,
                ..DELETED
            },
            broken(
                "MC-X4",
                "R6",
                "an unheld record expires by its duration",
                Mutant::UnheldExpires,
                ORDERLY,
            ),
        ),
        with(
            BLANKED,
            broken(
                "MC-X6",
                "R6",
                "W known by what was seen alone",
                Mutant::SeenIsLongest,
                BASE,
            ),
        ),
    ]
}
