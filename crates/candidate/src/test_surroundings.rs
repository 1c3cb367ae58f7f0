//! The hooks by which a test runs a whole program: what its connection gives to the candidates that are made on it.

use std::sync::Arc;

use elector_protocol::holder::StopReason;
use elector_protocol::{Identity, Instant};
use elector_runtime::{Clock, Cluster};
use futures::FutureExt as _;

use crate::boxed_work::BoxedWork;
use crate::config::Config;
use crate::event::Event;
use crate::handle::CandidateHandle;
use crate::leadership::Leadership;

/// The gifts of a test to the candidates of a connection. Only the test kit of this crate makes one.
pub trait TestSurroundings: Send + Sync {
    /// Their clock.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Their number in place of a random one.
    fn seed(&self) -> u64;

    /// The identity of the next candidate whose configuration names none.
    fn identity(&self) -> Identity;

    /// A candidate has been made.
    fn join(&self, candidate: CandidateHandle, config: &Config) -> Arc<dyn CandidateWitness>;
}

/// The witness of one candidate.
pub trait CandidateWitness: Send + Sync {
    /// Something happens. The candidate's own observer hears of it later.
    fn note(&self, event: &Event);

    /// The work of a term begins. What is returned is dropped with the work.
    fn begin_work(&self, leadership: &Leadership) -> Box<dyn WorkWitness>;
}

/// The witness of the work of one term, dropped with that.
pub trait WorkWitness: Send {
    /// The work has returned.
    fn note_return(&mut self);
}

/// Until when the work of a term may act that is asked to stop at `now` for this reason.
#[must_use]
pub fn stop_limit(leadership: &Leadership, reason: &StopReason, now: Instant) -> Instant {
    let limit = now.after(leadership.time_to_stop());
    match reason {
        // After a pause that may have passed already.
        StopReason::Lost(_) => limit.min(leadership.lease_limit().unwrap_or_default()),
        // Renewals go on meanwhile.
        _ => limit,
    }
}

/// The witness of the work of a term that is about to be made.
pub(crate) fn begin_witness(
    candidate: Option<&Arc<dyn CandidateWitness>>,
    leadership: &Leadership,
) -> Option<Box<dyn WorkWitness>> {
    candidate.map(|candidate| candidate.begin_work(leadership))
}

/// The work under its witness, which is dropped with it.
pub(crate) fn witnessed(mut witness: Option<Box<dyn WorkWitness>>, work: BoxedWork) -> BoxedWork {
    let witnessed = async move {
        let result = work.await;
        witness.iter_mut().for_each(|it| it.note_return());
        result
    };
    witnessed.boxed()
}

/// The type under which a connection carries them.
struct Carried(Arc<dyn TestSurroundings>);

/// The connection with surroundings for every candidate that is made on it, or on a clone of it.
#[must_use]
pub fn surrounded(cluster: Cluster, by: Arc<dyn TestSurroundings>) -> Cluster {
    cluster.carrying(Arc::new(Carried(by)))
}

/// The surroundings that a connection carries, if it does.
pub(crate) fn surroundings(cluster: &Cluster) -> Option<Arc<dyn TestSurroundings>> {
    let carried = cluster.carried()?.downcast_ref::<Carried>()?;
    Some(Arc::clone(&carried.0))
}
