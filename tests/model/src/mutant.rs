//! Rules broken on purpose: each must be caught, or the check proves nothing.
//!
//! A mutant alters what a step is given or what becomes of its effects, never the step. Its effect on an elector is in
//! `elector_variation`, that on a process in `process_variation`.

/// A plausible way to save a wait, a write or a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// Expiry is judged by renewTime and the elector's own wall clock, which is this number of seconds ahead.
    ExpireByRenewTime(u64),
    /// Belief is counted from the reply to a write, not from its sending.
    CountFromReply,
    /// Belief counts from the newest renewal that was sent, whichever of those under way was applied.
    CountFromNewest,
    /// An event of the watch that names the reader is enough to lead.
    LeadByEvent,
    /// A fresh read of a record that names the reader is enough to lead.
    LeadByRead,
    /// The lease is given up as soon as the work is asked to stop.
    ReleaseFirst,
    /// Before a release the Lease is read again, but the old local record says whether it is one's own.
    ReleaseByOldRecord,
    /// A missing Lease is created and granted at once.
    MissingIsFree,
    /// The same, by an elector that never saw the Lease.
    NeverSeenIsFree,
    /// An elector that has just started takes an unchanged record for expired.
    RestartExpires,
    /// A preference also rewrites the duration of the live record.
    PreferringShortens,
    /// The preferred candidate is granted the lease a tick after the preference was written.
    TakeFromNotified,
    /// Every record that bears one's name is taken for a grant, whatever token it has.
    TrustTheName,
    /// A record of one's own name and term is taken for one's own record, whoever renewed it.
    ResumeByTerm,
    /// A process that starts takes the notes of all for those of its own instance, which is dead.
    RejoinBesideTheLiving,
    /// A process that starts takes a record of its own name for that of an earlier life of its instance.
    RejoinByName,
    /// All lives of all instances have one id.
    ShareTheLife,
    /// A holder writes a shorter duration from some moment on, and believes for H as before.
    Shorten,
    /// The same, with a shorter belief from the first such write; but a late reply to an older renewal still counts.
    ShortenAndClamp,
    /// The same, and older replies are forgotten.
    ShortenAndForget,
    /// Renewals look alike to the electors, as if their clock had not moved on.
    RepeatRenewTime,
    /// A grant leaves the term as it was.
    KeepTerm,
    /// Belief ends when a timer or an event gets its turn, not when the clock says so.
    BelieveUntilEvent,
    /// A holder's clock may stand still for a tick.
    ClockStops,
    /// A process counts its belief by its monotonic clock.
    BelieveByMonotonic,
    /// A process runs its stop-watch for others by its holder's clock.
    WatchByHolder,
    /// A born record is granted at once.
    BornIsFree,
    /// An unheld record with a duration is granted when that has passed.
    UnheldExpires,
    /// `W_max` is what was seen of this lease, whatever is configured; `false`: and that is forgotten at once.
    SeenIsLongest(bool),
    /// After a proven absence the Lease is created by a POST that already names its holder.
    GrantByPost,
    /// The same, as soon as every candidate has acked.
    PostOnUnanimity,
    /// The wait for an unproven record counts from the first sight of its uid, not of the record.
    CountFromUid,
    /// An unproven record that looks as before keeps its stop-watch over a gap of the watch.
    SpanTheGap,
    /// An absence and the unheld time of a record that a list brought count together, whatever the gap hid.
    AddOverTheGap,
    /// A release is believed although the token of the term is still there.
    TrustAnyRelease,
    /// An unproven record is granted as soon as every candidate has acked. Those that lead, or may yet by a write
    /// under way, keep silent.
    GrantOnUnanimity,
    /// A grant that has not been accepted yet is given to the best again at once.
    RevokeGrants,
    /// The holder of an expired record is not granted the lease again.
    NeverRegrant,
    /// An electee that does not accept is not passed over.
    NoPassOver,
    /// No wait of an elector doubles.
    NeverDouble,
    /// A hand-over that failed is forgotten at once.
    ForgetFailures,
    /// Any number of holders is asked to make room.
    NoBudget,
    /// Withdrawals are not counted.
    ForgetWithdrawals,
    /// The holder of a Lease that was watched since its name was absent is forgotten when a stranger removes it.
    ForgetHolders,
    /// A process leaves its own W out of `W_max`.
    ForgetOwnDuration,
    /// Every candidate counts as having acked when it is first seen.
    NoPings,
    /// A process acquires a lease when its record has been seen for the fallback, whatever its duration.
    FallbackInstead,
    /// A missing Lease is created by a POST that names its author, which then believes.
    AcquireByPost,
    /// A process watches the Leases that have its group's label, so that one which loses it looks deleted.
    WatchByLabel,
    /// A freeze is not seen.
    IgnoreFreeze,
    /// The candidate that an operator prefers is granted the lease at once.
    GrantToPreferred,
    /// The parts of a group are assigned as if none of them had a holder.
    SpreadAnew,
    /// A lock is released at once that was taken from a holder which may believe yet.
    ReleaseEarly,
}

// === impl Mutant ===

impl Mutant {
    /// True if every write is still one of the moves that the rules allow.
    pub(super) fn is_well_formed(self) -> bool {
        self != Self::ShortenAndForget
    }

    /// True if candidates keep silent while they lead, or may yet by a write under way.
    pub(super) fn is_unanimous(self) -> bool {
        matches!(self, Self::GrantOnUnanimity | Self::PostOnUnanimity)
    }

    /// True if a holder may come to write a shorter duration.
    pub(super) fn shortens(self) -> bool {
        matches!(
            self,
            Self::Shorten | Self::ShortenAndClamp | Self::ShortenAndForget
        )
    }
}
