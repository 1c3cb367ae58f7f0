//! The worlds that the table varies, and the words of its rows.

use std::time::Duration;

use super::super::clocks::{PEERS_APART, UNLIKE, WORST};
use super::super::run::{Expectation, Full, ModelLock, ModelMode, Run, Start, Timing};
use super::super::store::{Fence, Interference, Lax};
use super::super::witness::Witnesses;

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
    rejoins: false,
    pinged: false,
    electors_write: true,
    ranked: true,
    lock: None,
    group: false,
    best: false,
    full: Full::Same,
    expectation: Expectation::Safe(Witnesses::empty()),
};
/// A renewal is sent in each of three ticks, while the one before has no answer.
pub(super) const THREE_TICKS: Timing = Timing {
    lease: 9,
    belief: 6,
    ..Timing::USUAL
};
/// Messages are less unruly, which makes room for other things.
pub(super) const ORDERLY: Run = Run {
    orphans: 0,
    lost_replies: false,
    ..BASE
};
/// Candidates are pinged.
pub(super) const PINGED: Run = Run {
    pings: true,
    timing: Timing {
        passed_over: 2,
        ..Timing::USUAL
    },
    ..ORDERLY
};
/// Hand-overs are held back where they fail, and where they are many (R23).
pub(super) const HELD_BACK: Run = Run {
    timing: Timing {
        preemptions: (3, 1),
        ..PINGED.timing
    },
    ..PINGED
};
/// Three candidates. Where all ack at once, the last of them comes to lead only where the others do not accept in time
/// or are not known.
pub(super) const THREE: Run = Run {
    candidates: 3,
    timing: Timing {
        passed_over: 6,
        ..Timing::USUAL
    },
    ..ORDERLY
};
/// Two leases of a group, and two processes that stand for both.
pub(super) const GROUPED: Run = Run {
    timing: Timing {
        preemptions: (3, 1),
        ..Timing::USUAL
    },
    ranked: false,
    group: true,
    lagging: 0,
    slow_posts: false,
    restarts: false,
    ..ORDERLY
};
/// Two processes in plain mode: the one that waits has the faster clock.
pub(super) const PLAIN: Run = Run {
    mixes: UNLIKE,
    electors: 0,
    lagging: 0,
    mode: ModelMode::Plain,
    ranked: false,
    ..ORDERLY
};
/// Two candidates in auto mode, and an elector.
pub(super) const AUTO: Run = Run {
    electors: 1,
    mode: ModelMode::Auto,
    ..PLAIN
};

/// An elector, and the elector that is built in, whose lock it takes.
pub(super) const LOCK: Run = Run {
    mixes: PEERS_APART,
    releases: true,
    grace: Some(Duration::ZERO),
    lock: Some(BUILTIN),
    ..PLAIN
};

/// A holder renews as often as it likes, also twice in a tick.
pub(super) const RENEWS_AT_WILL: Timing = Timing {
    renew: 0,
    ..Timing::USUAL
};

/// A stranger deletes the Lease.
pub(super) const DELETED: Interference = Interference {
    deletions: 1,
    ..Interference::NONE
};
/// A stranger deletes it twice.
pub(super) const DELETED_TWICE: Interference = Interference {
    deletions: 2,
    ..Interference::NONE
};
/// A stranger makes the Lease look newborn.
pub(super) const BLANKED: Interference = Interference {
    blanks: 1,
    ..Interference::NONE
};
/// The same twice.
pub(super) const BLANKED_TWICE: Interference = Interference {
    blanks: 2,
    ..Interference::NONE
};
/// A stranger takes the label away, and makes the Lease look newborn, label and all.
pub(super) const UNLABELLED: Interference = Interference {
    unlabels: 1,
    ..BLANKED
};
/// A stranger releases another client's term, as client-go would after a pause.
pub(super) const WIPED: Interference = Interference {
    wipes: 1,
    ..Interference::NONE
};
/// A candidate's object is deleted, and only the electors notice.
pub(super) const UNKNOWN: Interference = Interference {
    object_deletions: 1,
    ..Interference::NONE
};

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
