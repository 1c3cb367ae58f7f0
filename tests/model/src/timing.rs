//! The constants of the protocol that a run may vary.

/// The constants that a run may vary, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// W of the candidates, and `W_max` of the electors.
    pub(super) lease: u64,
    /// H of the candidates.
    pub(super) belief: u64,
    /// A: how long a grant waits for its accept.
    pub(super) accept: u64,
    /// R: how long a holder waits between renewals.
    pub(super) renew: u64,
    /// The time for which an electee that did not accept is passed over.
    pub(super) passed_over: u64,
    /// For how long a pre-emption counts, and how many there may be.
    pub(super) preemptions: (u64, u8),
}

// === impl Timing ===

impl Timing {
    /// Two ticks of a fast clock for W and two of a slow one for H: equality, the limit of safety.
    pub(super) const USUAL: Self = Self {
        lease: 6,
        belief: 4,
        accept: 3,
        renew: 2,
        passed_over: 0,
        preemptions: (0, 1),
    };
}
