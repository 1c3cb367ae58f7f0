//! Measured tables in documents, each between a line with its name and a line that ends it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::paths;

/// Writes a table into a document, whose path is that from the root of the workspace, in the place of the one of this
/// name.
///
/// # Errors
/// When the document cannot be read or written, or has no table of that name.
pub fn record(document: impl AsRef<Path>, name: &str, table: &str) -> Result<()> {
    let path = paths::workspace().join(document);
    let text = fs::read_to_string(&path);
    let text = text.with_context(|| format!("failed to read {}", path.display()))?;
    let new = with_table(&text, name, table);
    let new = new.with_context(|| format!("failed to record in {}", path.display()))?;
    fs::write(&path, new).with_context(|| format!("failed to write {}", path.display()))
}

fn with_table(text: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- measured: {name} -->\n"), "<!-- end -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .with_context(|| format!("there is no line {}", begin.trim()))?;
    let (_, after) = rest
        .split_once(end)
        .with_context(|| format!("there is no line {} after {}", end.trim(), begin.trim()))?;
    Ok(format!("{before}{begin}\n{table}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_name_is_replaced_and_nothing_else() {
        let text = "a\n<!-- measured: one -->\nold\n<!-- end -->\nb\n<!-- measured: two -->\n<!-- end -->\n";
        let new = with_table(text, "one", "| new |\n").unwrap();
        assert_eq!(new, text.replace("old\n", "\n| new |\n\n"));
        assert_eq!(with_table(&new, "one", "| new |\n").unwrap(), new);
        let error = with_table(text, "three", "").unwrap_err().to_string();
        assert_eq!(error, "there is no line <!-- measured: three -->");
    }
}
