//! The rows: an id, its subject, the world that is varied, the mutant in it, its differences, and the verdict.

use std::time::Duration;

use super::super::clocks::{ALL, PEERS, SOME, TICK, UNLIKE, UNLIKE_PEERS, WORST};
use super::super::mutant::Mutant;
use super::super::run::Expectation::{Safe, SafeAndLive, Trapped, Unsafe};
use super::super::run::Full::{Grows, Only};
use super::super::run::{LifeRules, ModelLock, Run, Start::Absent, Timing};
use super::super::store::Property::{
    AllowedMove, ElecteeAcked, FreezeHolds, HeldBack, NeededMove, OneBeliever, Pauses, Stands,
    TokenGrows,
};
use super::super::store::{Fence, Interference, Lax};
use super::super::witness::Witnesses as Met;
use super::base::{
    AUTO, BASE, BESIDE, BLANKED, BLANKED_TWICE, BUILTIN, DELETED, DELETED_TWICE, GROUPED,
    HANDED_OVER, HELD_BACK, LED, LOCK, ORDERLY, OTHER_FLAGS, OWN, PINGED, PLAIN, RENEWS_AT_WILL,
    TAKEN, TAKEN_NEW, THREE, THREE_TICKS, UNKNOWN, UNLABELLED, WIPED, ticks,
};

macro_rules! worlds {
    ($($id:literal $about:literal: $base:ident $(with $mutant:ident $(($by:literal))?)?
        { $($field:ident $(: $value:expr)?),* } => $verdict:expr;)*) => {
        /// Every run, in the order of the table.
        pub fn runs() -> Vec<Run> {
            vec![$(Run {
                id: $id,
                about: $about,
                expectation: $verdict,
                $(mutant: Some(Mutant::$mutant $(($by))?),)?
                $($field $(: $value)?,)*
                ..$base
            }),*]
        }
    };
}

