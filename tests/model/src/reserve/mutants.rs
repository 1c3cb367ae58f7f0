//! Reservations done wrong.

use elector_protocol::LeaseSnapshot;
use elector_protocol::elector::Effect;

use super::super::elector::ElectorProcess;
use super::super::elector_variation::AlteredStep;
use super::super::mutant::Mutant;
use super::super::numbers::{FRESH, timestamp};

// === impl Mutant ===

impl Mutant {
    /// What an elector makes of its decision to reserve.
    pub(crate) fn alter_reservation(
        self,
        effects: &mut [Effect],
        elector: &ElectorProcess,
        altered: &AlteredStep<'_>,
    ) {
        let reservation = effects.iter_mut().find_map(|effect| match effect {
            Effect::Write(write) if write.record.reserved_from().is_some() => Some(write),
            _ => None,
        });
        let (Some(write), Some(lease)) = (reservation, elector.election.lease()) else {
            return;
        };
        match self {
            Self::ReserveBriefly => {
                write.record.duration_seconds =
                    i32::try_from(altered.run.accept_window().as_secs()).ok();
            }
            Self::ReserveWithoutToken => {
                (write.record.token, write.record.token_term) = (None, None);
            }
            Self::GrantInstead => {
                let free = lease.record.released(timestamp(FRESH));
                let known = LeaseSnapshot::clone(lease);
                if let Some(granted) = altered.if_free(&elector.election, Some(known), &free) {
                    write.record = granted;
                }
            }
            _ => {}
        }
    }
}
