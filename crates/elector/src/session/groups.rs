//! The way of a change to the queue, and to the groups of leases that it concerns.

use elector_protocol::{Instant, LeaseKey};

use super::ElectorSession;

// === impl ElectorSession ===

impl ElectorSession<'_> {
    /// Queues what has changed. Its groups are assigned anew before the first of their parts is decided; by an elector that
    /// stands by, which decides none, at once.
    pub(super) fn follow_dirty(&mut self, now: Instant) {
        loop {
            let view = &mut self.inputs.view;
            while let Some(key) = view.next_dirty() {
                view.note_part(&key);
                // A group that has lost its last part is counted before the figures of its namespace go.
                self.monitor.follow_groups(view);
                self.monitor.follow(now, &key, view);
                if self.acts {
                    self.queue.add(key, now.since_epoch());
                } else {
                    view.touch_group(&key);
                }
            }
            if !view.has_touched_groups() {
                break;
            }
            let (wall, settings) = (self.clock.wall(), self.step.settings(self.writer.carrier()));
            view.assign_groups(now, wall, &settings);
        }
        self.monitor.follow_groups(&mut self.inputs.view);
    }

    /// Assigns the group of a lease anew before that is decided, if it has one.
    pub(super) fn follow_group(&mut self, key: &LeaseKey, now: Instant) {
        let view = &mut self.inputs.view;
        if view.group_of(key).is_none() {
            return;
        }
        let (wall, settings) = (self.clock.wall(), self.step.settings(self.writer.carrier()));
        view.assign_group_of(now, wall, &settings, key);
        self.follow_dirty(now);
    }
}
