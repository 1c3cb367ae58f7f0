//! Reservations (R3 d), where holders are client-go's and the server drops `preferredHolder`.

use std::time::Duration;

use super::super::clocks::{ALL, SOME};
use super::super::mutant::Mutant;
use super::super::reservation::{Counts, Reservation};
use super::super::run::{Expectation, Run};
use super::super::store::{Interference, Property};
use super::super::witness::Witnesses;
use super::base::{BASE, NO_INTERFERENCE, PINGED};

/// How long a holder waits for a reply before it gives up.
const TIMEOUT: Duration = Duration::from_secs(2);

/// One elector that reserves, and messages that are less unruly than in the main world.
const RESERVING: Run = Run {
    reservation: Some(Reservation::RULES),
    ..BASE
};

/// Every run about reservations.
pub(super) fn runs() -> Vec<Run> {
    let mut runs = safe();
    runs.extend(broken());
    runs
}

fn safe() -> Vec<Run> {
    let seen = Witnesses::LEADS | Witnesses::RESERVES | Witnesses::FOLLOWS;
    let safe = |id, about| Run {
        id,
        about,
        expectation: Expectation::Safe(seen),
        ..RESERVING
    };
    let wiped = Interference {
        wipes: 1,
        ..NO_INTERFERENCE
    };
    let deleted = Interference {
        deletions: 1,
        ..NO_INTERFERENCE
    };
    vec![
        Run {
            mixes: ALL,
            best: true,
            expectation: Expectation::SafeAndLive(seen),
            ..safe(
                "MC-R0",
                "reserved from a client-go holder; the best comes to lead",
            )
        },
        Run {
            electors: 2,
            slow_electors: true,
            orphans: 0,
            ..safe(
                "MC-R1",
                "2 electors that reserve, whose writes take their time",
            )
        },
        Run {
            electors: 2,
            reservation: Some(Reservation {
                by: [true, false],
                ..Reservation::RULES
            }),
            ..safe("MC-R2", "2 electors, one of them does not reserve")
        },
        Run {
            electors: 2,
            interference: wiped,
            ..safe(
                "MC-R3",
                "a client-go process of long ago releases the placeholder",
            )
        },
        Run {
            mixes: SOME,
            interference: deleted,
            ..safe("MC-R4", "the lease is deleted, a placeholder too")
        },
        Run {
            mixes: ALL,
            reservation: Some(Reservation {
                counts: Counts::FromReply(TIMEOUT),
                duration: Duration::from_secs(9),
                ..Reservation::RULES
            }),
            ..safe(
                "MC-R5",
                "belief counts from the reply, W covers the timeout",
            )
        },
        Run {
            pings: true,
            timing: PINGED.timing,
            orphans: 0,
            lost_replies: false,
            best: true,
            expectation: Expectation::SafeAndLive(seen),
            ..safe(
                "MC-R6",
                "candidates pinged and acking; the best comes to lead",
            )
        },
    ]
}

fn broken() -> Vec<Run> {
    let broken = |id, rule, about, mutant| Run {
        id,
        breaks: Some(rule),
        about,
        mutant: Some(mutant),
        expectation: Expectation::Unsafe(Property::OneBeliever),
        ..RESERVING
    };
    vec![
        broken(
            "MC-R-brief",
            "R3 d",
            "placeholder below the holder's duration",
            Mutant::ReserveBriefly,
        ),
        broken(
            "MC-R-once",
            "R3 d",
            "granted at once in the holder's place",
            Mutant::GrantInstead,
        ),
        Run {
            electors: 2,
            ..broken(
                "MC-R-clock",
                "R4",
                "placeholder expires by its renewTime",
                Mutant::ReservedByRenewTime,
            )
        },
        Run {
            electors: 2,
            slow_electors: true,
            expectation: Expectation::Unsafe(Property::AllowedMove),
            ..broken(
                "MC-R-cas",
                "R2",
                "reserved without a base version",
                Mutant::ReserveWithoutBase,
            )
        },
        Run {
            interference: Interference {
                wipes: 1,
                ..NO_INTERFERENCE
            },
            ..broken(
                "MC-R-token",
                "R3 d",
                "placeholder without a token, released by client-go",
                Mutant::ReserveWithoutToken,
            )
        },
        Run {
            id: "MC-R-reply",
            breaks: Some("R8"),
            about: "belief counts from the reply, W does not cover it",
            reservation: Some(Reservation {
                counts: Counts::FromReply(TIMEOUT),
                ..Reservation::RULES
            }),
            expectation: Expectation::Unsafe(Property::OneBeliever),
            ..RESERVING
        },
        Run {
            id: "MC-R-off",
            breaks: Some("R3 d"),
            about: "no reservation: the holder never makes room",
            best: true,
            reservation: Some(Reservation {
                by: [false, false],
                ..Reservation::RULES
            }),
            expectation: Expectation::Trapped,
            ..RESERVING
        },
    ]
}
