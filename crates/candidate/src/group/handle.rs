//! The handle of a process in its group: what it leads, asked from anywhere in the process and at any time.

use std::fmt;
use std::sync::Arc;

use elector_protocol::shard::ShardLayout;
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::watch;

use super::parts::Parts;
use crate::handle::CandidateHandle;
use crate::health::Unhealthy;
use crate::leadership::Leadership;
use crate::object_key::ObjectKey;

/// The parts of a group as this process knows them, for the rest of it: web handlers, metrics, controllers that outlive a
/// term. Clones are the same one.
///
/// It is obtained before the run ([`GroupCandidate::handle`](crate::GroupCandidate::handle)), and lives before, between and
/// after the terms of its parts. Each part has a [`CandidateHandle`] of its own, which says all that can be said of one
/// lease.
///
/// ```
/// use elector_candidate::GroupHandle;
///
/// fn led(group: &GroupHandle) -> usize {
///     group.parts().iter().filter(|part| part.is_leader()).count()
/// }
/// ```
#[derive(Clone)]
pub struct GroupHandle(Arc<GroupView>);

/// The content of a handle, which its clones share.
pub(crate) struct GroupView {
    /// The way in which the work is divided.
    pub(crate) division: Parts,
    /// The ranges, where the parts are ranges of objects.
    ranges: Option<ShardLayout>,
    /// One for each part, in their order.
    handles: Box<[CandidateHandle]>,
    /// Counts the lists of ranges that clients of this process hold complete.
    lists: watch::Sender<u64>,
}

// === impl GroupHandle ===

impl GroupHandle {
    pub(crate) fn new(division: Parts, handles: impl Iterator<Item = CandidateHandle>) -> Self {
        Self(Arc::new(GroupView {
            ranges: division.ranges(),
            division,
            handles: handles.collect(),
            lists: watch::Sender::new(0),
        }))
    }

    /// The parts, in the order in which [`Parts`] has them: that of the names, or that of the ranges.
    pub fn parts(&self) -> &[CandidateHandle] {
        &self.0.handles
    }

    /// True if this process leads the part that the object is in, and may begin new work on it, by its clock, now. False
    /// from the moment on at which the work of the part is asked to stop, so before the part is given away.
    ///
    /// It costs a hash of the uid, or of the namespace, and a look at the clock: ask it for each object, and again before
    /// each effect. Named parts own no objects: it is false then.
    ///
    /// ```
    /// use elector_candidate::{GroupHandle, ObjectKey};
    ///
    /// fn is_ours(group: &GroupHandle, uid: &str, namespace: &str) -> bool {
    ///     group.owns(ObjectKey::new(uid).in_namespace(namespace))
    /// }
    /// ```
    pub fn owns(&self, key: ObjectKey<'_>) -> bool {
        let part = self.index_of(key).map(|index| &self.0.handles[index]);
        part.is_some_and(CandidateHandle::may_begin_work)
    }

    /// The guard of the term in which new work on the object may begin now: that of its part. `None` where
    /// [`Self::owns`] is false.
    pub fn leadership(&self, key: ObjectKey<'_>) -> Option<Leadership> {
        self.0.handles[self.index_of(key)?].leadership()
    }

    /// The part that the object is in, `None` where the parts are named.
    pub(crate) fn index_of(&self, key: ObjectKey<'_>) -> Option<usize> {
        let ranges = self.0.ranges?;
        Some(usize::from(ranges.index_of(key.hash(ranges.field()))))
    }

    /// The ranges, `None` where the parts are named.
    pub(crate) fn ranges(&self) -> Option<ShardLayout> {
        self.0.ranges
    }

    /// Counts the lists of ranges that clients of this process hold complete.
    pub(crate) fn lists(&self) -> &watch::Sender<u64> {
        &self.0.lists
    }

    /// Each part now, and again whenever its status has changed, until the run has ended or was dropped.
    ///
    /// A part that changes more than once before the stream is asked again comes once. What is worth waking for is what
    /// [`CandidateHandle::changes`] says.
    pub fn changes(&self) -> impl Stream<Item = CandidateHandle> + Send + Unpin + 'static + use<> {
        let changes = self.parts().iter().map(|part| {
            let part = part.clone();
            part.changes().map(move |_| part.clone()).boxed()
        });
        stream::select_all(changes)
    }

    /// The check of a liveness probe (`/livez`): no work of any part runs that may act no more
    /// ([`CandidateHandle::check_live`]). Only a restart of the process ends such work.
    ///
    /// # Errors
    ///
    /// When work of a part should have stopped; the text names its Lease and says since when.
    pub fn check_live(&self) -> Result<(), Unhealthy> {
        self.check(CandidateHandle::check_live)
    }

    /// The check of a readiness probe (`/readyz`): this process is well by its probe
    /// ([`GroupCandidate::with_health`](crate::GroupCandidate::with_health)), so that it could lead. It need not lead any
    /// part for that.
    ///
    /// # Errors
    ///
    /// While it is unwell, and so no candidate for any part.
    pub fn check_ready(&self) -> Result<(), Unhealthy> {
        self.check(CandidateHandle::check_ready)
    }

    fn check(
        &self,
        check: impl Fn(&CandidateHandle) -> Result<(), Unhealthy>,
    ) -> Result<(), Unhealthy> {
        self.parts()
            .iter()
            .try_for_each(|part| check(part).map_err(|unhealthy| unhealthy.of(part.lease())))
    }
}

impl fmt::Debug for GroupHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupHandle")
            .field("parts", &self.0.division)
            .field("handles", &self.0.handles)
            .finish()
    }
}
