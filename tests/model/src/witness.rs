//! Witnesses: the events that a safe run must reach, since a check of a world in which nothing happens would pass.

bitflags::bitflags! {
    /// A set of events that were reached, or are to be reached.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Witnesses: u32 {
        /// A candidate leads.
        const LEADS = 1;
        /// The lease of a holder that crashed while it led is granted to another.
        const TAKES_OVER = 1 << 1;
        /// A holder is asked to make room.
        const YIELDS = 1 << 2;
        /// A holder writes its successor.
        const HANDS_OVER = 1 << 3;
        /// A candidate leads under a Lease that was created after a deletion.
        const RETURNS = 1 << 4;
        /// A process that gave up a write sends another, and both may land.
        const TWO_MESSAGES = 1 << 5;
        /// A preference is written or withdrawn, and every stop-watch runs on.
        const SIGNALS = 1 << 6;
        /// The third candidate leads.
        const THIRD = 1 << 7;
        /// A holder believes while an elector lists the unheld record that it knew before, in a newer revision; a term
        /// that the elector missed goes on.
        const RECURS = 1 << 8;
        /// A process acquires a lease whose holder has not renewed it.
        const TAKES_EXPIRED = 1 << 9;
        /// A process acquires a lease whose holder has let go.
        const TAKES_RELEASED = 1 << 10;
        /// A process acquires a born or an emptied lease, after W or because nothing was there for as long.
        const TAKES_UNPROVEN = 1 << 11;
        /// An electee accepts its grant while another process's acquisition may land.
        const BESIDE = 1 << 12;
        /// A lock is taken from a holder that still believes.
        const DISPLACES = 1 << 13;
        /// A holder renews a Lease that has lost the label of its group.
        const UNLABELLED = 1 << 14;
        /// Each of two leases of a group is led by a process of its own.
        const SPREAD = 1 << 15;
        /// A process whose term has lapsed begins its next one on its own record.
        const RESUMES = 1 << 16;
        /// A process begins the next term of an earlier life, which is dead.
        const REJOINS = 1 << 17;
        /// A candidate does not accept for the second time in a row, so that waits double.
        const FAILS_TWICE = 1 << 18;
        /// A preference is withdrawn for the second time in a term, so that no candidate is preferred for a while.
        const WITHDRAWN_TWICE = 1 << 19;
        /// A holder hands over to the candidate that an operator prefers.
        const OBEYS = 1 << 20;
        /// An elector leaves a leader alone for a freeze, although another candidate is better.
        const FREEZES = 1 << 21;
        /// A holder hands over to a candidate that the usual order ranks below it, as a later life of the elector wants it.
        const REVERSES = 1 << 22;
    }
}

impl Witnesses {
    /// This, if it is so.
    pub(super) fn when(self, so: bool) -> Self {
        if so { self } else { Self::empty() }
    }
}
