//! The parts of a list that say which objects it holds.

use std::borrow::Cow;

use elector_protocol::shard::{ShardField, ShardSelector, shard_hash};
use serde::Deserialize;

/// A page of a list; whatever else is in it is skipped.
#[derive(Debug, Deserialize)]
pub(super) struct ReadPage<'a> {
    #[serde(default, borrow)]
    metadata: PageMeta<'a>,
    #[serde(default, borrow)]
    items: Option<Vec<Item<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta<'a> {
    #[serde(default, borrow)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(default, borrow, rename = "continue")]
    token: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    shard_info: Option<ShardInfo<'a>>,
}

#[derive(Debug, Deserialize)]
struct ShardInfo<'a> {
    #[serde(borrow)]
    selector: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Item<'a> {
    #[serde(default, borrow)]
    metadata: ItemMeta<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct ItemMeta<'a> {
    #[serde(default, borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    namespace: Option<Cow<'a, str>>,
}

// === impl ReadPage ===

impl ReadPage<'_> {
    /// The token of the next page.
    pub(super) fn next(&self) -> Option<&str> {
        let token = self.metadata.token.as_deref();
        token.filter(|token| !token.is_empty())
    }

    /// The version of the list.
    pub(super) fn version(&self) -> Option<&str> {
        let version = self.metadata.resource_version.as_deref();
        version.filter(|version| !version.is_empty())
    }

    /// True if the server says that it has selected by exactly these ranges.
    pub(super) fn reports(&self, selector: &ShardSelector) -> bool {
        let info = self.metadata.shard_info.as_ref();
        let reported = info.and_then(|info| info.selector.parse::<ShardSelector>().ok());
        reported.as_ref() == Some(selector)
    }

    /// True if no object lies outside of these ranges.
    pub(super) fn is_within(&self, selector: &ShardSelector) -> bool {
        let mut items = self.items.iter().flatten();
        items.all(|item| {
            let text = match selector.field() {
                ShardField::Uid => &item.metadata.uid,
                ShardField::Namespace => &item.metadata.namespace,
            };
            selector.contains(shard_hash(text.as_deref().unwrap_or_default()))
        })
    }
}
