//! The way of a change to the queue: leases of a group are assigned anew before any of them is decided.

use elector_protocol::{Instant, LeaseKey};

use super::ElectorSession;

// === impl ElectorSession ===

impl ElectorSession<'_> {
    /// Queues what has changed, once its groups are assigned anew.
    pub(super) fn follow_dirty(&mut self, now: Instant) {
        let (wall, settings) = (self.clock.wall(), self.step.settings(self.writer.carrier()));
        loop {
            let view = &mut self.inputs.view;
            let Some(key) = view.next_dirty() else {
                view.assign_groups(now);
                self.monitor.follow_groups(view);
                if view.is_dirty() {
                    continue;
                }
                return;
            };
            view.look_at_part(now, wall, &settings, &key);
            self.monitor.follow_groups(view);
            self.monitor.follow(now, &key, &self.inputs.view);
            if self.acts {
                self.queue.add(key, now.since_epoch());
            }
        }
    }

    /// Looks at a lease of a group again before it is decided: time alone makes a holder late and a candidate silent.
    pub(super) fn follow_group(&mut self, key: &LeaseKey, now: Instant) {
        if self.inputs.view.group_of(key).is_none() {
            return;
        }
        let (wall, settings) = (self.clock.wall(), self.step.settings(self.writer.carrier()));
        self.inputs.view.look_at_part(now, wall, &settings, key);
        self.follow_dirty(now);
    }
}
