//! Placeholders, which electors wrote that ran with `--reserve`. That flag went; recordings from before are judged all the
//! same.

use elector_protocol::{Identity, LeaseRecord};

use crate::reading::{duration, has_token, is_unaccepted_grant};

/// The prefix of a placeholder's `holderIdentity`; the name of the holder that it replaced follows.
const RESERVED_FROM: &str = "elector.dev:reserved-from:";

/// The holder of a record; a placeholder is none.
pub(crate) fn holder(record: &LeaseRecord) -> Option<&Identity> {
    let holder = record.holder.as_ref()?;
    (!holder.as_str().starts_with(RESERVED_FROM)).then_some(holder)
}

/// True where a placeholder takes the place of a client-go holder, and keeps the lease from all others for as long as that
/// one may believe.
pub(crate) fn is_reservation(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    let placeholder = after.holder.as_ref().map(Identity::as_str);
    let replaced = placeholder.and_then(|name| name.strip_prefix(RESERVED_FROM));
    replaced.is_some()
        && replaced == before.holder.as_ref().map(Identity::as_str)
        && !has_token(before)
        && !is_unaccepted_grant(before)
        && after.term == before.term.next()
        && after.renew_time != before.renew_time
        && duration(after) >= duration(before)
}
