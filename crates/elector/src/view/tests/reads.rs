//! Reads of a Lease, and whether there is something new to judge after them.

use super::{ViewScene, candidate, held, lease, time};
use crate::view::ResourceVersion;

/// A write that fails is followed by a read, and repeated after a pause. Where the read showed what was known already,
/// it woke the lease at once: a server that refused writes and answered reads was asked without end.
#[test]
fn a_read_that_shows_what_is_known_wakes_no_lease() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("plain", 1)));
    world.dirty();
    let known = Some(ResourceVersion(11));
    for (version, dirty) in [(11, false), (12, true), (12, false)] {
        let read = lease("l", version, held("plain", version.cast_signed()));
        let now = time(world.now);
        world.view.handle_lease_read(now, read, known).unwrap();
        assert_eq!(!world.dirty().is_empty(), dirty, "{version}");
    }
}