worlds! {
    // The rules as they are, in worlds that differ in what may go wrong.
    "MC-S0" "1 elector, candidates pinged and acking": PINGED
        { mixes: SOME, full: Grows(ALL, 1) } => Safe(HANDED_OVER);
    "MC-S1" "2 electors, whose writes take their time": ORDERLY
        { electors: 2, slow_electors: true, full: Grows(ALL, 1) } => Safe(HANDED_OVER);
    "MC-S2" "2 electors, candidates pinged and acking": PINGED
        { electors: 2, lagging: 0, full: Grows(WORST, 1) } => Safe(HANDED_OVER);
    "MC-G1" "short grants, W from the accept, orphans": BASE
        { electors: 2, releases: true, mixes: ALL, full: Only } => Safe(HANDED_OVER);
    "MC-G3" "short grants with A = W/3": ORDERLY
        { electors: 2, releases: true, timing: Timing { accept: 2, ..Timing::USUAL } } => Safe(HANDED_OVER);

    "MC-B1" "3 candidates, pinged and acking": PINGED
        { candidates: 3, full: Only } => Safe(HANDED_OVER | Met::THIRD);
    "MC-S5" "3 candidates, 2 electors": THREE
        { electors: 2, lagging: 0, interference: UNKNOWN } => Safe(HANDED_OVER | Met::THIRD);
    "MC-G2" "3 candidates, hand-offs, holders that let go": THREE
        { releases: true, interference: UNKNOWN, full: Only } => Safe(HANDED_OVER | Met::THIRD);
    "MC-Y2" "all rules, 3 candidates, 1 deletion": THREE
        { interference: Interference { deletions: 1, ..UNKNOWN }, full: Only } => Safe(HANDED_OVER | Met::THIRD | Met::RETURNS);
    "MC-S14" "all at once: 3 candidates, 2 electors": THREE
        { electors: 2, lagging: 0, releases: true, interference: Interference { deletions: 1, ..UNKNOWN }, full: Only }
        => Safe(HANDED_OVER | Met::THIRD | Met::RETURNS);

    // The fate of messages.
    "MC-S3" "three writes of one process under way": BASE
        { orphans: 2 } => Safe(HANDED_OVER | Met::TWO_MESSAGES);
    "MC-H1" "late answers to renewals, another under way": BASE { timing: THREE_TICKS } => Safe(HANDED_OVER | Met::TWO_MESSAGES);
    "MC-S4" "stop-watches on the record, not its revision": BASE
        { backlog: 2 } => Safe(HANDED_OVER | Met::SIGNALS);
    "MC-S10" "the holder writes its successor": BASE { releases: true } => Safe(HANDED_OVER);

    // The Lease is deleted, or was never there.
    "MC-S6" "a stranger deletes the lease": BASE { interference: DELETED } => Safe(LED | Met::RETURNS);
    "MC-F1" "no lease at first, and 2 deletions": ORDERLY
        { start: Absent, interference: DELETED_TWICE } => Safe(LED | Met::RETURNS);
    "MC-Y1" "all rules, 2 electors, 2 deletions": ORDERLY
        { electors: 2, interference: DELETED_TWICE, full: Only } => Safe(LED | Met::RETURNS);
    "MC-Y4" "all rules, all clocks, 1 deletion": ORDERLY
        { mixes: SOME, releases: true, interference: DELETED, full: Grows(ALL, 1) } => Safe(LED | Met::RETURNS);
    "MC-B3" "all at once: 2 electors, pings, 1 deletion": PINGED
        { electors: 2, lagging: 0, releases: true, interference: DELETED, full: Only } => Safe(LED | Met::RETURNS);
    "MC-S12" "a PUT on its last revision recreates a lease": BASE
        { interference: DELETED, lax: Lax::LastPut } => Safe(LED | Met::RETURNS);

    // Tokens are kept and compared.
    "MC-S8" "the term as the token, no deletion": BASE
        { releases: true, fence: Fence::Term(None) } => Safe(HANDED_OVER);
    "MC-S9" "our token, 2 deletions": ORDERLY
        { releases: true, interference: DELETED_TWICE, fence: Fence::Token(None) } => Safe(HANDED_OVER | Met::RETURNS);
    "MC-Y3" "our token, hand-offs, orphans, 1 deletion": BASE
        { interference: DELETED, fence: Fence::Token(None) } => Safe(HANDED_OVER | Met::RETURNS);

    // W against H by the clocks of the worst case: unsafe below equality, safe from there on.
    "MC-W-2-1" "W below H by the clocks": BASE { timing: ticks(2, 1) } => Unsafe(OneBeliever, "margins");
    "MC-W-2-2" "W equal to H by the clocks": BASE { timing: ticks(2, 2) } => Safe(HANDED_OVER);
    "MC-W-2-3" "W above H by the clocks": BASE { timing: ticks(2, 3) } => Safe(HANDED_OVER);
    "MC-W-3-2" "W below H by the clocks": BASE { timing: ticks(3, 2) } => Unsafe(OneBeliever, "margins");
    "MC-W-3-3" "W equal to H by the clocks": BASE { timing: ticks(3, 3) } => Safe(HANDED_OVER);
    "MC-W-3-4" "W above H by the clocks": BASE { timing: ticks(3, 4) } => Safe(HANDED_OVER);
    "MC-W-4-3" "W below H by the clocks": BASE { timing: ticks(4, 3) } => Unsafe(OneBeliever, "margins");
    "MC-W-4-4" "W equal to H by the clocks": BASE { timing: ticks(4, 4) } => Safe(HANDED_OVER);
    "MC-W-4-5" "W above H by the clocks": BASE { timing: ticks(4, 5) } => Safe(HANDED_OVER);

    // Changes of the Lease by strangers: the runs with a mutant, done right.
    "MC-X1-off" "a stranger blanks the lease": BASE { interference: BLANKED } => Safe(HANDED_OVER);
    "MC-X2-off" "a stranger releases another's term": BASE { interference: WIPED } => Safe(HANDED_OVER);
    "MC-X4-off" "the built-in recreates the lease": ORDERLY
        { interference: Interference { creations: 1, ..DELETED } } => Safe(LED | Met::RETURNS);
    "MC-X5" "two processes of one name, told apart by R8": BASE { one_name: true } => Safe(Met::LEADS);
    "MC-X6-off" "W known by what candidates announce": BASE
        { announced: true, interference: BLANKED } => Safe(HANDED_OVER);
    "MC-X7-off" "the best never accepts, and is passed over": PINGED
        { mixes: SOME, refused_candidate: Some(0) } => SafeAndLive(Met::LEADS | Met::YIELDS);

    // Mutants that turn out to be harmless.
    "MC-M1-off" "renewTime compared with clocks that agree": BASE with ExpireByRenewTime(0)
        { lagging: 0 } => Safe(HANDED_OVER);
    "MC-S7" "a holder shortens W and H, forgets old replies": BASE with ShortenAndForget
        { timing: RENEWS_AT_WILL, full: Only } => Safe(HANDED_OVER);
    "MC-S11" "an elector revokes its grants at once": BASE with RevokeGrants {} => Safe(HANDED_OVER);

    // Grants on unanimous acks are safe as long as no object is deleted, and are no rule of ours.
    "MC-S6b" "granted by POST on unanimity, landing at once": PINGED with PostOnUnanimity
        { slow_posts: false, interference: DELETED, full: Only } => Safe(LED | Met::RETURNS);
    "MC-S6c" "granted by POST on unanimity, 2 electors, 2 deletions": PINGED with PostOnUnanimity
        { electors: 2, lagging: 0, slow_posts: false, interference: DELETED_TWICE, full: Only }
        => Safe(LED | Met::RETURNS);
    "MC-F2" "born records granted on unanimity": PINGED with GrantOnUnanimity
        { start: Absent, interference: DELETED, full: Only } => Safe(LED | Met::RETURNS);
    "MC-X3-off" "unanimous acks, no object deleted": PINGED with GrantOnUnanimity
        { interference: BLANKED, full: Only } => Safe(HANDED_OVER);

    // Terms that an elector misses: its watch breaks, a term begins, and a stranger makes the Lease look as it did
    // before. These worlds have what no other has: the same unheld record twice. It takes a start without a Lease, so
    // that a born record is seen before the first term, or a stranger that empties the Lease twice.
    "MC-Q1" "an unproven record's stop-watch spans a gap": ORDERLY with SpanTheGap
        { start: Absent, electors: 2, interference: BLANKED } => Unsafe(OneBeliever, "R4, R6");
    "MC-Q1b" "absence and unheld time add up over a gap": ORDERLY with AddOverTheGap
        { start: Absent, electors: 2, interference: BLANKED } => Unsafe(OneBeliever, "R6");
    "MC-Q1-off" "a born record comes back, 2 electors": ORDERLY
        { start: Absent, electors: 2, interference: BLANKED, full: Only } => Safe(LED | Met::RECURS);
    "MC-Q2" "a born record comes back, 1 elector that misses its grant": BASE
        { start: Absent, slow_electors: true, interference: BLANKED } => Safe(LED | Met::RECURS);
    "MC-Q3" "a stranger empties the lease twice": ORDERLY
        { electors: 2, interference: BLANKED_TWICE, full: Only } => Safe(LED | Met::RECURS);
    "MC-Q4" "a deletion and an emptying, 2 electors": ORDERLY
        { start: Absent, electors: 2, interference: Interference { deletions: 1, ..BLANKED }, full: Only }
        => Safe(LED | Met::RECURS | Met::RETURNS);
    "MC-Q5" "a foreign release twice, and an emptying": ORDERLY
        { start: Absent, interference: Interference { wipes: 2, ..BLANKED } } => Safe(LED);
    "MC-Q6" "a foreign release of the first term": ORDERLY { start: Absent, interference: WIPED } => Safe(LED);
    "MC-Q7" "the built-in creates the lease, and again": ORDERLY
        { start: Absent, interference: Interference { creations: 2, ..DELETED } } => Safe(LED | Met::RETURNS);

    // From every state a leader, or the best one, is within reach without a fault; and where it is not.
    "MC-L0" "from every state the best comes to lead": PINGED { best: true } => SafeAndLive(HANDED_OVER);
    "MC-L1" "from every state a candidate comes to lead": BASE {} => SafeAndLive(HANDED_OVER);
    "MC-L2" "the best, whatever strangers did": ORDERLY
        { interference: Interference { blanks: 1, wipes: 1, ..DELETED }, best: true }
        => SafeAndLive(LED | Met::RETURNS);
    "MC-L3" "a candidate, with 2 electors": BASE
        { electors: 2, lagging: 0, full: Grows(WORST, 1) } => SafeAndLive(HANDED_OVER);
    "MC-L4" "the best, with 2 electors and pings": PINGED
        { electors: 2, lagging: 0, best: true, full: Only } => SafeAndLive(HANDED_OVER);
    "MC-HB1" "hand-overs to the best fail, and are held back": HELD_BACK
        { refused_candidate: Some(0) } => SafeAndLive(Met::LEADS | Met::YIELDS);
    "MC-HB2" "the best, with one hand-over in a while": HELD_BACK { best: true } => SafeAndLive(HANDED_OVER);
    "MC-HB3" "the same with 2 electors, which saw as much": HELD_BACK
        { electors: 2, lagging: 0, best: true, full: Only } => SafeAndLive(HANDED_OVER);
    "MC-D1" "the best refuses twice, and waits double": PINGED
        { refused_candidate: Some(0), restarts: false, lagging: 0, doubles: true }
        => SafeAndLive(Met::LEADS | Met::YIELDS | Met::FAILS_TWICE);
    "MC-D2" "preferences are withdrawn twice, and waits double": PINGED
        { restarts: false, lagging: 0, doubles: true, best: true }
        => SafeAndLive(HANDED_OVER | Met::FAILS_TWICE | Met::WITHDRAWN_TWICE);
    "MC-D3" "hand-overs fail twice, and are held back": HELD_BACK
        { restarts: false, lagging: 0, doubles: true, best: true, full: Only }
        => SafeAndLive(HANDED_OVER | Met::FAILS_TWICE | Met::WITHDRAWN_TWICE);
    "MC-D3d" "no wait doubles": HELD_BACK with NeverDouble
        { restarts: false, lagging: 0, doubles: true, best: true, full: Only } => Unsafe(HeldBack, "R23");
    "MC-D3b" "a hand-over that failed is forgotten": HELD_BACK with ForgetFailures
        { restarts: false, lagging: 0, doubles: true, best: true } => Unsafe(HeldBack, "R23");
    "MC-D3c" "any number of holders is asked to make room": HELD_BACK with NoBudget
        { restarts: false, lagging: 0, doubles: true, best: true } => Unsafe(HeldBack, "R23");
    "MC-D2b" "withdrawals are not counted": PINGED with ForgetWithdrawals
        { restarts: false, lagging: 0, doubles: true, best: true } => Unsafe(Pauses, "R16");
    "MC-D2c" "the pause after withdrawals does not double": PINGED with NeverDouble
        { restarts: false, lagging: 0, doubles: true, best: true } => Unsafe(Pauses, "R16");
    "MC-D4" "preferences are withdrawn ever later": PINGED
        { timing: Timing { passed_over: 4, ..PINGED.timing }, restarts: false, lagging: 0, doubles: true, best: true, full: Only }
        => SafeAndLive(HANDED_OVER | Met::FAILS_TWICE | Met::WITHDRAWN_TWICE);
    "MC-D4b" "the time of a preference does not double": PINGED with NeverDouble
        { timing: Timing { passed_over: 4, ..PINGED.timing }, restarts: false, lagging: 0, doubles: true, best: true, full: Only }
        => Unsafe(Stands, "R16");
    // An operator freezes the lease, prefers the worst candidate, and takes each back (R16).
    "MC-O1" "an operator freezes and prefers at any step": ORDERLY
        { restarts: false, lagging: 0, operated: true, best: true, full: Only }
        => SafeAndLive(HANDED_OVER | Met::OBEYS | Met::FREEZES);
    "MC-O2" "a freeze is not seen": ORDERLY with IgnoreFreeze
        { restarts: false, lagging: 0, operated: true, best: true } => Unsafe(FreezeHolds, "R16");
    "MC-O3" "the operator's candidate is granted the lease at once": ORDERLY with GrantToPreferred
        { restarts: false, lagging: 0, operated: true, best: true } => Unsafe(OneBeliever, "R3, R16");
    // An elector comes back from a crash with other flags, or as another build, and from the next one as it was.
    "MC-E1" "an elector's lives differ in order, A and W_max": ORDERLY
        { lagging: 0, next_life: Some(OTHER_FLAGS), best: true, interference: BLANKED }
        => SafeAndLive(LED | Met::REVERSES);
    "MC-E2" "two electors, whose lives differ": ORDERLY
        { electors: 2, lagging: 0, next_life: Some(OTHER_FLAGS), interference: BLANKED, full: Only }
        => Safe(LED | Met::REVERSES);
    "MC-E3" "an elector comes back with a W_max below W": ORDERLY
        { lagging: 0, next_life: Some(LifeRules { lease: TICK.as_secs(), ..OTHER_FLAGS }), best: true, interference: BLANKED }
        => Unsafe(OneBeliever, "R6");
    "MC-L5" "a lone holder that expired is not granted again": ORDERLY with NeverRegrant
        { candidates: 1 } => Trapped("R3");
    "MC-L6" "an expired holder is not granted again": ORDERLY with NeverRegrant {} => Trapped("R3");
    "MC-X7" "the best never accepts, and is not passed over": PINGED with NoPassOver
        { refused_candidate: Some(0) } => Trapped("R5");

    // Rules broken: when a candidate believes.
    "MC-H2" "belief counted from the newest renewal": BASE with CountFromNewest
        { timing: THREE_TICKS } => Unsafe(OneBeliever, "R22");
    "MC-M3" "belief counted from the reply": BASE with CountFromReply {} => Unsafe(OneBeliever, "R8");
    "MC-M4" "lead on an event of the watch": BASE with LeadByEvent {} => Unsafe(OneBeliever, "R8");
    "MC-M4b" "lead after a fresh read": BASE with LeadByRead {} => Unsafe(OneBeliever, "R8");
    "MC-M5" "release first, stop after": BASE with ReleaseFirst {} => Unsafe(OneBeliever, "R12");
    "MC-M13" "two processes of one name, which trust it": BASE with TrustTheName
        { one_name: true } => Unsafe(OneBeliever, "R1, R8");
    "MC-M14" "a holder shortens W": BASE with Shorten {} => Unsafe(OneBeliever, "R11");
    "MC-M14b" "it shortens H too, but counts late replies": BASE with ShortenAndClamp
        { timing: RENEWS_AT_WILL } => Unsafe(OneBeliever, "R11");
    "MC-M19" "belief ends when a timer runs": BASE with BelieveUntilEvent {} => Unsafe(OneBeliever, "R9");
    "MC-M20" "the holder's clock stops in suspend": BASE with ClockStops {} => Unsafe(OneBeliever, "R9");

    // The writes of the Lease.
    "MC-M6" "release decided by the old record: a wiped term": BASE with ReleaseByOldRecord
        { lagging: 0, releases: true } => Unsafe(AllowedMove, "R12");
    "MC-M6b" "release decided by the old record: two leaders": BASE with ReleaseByOldRecord
        { lagging: 0, releases: true } => Unsafe(OneBeliever, "R12");
    "MC-M7" "electors write without a condition": BASE { lax: Lax::Electors } => Unsafe(OneBeliever, "R2");
    "MC-M8" "holders write without a condition": BASE { lax: Lax::Candidates } => Unsafe(OneBeliever, "R2");
    "MC-S12b" "any PUT recreates a deleted lease": BASE
        { lax: Lax::AnyPut, interference: DELETED } => Unsafe(OneBeliever, "R2");
    "MC-RT1" "grants by POST, which may land late": BASE with GrantByPost
        { start: Absent, interference: DELETED } => Unsafe(OneBeliever, "R2");
    "MC-RT2" "grants by POST on unanimous acks": PINGED with PostOnUnanimity
        { start: Absent, interference: DELETED } => Unsafe(OneBeliever, "R2");

    // When a live record is taken from its holder.
    "MC-M1" "renewTime compared with a clock that is a tick ahead": BASE with ExpireByRenewTime(3)
        { lagging: 0 } => Unsafe(OneBeliever, "R4");
    "MC-M10" "a restarted elector expires the record": BASE with RestartExpires {} => Unsafe(OneBeliever, "R4");
    "MC-M11" "a preference rewrites the duration": BASE with PreferringShortens {} => Unsafe(OneBeliever, "R7");
    "MC-M12" "taken a tick after the preference was written": BASE with TakeFromNotified
        {} => Unsafe(OneBeliever, "R7");
    "MC-M16" "renewals look alike to the electors": BASE with RepeatRenewTime {} => Unsafe(OneBeliever, "R4, R11");

    // The worth of a token, and of an electee.
    "MC-M17" "a grant keeps the term": BASE with KeepTerm { fence: Fence::Term(None) } => Unsafe(TokenGrows, "R5");
    "MC-M17b" "the term as the token, a deletion": BASE
        { fence: Fence::Term(None), interference: DELETED } => Unsafe(TokenGrows, "R14");
    "MC-M17c" "the term as the token, a lease blanked": BASE
        { fence: Fence::Term(None), interference: BLANKED } => Unsafe(TokenGrows, "R14");
    "MC-M21" "elected without an ack": PINGED with NoPings {} => Unsafe(ElecteeAcked, "R15");

    // When a lease without a holder is free.
    "MC-M9" "missing lease granted at once": BASE with MissingIsFree
        { interference: DELETED } => Unsafe(OneBeliever, "R6");
    "MC-M9b" "missing lease granted at once, if never seen": BASE with NeverSeenIsFree
        { interference: DELETED } => Unsafe(OneBeliever, "R6");
    "MC-F3" "born record granted at once": BASE with BornIsFree
        { interference: DELETED } => Unsafe(OneBeliever, "R6");
    "MC-X1" "unproven record counted from its uid": BASE with CountFromUid
        { interference: BLANKED } => Unsafe(OneBeliever, "R6");
    "MC-X2" "release trusted whatever the token": BASE with TrustAnyRelease
        { interference: WIPED } => Unsafe(OneBeliever, "R3, R6");
    "MC-X3" "unanimous acks, an object deleted": PINGED with GrantOnUnanimity
        { interference: Interference { object_deletions: 1, ..BLANKED } } => Unsafe(OneBeliever, "R6");
    "MC-X4" "an unheld record expires by its duration": ORDERLY with UnheldExpires
        { interference: Interference { creations: 1, ..DELETED } } => Unsafe(OneBeliever, "R6");
    "MC-X6" "W known by what was seen alone": BASE with SeenIsLongest(true)
        { interference: BLANKED } => Unsafe(OneBeliever, "R6");

    "MC-X6b" "W known by what was seen alone, every record seen": BASE with SeenIsLongest(true)
        { interference: BLANKED, lagging: 0, restarts: false } => Safe(HANDED_OVER);
    "MC-X6c" "the same, and forgotten in a crash": BASE with SeenIsLongest(true)
        { interference: BLANKED, lagging: 0 } => Unsafe(OneBeliever, "R6");
    "MC-X6d" "W known neither by the flag nor by what was seen": BASE with SeenIsLongest(false)
        { interference: BLANKED, lagging: 0, restarts: false } => Unsafe(OneBeliever, "R6");
    "MC-X8" "a uid that was held counts as never held": BASE with ForgetHolders
        { start: Absent, slow_electors: true, interference: BLANKED } => Unsafe(OneBeliever, "R6");

    // Acquisitions (R18): processes that take a free lease themselves, alone or beside electors.
    "MC-P1" "plain: no elector, holders that let go": PLAIN { mixes: PEERS, releases: true } => SafeAndLive(TAKEN);
    "MC-P1b" "plain: late and lost writes and replies": PLAIN
        { orphans: 1, lost_replies: true, full: Only } => SafeAndLive(TAKEN);
    "MC-P1c" "plain: 1 deletion": PLAIN { interference: DELETED } => SafeAndLive(TAKEN | Met::RETURNS);
    "MC-P1d" "plain: 2 deletions, 2 writes under way": PLAIN
        { interference: DELETED_TWICE, orphans: 1, full: Only }
        => SafeAndLive(TAKEN | Met::RETURNS | Met::TWO_MESSAGES);
    "MC-P1e" "plain: no lease at first, 1 emptying": PLAIN
        { start: Absent, interference: BLANKED } => SafeAndLive(TAKEN_NEW);
    "MC-P1f" "plain: emptied twice, and released by a stranger": PLAIN
        { start: Absent, interference: Interference { wipes: 1, ..BLANKED_TWICE }, full: Only }
        => SafeAndLive(TAKEN_NEW);
    "MC-P1g" "plain: one name, late writes": PLAIN { one_name: true, orphans: 1 } => SafeAndLive(TAKEN);
    "MC-P1h" "plain: another name after a restart": PLAIN
        { mixes: UNLIKE_PEERS, renames: true } => SafeAndLive(TAKEN);
    "MC-P2" "auto: 1 elector": AUTO { restarts: false } => SafeAndLive(BESIDE);
    "MC-P2b" "auto: 1 elector, hand-overs and pings": AUTO
        { pinged: true, ranked: true, full: Only } => SafeAndLive(BESIDE);
    "MC-P2c" "auto: 1 elector, 1 deletion": AUTO
        { interference: DELETED, full: Only } => SafeAndLive(BESIDE | Met::RETURNS);
    "MC-P2d" "auto: 2 electors": AUTO { electors: 2, full: Only } => SafeAndLive(BESIDE);
    "MC-P2e" "auto: 1 elector that may not write": AUTO
        { pinged: true, electors_write: false, restarts: false, full: Only } => SafeAndLive(TAKEN);

    // Terms that lapsed, and go on in the next one on the holder's own unchanged record (R20).
    "MC-U1" "a lapsed leader resumes, 1 deletion": ORDERLY
        { slow_stops: true, interference: DELETED, full: Only } => Safe(HANDED_OVER | Met::RETURNS | Met::RESUMES);
    "MC-U1b" "plain: a lapsed leader resumes, one name, 1 deletion": PLAIN
        { slow_stops: true, one_name: true, interference: DELETED } => SafeAndLive(TAKEN | Met::RETURNS | Met::RESUMES);
    "MC-U1c" "auto: a lapsed leader resumes, late and lost writes": AUTO
        { slow_stops: true, electors: 0, orphans: 1, lost_replies: true, full: Only } => SafeAndLive(Met::LEADS | Met::TAKES_EXPIRED | Met::RESUMES);
    "MC-U2" "plain: resumed by name and term": PLAIN with ResumeByTerm
        { one_name: true, interference: DELETED } => Unsafe(OneBeliever, "R20");

    // Terms that died with their process, and go on in the next one of a later life of the same instance (R21).
    "MC-J1" "1 elector, a life rejoins, 1 deletion": ORDERLY
        { rejoins: true, interference: DELETED, full: Only } => Safe(HANDED_OVER | Met::RETURNS | Met::REJOINS);
    "MC-J1b" "plain: a life rejoins, one name": PLAIN
        { rejoins: true, one_name: true, full: Only } => SafeAndLive(TAKEN | Met::REJOINS);
    "MC-J1c" "auto: a life rejoins under another name, 1 elector": AUTO
        { rejoins: true, renames: true, restarts: false, full: Only } => SafeAndLive(BESIDE | Met::REJOINS);
    "MC-J1d" "plain: a life rejoins, late writes": PLAIN
        { rejoins: true, orphans: 1, full: Only } => SafeAndLive(TAKEN | Met::REJOINS);
    "MC-J1e" "plain: a life rejoins": PLAIN { rejoins: true } => SafeAndLive(TAKEN | Met::REJOINS);
    "MC-J2" "plain: a life rejoins beside a living process": PLAIN with RejoinBesideTheLiving
        { rejoins: true } => Unsafe(OneBeliever, "R21");
    "MC-J3" "plain: a life rejoins by its name": PLAIN with RejoinByName
        { rejoins: true, one_name: true } => Unsafe(OneBeliever, "R21");
    "MC-J5" "plain: lives are not told apart, one name": PLAIN with ShareTheLife
        { rejoins: true, one_name: true } => Unsafe(OneBeliever, "R21");

    // Names without a Lease, at first and after a deletion: each process creates the Lease as soon as it knows (R18).
    "MC-P7" "auto: no elector, no lease, 1 deletion": AUTO
        { electors: 0, start: Absent, interference: DELETED } => SafeAndLive(TAKEN_NEW | Met::RETURNS);
    "MC-P7b" "plain: no lease, late creations, 1 deletion": PLAIN
        { start: Absent, interference: DELETED, orphans: 1, full: Only } => SafeAndLive(TAKEN_NEW | Met::RETURNS);
    "MC-P7c" "auto: no lease, an elector that appears late": AUTO
        { start: Absent, lagging: 1, restarts: false, full: Only } => SafeAndLive(TAKEN_NEW | Met::BESIDE);
    "MC-P7d" "auto: no lease, elector and candidates start together": AUTO
        { start: Absent, restarts: false, full: Only } => SafeAndLive(TAKEN_NEW | Met::BESIDE);
    "MC-P7e" "plain: W is above W_max as configured": PLAIN
        { interference: DELETED, flag: Some(TICK) } => SafeAndLive(TAKEN | Met::RETURNS);

    "MC-P7f" "plain: W known by the flag, and not by the own": PLAIN with ForgetOwnDuration
        { interference: DELETED, full: Only } => SafeAndLive(TAKEN | Met::RETURNS);
    "MC-P7g" "plain: W neither by the flag nor by the own": PLAIN with ForgetOwnDuration
        { interference: DELETED, flag: Some(TICK) } => Unsafe(OneBeliever, "R18");

    // The Leases of a group bear a label. They are watched by their names alone, so a label that comes and goes is one
    // more revision; by the label, a Lease that loses it would look deleted while its terms go on.
    "MC-P8" "plain: a stranger takes the label of a group away": PLAIN
        { interference: Interference { unlabels: 2, ..BLANKED }, full: Only }
        => SafeAndLive(TAKEN | Met::TAKES_UNPROVEN | Met::UNLABELLED);
    "MC-P8b" "plain: the same, no lease at first": PLAIN
        { start: Absent, interference: UNLABELLED, full: Only }
        => SafeAndLive(TAKEN_NEW | Met::UNLABELLED);

    // Two leases of a group. The world in which no assignment is broken is too big to be exhausted.
    "MC-GR2" "a group: each assignment forgets who leads": GROUPED with SpreadAnew
        {} => Unsafe(NeededMove, "R16");

    // The locks of electors: that of the one which is built in, taken by ours, and our own.
    "MC-P3" "the built-in lock: taken by an elector": LOCK { full: Only } => SafeAndLive(Met::LEADS | Met::DISPLACES);
    "MC-P3b" "the built-in lock: taken over early, and let go of at once": LOCK with ReleaseEarly
        { mixes: UNLIKE, candidates: 3, restarts: false, lock: Some(ModelLock { electors: 2, ..BUILTIN }), full: Only }
        => Unsafe(OneBeliever, "R17");
    "MC-P3-off" "the built-in lock: no quiet period": LOCK
        { lock: Some(ModelLock { quiet: Duration::ZERO, ..BUILTIN }) } => Unsafe(OneBeliever, "R17");
    "MC-P3c" "the elector's own lock: two may hold it, 1 emptying": LOCK
        { mixes: UNLIKE, start: Absent, interference: BLANKED, lock: Some(OWN), full: Only }
        => SafeAndLive(TAKEN_NEW | Met::DISPLACES);

    "MC-C1" "pinged: suspended machines, clocks set ahead": PINGED
        { drifts: true, restarts: false, lagging: 0 } => Safe(HANDED_OVER);
    "MC-C2" "pinged: belief by the monotonic clock": PINGED with BelieveByMonotonic
        { drifts: true, restarts: false, lagging: 0 } => Unsafe(OneBeliever, "R9");

    // Two clocks of one process that part: its belief goes by the one, its stop-watch for others by the other (R9, R18).
    "MC-P9" "plain: suspended machines, clocks set ahead": PLAIN { drifts: true } => SafeAndLive(TAKEN);
    "MC-P-awake" "plain: belief by the monotonic clock": PLAIN with BelieveByMonotonic
        { drifts: true } => Unsafe(OneBeliever, "R9");
    "MC-P-asleep" "plain: the stop-watch by the holder's clock": PLAIN with WatchByHolder
        { drifts: true } => Unsafe(OneBeliever, "R9, R18");

    // Acquisitions with a rule broken.
    "MC-P5" "plain: created with a holder, 1 deletion": PLAIN with AcquireByPost
        { start: Absent, interference: DELETED } => Unsafe(OneBeliever, "R2");
    "MC-P5-off" "plain: created with a holder, no deletion": PLAIN with AcquireByPost
        { start: Absent } => SafeAndLive(Met::LEADS | Met::TAKES_EXPIRED);
    "MC-P6" "plain: W_max below H by the clocks": PLAIN
        { interference: DELETED, grace: Some(TICK) } => Unsafe(OneBeliever, "R6");
    "MC-P6b" "plain: a lease that is missing counts as free": PLAIN
        { interference: DELETED, grace: Some(Duration::ZERO) } => Unsafe(OneBeliever, "R6");
    "MC-P6c" "auto: the same, and the record has a strategy": AUTO
        { electors: 0, interference: DELETED, grace: Some(Duration::ZERO), full: Only } => SafeAndLive(TAKEN | Met::RETURNS);
    "MC-P-gap" "plain: an unproven record's stop-watch spans a gap": PLAIN with SpanTheGap
        { start: Absent, interference: BLANKED } => Unsafe(OneBeliever, "R4, R6");
    "MC-P-add" "plain: absence and unheld time add up over a gap": PLAIN with AddOverTheGap
        { start: Absent, interference: BLANKED } => Unsafe(OneBeliever, "R6");
    "MC-P-reply" "plain: belief counts from the reply": PLAIN with CountFromReply {} => Unsafe(OneBeliever, "R8");
    "MC-P-clock" "plain: expiry by renewTime, clocks 3 s apart": PLAIN with ExpireByRenewTime(3)
        {} => Unsafe(OneBeliever, "R4");
    "MC-P-new" "plain: a new process takes a record for expired": PLAIN with RestartExpires
        {} => Unsafe(OneBeliever, "R4");
    "MC-P-name" "plain: one name, and an event is enough to lead": PLAIN with LeadByEvent
        { one_name: true } => Unsafe(OneBeliever, "R8");
    "MC-P-token" "plain: a release counts in spite of the token": PLAIN with TrustAnyRelease
        { interference: WIPED } => Unsafe(OneBeliever, "R6");
    "MC-P-label" "plain: Leases are watched by a label": PLAIN with WatchByLabel
        { interference: UNLABELLED } => Unsafe(OneBeliever, "R6");
    "MC-P2-label" "auto: Leases are watched by a label, 1 elector": AUTO with WatchByLabel
        { interference: UNLABELLED, restarts: false, full: Only } => Unsafe(OneBeliever, "R6");
    "MC-P4" "auto: the fallback instead of the expiry": AUTO with FallbackInstead
        { restarts: false } => Unsafe(OneBeliever, "R18");
}
