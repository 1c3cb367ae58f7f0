//! An oracle of R4 and R6 for the properties of acquisitions: what a process was shown, and when. It shares no code with
//! the stop-watch of production.

use std::time::Duration;

use super::super::HolderMode;
use crate::lease::LeaseSnapshot;
use crate::lease_watch::NewsSource;
use crate::time::Instant;

/// A process's views of its Lease, the oldest first; `None` says that it was missing.
#[derive(Default)]
pub(super) struct ShownHistory(Vec<(Instant, Option<LeaseSnapshot>, NewsSource)>);

/// W_max of these tests, in seconds: the default, above which a record of a longer duration raises it.
const LONGEST: u64 = 15;

// === impl ShownHistory ===

impl ShownHistory {
    /// The process knows this now.
    pub(super) fn note(&mut self, now: Instant, known: Option<LeaseSnapshot>, source: NewsSource) {
        let same = self.0.last().is_some_and(|(_, last, _)| {
            last.as_ref().map(|last| last.version) == known.as_ref().map(|known| known.version)
        });
        if !same || (known.is_none() && source == NewsSource::List) {
            self.0.push((now, known, source));
        }
    }

    /// Checks that a record may be acquired by a process of this mode (R3 a and b, R18), or says why not.
    pub(super) fn may_acquire(
        &self,
        now: Instant,
        base: &LeaseSnapshot,
        mode: &HolderMode,
    ) -> Result<(), String> {
        let fallback = match mode {
            HolderMode::Elected => return Err("an elected candidate acquired".to_owned()),
            HolderMode::Auto { fallback, .. } => *fallback,
            HolderMode::Plain(_) => Duration::ZERO,
        };
        let record = &base.record;
        let held = record.holder.is_some();
        let alike = |other: &LeaseSnapshot| {
            let of = |lease: &LeaseSnapshot| {
                let record = &lease.record;
                let unheld = (record.token, record.acquire_time);
                (
                    (lease.uid.clone(), record.holder.clone(), record.term),
                    (record.renew_time, record.duration_seconds),
                    (!held).then_some(unheld),
                )
            };
            of(base) == of(other)
        };
        let Some((mut since, last, mut source)) = self.0.last().cloned() else {
            return Err("acquired unseen".to_owned());
        };
        if last.as_ref().map(|last| last.version) != Some(base.version) {
            return Err("acquired on an old revision".to_owned());
        }
        for (at, shown, how) in self.0.iter().rev().skip(1) {
            let gap = source == NewsSource::List && !held;
            match shown {
                Some(shown) if alike(shown) && !gap => (since, source) = (*at, *how),
                _ => break,
            }
        }
        let longest = self
            .0
            .iter()
            .filter_map(|(_, shown, _)| shown.as_ref()?.record.duration());
        let longest = longest
            .max()
            .unwrap_or_default()
            .max(Duration::from_secs(LONGEST));
        let released =
            !held && record.token.is_none() && record.duration_seconds.is_some_and(|it| it <= 1);
        let free = if held {
            since.after(record.duration().unwrap_or(longest))
        } else if released {
            since
        } else {
            let unheld = self.unheld_since();
            unheld.map_or(since.after(longest), |at| at.after(longest).max(since))
        };
        if now < free.after(fallback) {
            let early = free.after(fallback).since(now);
            return Err(format!("acquired {early:?} before its time"));
        }
        Ok(())
    }

    /// Since when the watch proves that there was no holder: an absence, and only unheld revisions of one uid since
    /// (R6 a and c).
    fn unheld_since(&self) -> Option<Instant> {
        let last = self.0.iter().rposition(|(_, shown, _)| shown.is_none())?;
        let after = &self.0[last + 1..];
        let (_, added, how) = after.first()?;
        let uid = |shown: &Option<LeaseSnapshot>| shown.as_ref().map(|it| it.uid.clone());
        let proves = |(_, shown, how): &(Instant, Option<LeaseSnapshot>, NewsSource)| {
            let held = shown.as_ref().is_none_or(|it| it.record.holder.is_some());
            !held && *how != NewsSource::List && uid(shown) == uid(added)
        };
        (*how == NewsSource::Watch && after.iter().all(proves)).then_some(self.0[last].0)
    }
}
