//! One page of a list: how much is asked for, and how it is read.

use std::fmt;
use std::marker::PhantomData;
use std::pin::pin;

use futures::AsyncBufReadExt as _;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use super::object::WatchedObject;

/// The number of objects that are asked for at a time.
///
/// The answer to a request is held whole until its objects are read, and one object may have a megabyte and a half. So
/// pages are counted in objects, which is all that an API server can be asked for, and bounded in bytes: an answer that is
/// larger is given up, and half as many objects are asked for. Pages of small objects grow, as each costs a request.
#[derive(Debug)]
pub(super) struct PageSize(u32);

/// The text of a page. While there is one, a reader of the watch is at work.
pub(super) struct PageText<'a> {
    pub(super) bytes: Vec<u8>,
    _reader: Result<SemaphorePermit<'a>, AcquireError>,
}

/// Reads the objects of a page into a list, one after the other, and returns the metadata of the page.
struct PageReader<'a, K: WatchedObject, L> {
    kind: &'a K::DynamicType,
    list: &'a mut L,
}

/// The same of its items.
struct ItemReader<'a, K: WatchedObject, L> {
    kind: &'a K::DynamicType,
    list: &'a mut L,
    items: PhantomData<K>,
}

/// The bytes that a page may have, unless it is of a single object: more than that, whatever writers put into it.
const PAGE_BYTES: usize = 8 << 20;

/// The number of objects that are asked for at first: all leases of a small cluster.
const FIRST: u32 = 128;

/// The number of objects that are asked for at most.
const MOST: u32 = 4096;

// === impl PageSize ===

impl PageSize {
    pub(super) fn limit(&self) -> u32 {
        self.0
    }

    /// The number of bytes that the page may have.
    pub(super) fn bytes(&self) -> usize {
        if self.0 > 1 { PAGE_BYTES } else { usize::MAX }
    }

    /// A page had more bytes than it may.
    pub(super) fn shrink(&mut self) {
        self.0 = (self.0 / 2).max(1);
    }

    /// A page that is not the last one had so many bytes.
    pub(super) fn adapt(&mut self, bytes: usize) {
        if bytes <= PAGE_BYTES / 4 {
            self.0 = (self.0 * 2).min(MOST);
        }
    }
}

impl Default for PageSize {
    fn default() -> Self {
        Self(FIRST)
    }
}

/// The answer to a request, `None` if it has more than so many bytes: the rest of it is not read then. It is read when one
/// of the readers is free.
pub(super) async fn fetch<'a>(
    client: &Client,
    request: Request<Vec<u8>>,
    most: usize,
    readers: &'a Semaphore,
) -> kube::Result<Option<PageText<'a>>> {
    let mut body = pin!(client.request_stream(request).await?);
    // It is never closed, so this cannot fail.
    let reader = readers.acquire().await;
    let mut bytes = Vec::new();
    // `read_to_end` would clear each byte of the buffer before it reads into it.
    while bytes.len() <= most {
        let chunk = body.fill_buf().await.map_err(kube::Error::ReadEvents)?;
        let length = chunk.len();
        if length == 0 {
            return Ok(Some(PageText {
                bytes,
                _reader: reader,
            }));
        }
        bytes.extend_from_slice(chunk);
        body.consume_unpin(length);
    }
    Ok(None)
}

/// Adds the objects of a page to a list. Each is in memory alone, beside the text of the page and what the list keeps.
pub(super) fn read_into<K: WatchedObject, L: Extend<K>>(
    bytes: &[u8],
    kind: &K::DynamicType,
    list: &mut L,
) -> serde_json::Result<ListMeta> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let metadata = PageReader { kind, list }.deserialize(&mut json)?;
    json.end()?;
    Ok(metadata)
}

// === impl PageReader ===

impl<'de, K: WatchedObject, L: Extend<K>> DeserializeSeed<'de> for PageReader<'_, K, L> {
    type Value = ListMeta;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListMeta, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: WatchedObject, L: Extend<K>> Visitor<'de> for PageReader<'_, K, L> {
    type Value = ListMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<ListMeta, A::Error> {
        let mut metadata = ListMeta::default();
        while let Some(name) = access.next_key::<String>()? {
            match name.as_str() {
                "metadata" => metadata = access.next_value()?,
                "items" => access.next_value_seed(ItemReader {
                    kind: self.kind,
                    list: &mut *self.list,
                    items: PhantomData,
                })?,
                _ => {
                    let IgnoredAny = access.next_value()?;
                }
            }
        }
        Ok(metadata)
    }
}

// === impl ItemReader ===

impl<'de, K: WatchedObject, L: Extend<K>> DeserializeSeed<'de> for ItemReader<'_, K, L> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, K: WatchedObject, L: Extend<K>> Visitor<'de> for ItemReader<'_, K, L> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(mut object) = access.next_element::<K>()? {
            object.complete(self.kind);
            self.list.extend([object]);
        }
        Ok(())
    }

    /// Go writes an empty list as `null`.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}
