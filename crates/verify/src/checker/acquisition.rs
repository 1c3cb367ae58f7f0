//! Terms that their holder began by itself (R18): in plain mode, and in auto mode where no elector acts.

use std::collections::BTreeMap;

use elector_api::{Lease, annotation};
use elector_protocol::{Identity, LeaseRecord, ResourceVersion};

use crate::broken_rule::BrokenRule;
use crate::reading::has_token;
use crate::verdict::Invariant;

/// The annotations of Elector begin with this; all others belong to other writers.
const OWN_ANNOTATIONS: &str = "elector.dev/";

/// True where a holder began a term by itself. Whichever other write begins a term leaves it without a token of its own:
/// the accept writes that later (R5).
pub(super) fn is_acquisition(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    let begins = (&before.holder, before.term) != (&after.holder, after.term);
    // An elector that counts no terms leaves the token of an earlier holder in place.
    let signs = has_token(after) || after.token.is_some() && after.token != before.token;
    after.holder.is_some() && begins && signs
}

/// The signature of the write by which `holder` acquired the lease, and what it has to leave as it was.
pub(super) fn signed(
    before: &Lease,
    after: &Lease,
    holder: &Identity,
    replaced: ResourceVersion,
) -> Result<(), BrokenRule> {
    let broken = |invariant, what: &str| {
        let message = format!("acquired by {holder}: {what}");
        Err(BrokenRule::promised(invariant, message))
    };
    let annotations = after.metadata.annotations.as_ref();
    let named = annotations.and_then(|it| it.get(annotation::TOKEN_HOLDER));
    if named.map(String::as_str) != Some(holder.as_str()) {
        let what = "elector.dev/token-holder does not name it (R14, R18)";
        return broken(Invariant::S5, what);
    }
    let token = annotations.and_then(|it| it.get(annotation::TOKEN));
    if token.is_none_or(|token| *token != replaced.to_string()) {
        let what = format!(
            "elector.dev/token does not name @{replaced}, which the write replaced; or a revision is missing here \
             (R14, R18)"
        );
        return broken(Invariant::S5, &what);
    }
    // Labels of its own, or of its group, may have come with it.
    let labels = after.metadata.labels.as_ref();
    let is_gone = |key: &String| labels.is_none_or(|labels| !labels.contains_key(key));
    if before
        .metadata
        .labels
        .iter()
        .flatten()
        .any(|(key, _)| is_gone(key))
    {
        return broken(Invariant::S3, "a label that was there is gone (R18)");
    }
    if of_others(before) != of_others(after) {
        let what = "metadata.annotations of other writers are not what they were (R18)";
        return broken(Invariant::S3, what);
    }
    if before.spec.other != after.spec.other {
        let what = "a field of the spec that Elector does not know has changed (R18)";
        return broken(Invariant::S3, what);
    }
    Ok(())
}

/// The annotations that are not Elector's.
fn of_others(lease: &Lease) -> BTreeMap<&str, &str> {
    let all = lease.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| !key.starts_with(OWN_ANNOTATIONS))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}
