//! Changes of a Lease that Elector never wrote, with a holder that has nothing to do with it.

use serde_json::Value;

use super::accounts::{HOLDER, PREFERRED};
use super::lease_changes::{labelled, none, note, plain, release, renewal, row, spec, term};
use super::requests::{ObjectWrite, delete, put};
use super::tables::TableRow;

/// Every row.
pub(super) const ROWS: &[TableRow] = &[
    row("grant", led, |o, _| {
        term(o, PREFERRED, 5, None).with(|object| note(object, "protocol", "1"))
    }),
    row(
        "change of the holder without a mark of Elector",
        led,
        |o, _| term(o, PREFERRED, 5, None),
    ),
    row(
        "change of the holder to itself, in the same term",
        led,
        |o, me| put(o, spec("holderIdentity", me)),
    ),
    row("preference", led, |o, _| {
        put(o, |object| {
            note(object, "protocol", "1");
            note(object, "strategy", "OldestEmulationVersion");
            note(object, "preferred-holder", PREFERRED);
        })
    }),
    row("renewal", led, |o, _| renewal(o, |_| {})),
    row("release", led, |o, _| release(o, |_| {})),
    row("label and annotation", led, |o, _| put(o, labelled)),
    row("creation with a holder", none, |_, _| {
        ObjectWrite::post(led().unwrap_or_default())
    }),
    row("deletion", led, |o, _| delete(o)),
];

fn led() -> Option<Value> {
    plain(HOLDER)
}
