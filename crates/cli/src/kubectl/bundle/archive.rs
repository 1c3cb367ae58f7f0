//! The archive that a bundle is.

use std::collections::BTreeMap;
use std::io;

use anyhow::Context as _;
use elector_protocol::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

/// Packs files into a compressed archive, in a folder of its own.
pub(super) fn pack(
    folder: &str,
    at: Timestamp,
    files: &BTreeMap<String, String>,
) -> anyhow::Result<Vec<u8>> {
    let seconds = at.as_micros().div_euclid(1_000_000);
    let pack = || -> io::Result<Vec<u8>> {
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (name, text) in files {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            header.set_mtime(u64::try_from(seconds).unwrap_or_default());
            header.set_size(u64::try_from(text.len()).unwrap_or_default());
            archive.append_data(&mut header, format!("{folder}/{name}"), text.as_bytes())?;
        }
        archive.into_inner()?.finish()
    };
    pack().context("pack the bundle")
}
