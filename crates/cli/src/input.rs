//! The input of a sub-command: files, or standard input.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

/// The name of a file for messages, and its bytes; `-` is standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("read standard input")?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("read {name}"))?;
    Ok((name, bytes))
}
