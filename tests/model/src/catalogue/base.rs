//! The worlds that the table varies, and the words of its rows.

use std::time::Duration;

use super::super::clocks::{PEERS_APART, TICK, UNLIKE, WORST};
use super::super::run::{Expectation, Full, LifeRules, ModelLock, ModelMode, Run, Start, Timing};
use super::super::store::{Fence, Interference, Lax};
use super::super::witness::Witnesses;

/// Constants that are another one but for some fields.
macro_rules! varied {
    ($($(#[$doc:meta])* $name:ident: $of:ident = $base:path { $($field:ident: $value:expr),* };)*) => {
        $($(#[$doc])* pub(super) const $name: $of = $of { $($field: $value,)* ..$base };)*
    };
}

/// Two candidates that count as alive, one elector, the worst clocks.
pub(super) const BASE: Run = Run {
    id: "",
    about: "",
    mixes: WORST,
    timing: Timing::USUAL,
    candidates: 2,
    electors: 1,
    lagging: 1,
    backlog: 1,
    slow_electors: false,
    slow_posts: true,
    restarts: true,
    next_life: None,
    pings: false,
    releases: false,
    orphans: 1,
    lost_replies: true,
    start: Start::Released,
    interference: Interference::NONE,
    refused_candidate: None,
    one_name: false,
    announced: false,
    fence: Fence::Base,
    lax: Lax::Nothing,
    mutant: None,
    mode: ModelMode::Elected,
    flag: None,
    grace: None,
    renames: false,
    slow_stops: false,
    drifts: false,
    rejoins: false,
    pinged: false,
    electors_write: true,
    ranked: true,
    lock: None,
    group: false,
    doubles: false,
    operated: false,
    hurries: true,
    forgets: true,
    best: false,
    full: Full::Same,
    expectation: Expectation::Safe(Witnesses::empty()),
};
varied! {
    /// A renewal is sent in each of three ticks, while the one before has no answer.
    THREE_TICKS: Timing = Timing::USUAL { lease: 9, belief: 6 };
    /// A holder renews as often as it likes, also twice in a tick.
    RENEWS_AT_WILL: Timing = Timing::USUAL { renew: 0 };

    /// Messages are less unruly, which makes room for other things.
    ORDERLY: Run = BASE { orphans: 0, lost_replies: false };
    /// Candidates are pinged.
    PINGED: Run = ORDERLY { pings: true, timing: Timing { passed_over: 2, ..Timing::USUAL } };
    /// Hand-overs are held back where they fail, and where they are many (R23).
    HELD_BACK: Run = PINGED { timing: Timing { preemptions: (3, 1), ..PINGED.timing } };
    /// Three candidates. Where all ack at once, the last of them comes to lead only where the others do not accept in time
    /// or are not known.
    THREE: Run = ORDERLY { candidates: 3, timing: Timing { passed_over: 6, ..Timing::USUAL } };
    /// Two leases of a group, and two processes that stand for both.
    GROUPED: Run = ORDERLY {
        timing: Timing { preemptions: (3, 1), ..Timing::USUAL }, ranked: false, group: true, lagging: 0,
        slow_posts: false, restarts: false
    };
    /// Two processes in plain mode: the one that waits has the faster clock.
    PLAIN: Run = ORDERLY { mixes: UNLIKE, electors: 0, lagging: 0, mode: ModelMode::Plain, ranked: false };
    /// Two candidates in auto mode, and an elector.
    AUTO: Run = PLAIN { electors: 1, mode: ModelMode::Auto };
    /// An elector, and the elector that is built in, whose lock it takes.
    LOCK: Run = PLAIN { mixes: PEERS_APART, releases: true, grace: Some(Duration::ZERO), lock: Some(BUILTIN) };

    /// A stranger deletes the Lease.
    DELETED: Interference = Interference::NONE { deletions: 1 };
    /// A stranger deletes it twice.
    DELETED_TWICE: Interference = Interference::NONE { deletions: 2 };
    /// A stranger makes the Lease look newborn.
    BLANKED: Interference = Interference::NONE { blanks: 1 };
    /// The same twice.
    BLANKED_TWICE: Interference = Interference::NONE { blanks: 2 };
    /// A stranger takes the label away, and makes the Lease look newborn, label and all.
    UNLABELLED: Interference = BLANKED { unlabels: 1 };
    /// A stranger releases another client's term, as client-go would after a pause.
    WIPED: Interference = Interference::NONE { wipes: 1 };
    /// A candidate's object is deleted, and only the electors notice.
    UNKNOWN: Interference = Interference::NONE { object_deletions: 1 };
}

/// The lock of the elector that is built in, which an elector takes.
pub(super) const BUILTIN: ModelLock = ModelLock {
    electors: 1,
    displaces: true,
    quiet: Duration::from_secs(Timing::USUAL.lease),
};
/// The lock of our own electors.
pub(super) const OWN: ModelLock = ModelLock {
    electors: 2,
    displaces: false,
    quiet: Duration::ZERO,
};

/// Flags of an elector that differ from the usual ones in all that a life may change.
pub(super) const OTHER_FLAGS: LifeRules = LifeRules {
    lease: Timing::USUAL.lease + TICK.as_secs(),
    accept: Timing::USUAL.accept * 2,
    reversed: true,
};

/// A candidate leads, a crash is taken over, and a better candidate comes to lead.
pub(super) const LED: Witnesses = Witnesses::LEADS
    .union(Witnesses::TAKES_OVER)
    .union(Witnesses::YIELDS);
/// The same, and the better one is written by the one before.
pub(super) const HANDED_OVER: Witnesses = LED.union(Witnesses::HANDS_OVER);
/// A process acquires an expired lease, and one that was released.
pub(super) const TAKEN: Witnesses = Witnesses::LEADS
    .union(Witnesses::TAKES_EXPIRED)
    .union(Witnesses::TAKES_RELEASED);
/// The same where there is no Lease at first, and an unheld one that nothing proves free.
pub(super) const TAKEN_NEW: Witnesses = Witnesses::LEADS
    .union(Witnesses::TAKES_EXPIRED)
    .union(Witnesses::TAKES_UNPROVEN);
/// A grant is accepted beside an acquisition.
pub(super) const BESIDE: Witnesses = Witnesses::LEADS
    .union(Witnesses::TAKES_EXPIRED)
    .union(Witnesses::BESIDE);

/// H in ticks of a slow clock, W in ticks of a fast one.
pub(super) const fn ticks(belief: u64, lease: u64) -> Timing {
    Timing {
        lease: lease * 3,
        belief: belief * 2,
        ..Timing::USUAL
    }
}
