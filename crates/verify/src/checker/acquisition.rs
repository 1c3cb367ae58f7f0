//! Terms that their holder began by itself (R18): in plain mode, and in auto mode where no elector acts.

use std::collections::BTreeMap;

use elector_api::{Lease, annotation};
use elector_protocol::{Identity, LeaseRecord, ResourceVersion};

use super::broken_rule::BrokenRule;
use crate::verdict::Invariant;

/// The acquisition of a lease: one write that is grant and accept at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcquisitionCheck<'a> {
    pub(super) holder: &'a Identity,
    /// The version that the write replaced.
    replaced: ResourceVersion,
    before: &'a LeaseRecord,
    after: &'a LeaseRecord,
}

/// The annotations of Elector begin with this; all others belong to other writers.
const OWN_ANNOTATIONS: &str = "elector.dev/";

// === impl AcquisitionCheck ===

impl<'a> AcquisitionCheck<'a> {
    /// The acquisition that a change is; `None` where it is another one. Whichever other write begins a term leaves it
    /// without a token of its own: the accept writes that later (R5).
    pub(super) fn of(
        replaced: ResourceVersion,
        before: &'a LeaseRecord,
        after: &'a LeaseRecord,
    ) -> Option<Self> {
        let holder = after.holder.as_ref()?;
        let begins = (&before.holder, before.term) != (&after.holder, after.term);
        // An elector that counts no terms leaves the token of an earlier holder in place.
        let signs = after.has_token() || after.token.is_some() && after.token != before.token;
        (begins && signs).then_some(Self {
            holder,
            replaced,
            before,
            after,
        })
    }

    /// The record that was replaced, and the one that was written.
    pub(super) fn records(&self) -> (&'a LeaseRecord, &'a LeaseRecord) {
        (self.before, self.after)
    }

    /// The form of the write, field by field. When it may be written is judged elsewhere.
    pub(super) fn form(&self, lease: &Lease) -> Result<(), BrokenRule> {
        let Self { before, after, .. } = self;
        let next = before.term.next();
        if after.term != next {
            return self.wrong(format!(
                "leaseTransitions is {} where the next term is {next}",
                after.term
            ));
        }
        if after.acquire_time.is_none() || after.acquire_time != after.renew_time {
            return self.wrong("acquireTime and renewTime are not the same time");
        }
        if after.renew_time == before.renew_time {
            return self.wrong("renewTime is that of the record before");
        }
        if after.duration().is_none() {
            return self.wrong("leaseDurationSeconds is missing or zero");
        }
        if after.preferred_holder.is_some() {
            return self.wrong("preferredHolder is still there");
        }
        if after.strategy != before.strategy {
            return self.wrong("strategy is another than before");
        }
        if let Some(strategy) = &before.strategy
            && strategy.strategy().is_none()
        {
            return self.wrong(format!("strategy {strategy} belongs to another elector"));
        }
        let annotations = lease.metadata.annotations.as_ref();
        let named = annotations.and_then(|it| it.get(annotation::TOKEN_HOLDER));
        if named.map(String::as_str) != Some(self.holder.as_str()) {
            return self.unsigned("elector.dev/token-holder does not name it");
        }
        if after.token_term != Some(after.term) {
            return self.unsigned(&format!(
                "elector.dev/token-term does not name the term {}",
                after.term
            ));
        }
        if after.token.map(|token| token.0) != Some(self.replaced) {
            return self.unsigned(&format!(
                "elector.dev/token does not name @{}, which the write replaced; or a revision is missing here",
                self.replaced
            ));
        }
        Ok(())
    }

    /// Content that the writer does not know stays as it is.
    pub(super) fn carries_over(&self, before: &Lease, after: &Lease) -> Result<(), BrokenRule> {
        if before
            .metadata
            .labels
            .iter()
            .flatten()
            .ne(after.metadata.labels.iter().flatten())
        {
            return self.wrong("metadata.labels are others than before");
        }
        if of_others(before) != of_others(after) {
            return self.wrong("metadata.annotations of other writers are not what they were");
        }
        if before.spec.other != after.spec.other {
            return self.wrong("a field of the spec that Elector does not know has changed");
        }
        Ok(())
    }

    fn wrong(&self, what: impl Into<String>) -> Result<(), BrokenRule> {
        let message = format!("acquired by {}: {} (R18)", self.holder, what.into());
        Err(BrokenRule::promised(Invariant::S3, message))
    }

    fn unsigned(&self, what: &str) -> Result<(), BrokenRule> {
        let message = format!("acquired by {}: {what} (R14, R18)", self.holder);
        Err(BrokenRule::promised(Invariant::S5, message))
    }
}

/// The annotations that are not Elector's.
fn of_others(lease: &Lease) -> BTreeMap<&str, &str> {
    let all = lease.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| !key.starts_with(OWN_ANNOTATIONS))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}
