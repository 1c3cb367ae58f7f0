//! Measured tables in documents, each between a line with its name and a line that ends it. Below the table stands where it
//! was made.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result};

use crate::{commands, paths};

/// The arguments of git that leave documents out, from the root of the workspace.
pub const BUT_DOCUMENTS: [&str; 4] = ["--", ".", ":!docs", ":!*.md"];

/// The beginning of the line that says where a record was made.
const MADE: &str = "Made on ";

/// Writes a table into a document, whose path is that from the root of the workspace, in the place of the one of this
/// name, and below it where it was made.
///
/// # Errors
/// When the document cannot be read or written, or has no table of that name, or there is no commit.
pub fn record(document: impl AsRef<Path>, name: &str, table: &str) -> Result<()> {
    let table = format!("{}\n\n{}\n", table.trim_end(), made_here()?);
    edit(document, |text| with_table(text, name, &table))
}

/// The same of a text that does not say where it was made, since the page that it names does.
///
/// # Errors
/// When the document cannot be read or written, or has no text of that name.
pub fn sum_up(document: impl AsRef<Path>, name: &str, text: &str) -> Result<()> {
    edit(document, |known| {
        with_table(known, name, &format!("{}\n", text.trim_end()))
    })
}

/// Says at the end of a page, which a task has written, where it was made.
///
/// # Errors
/// When the page cannot be read or written, or there is no commit.
pub fn sign(page: impl AsRef<Path>) -> Result<()> {
    let made = made_here()?;
    edit(page, |text| Ok(signed(text, &made)))
}

fn edit(document: impl AsRef<Path>, edit: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    let path = paths::workspace().join(document);
    let text = fs::read_to_string(&path);
    let text = text.with_context(|| format!("failed to read {}", path.display()))?;
    let new = edit(&text).with_context(|| format!("failed to record in {}", path.display()))?;
    fs::write(&path, new).with_context(|| format!("failed to write {}", path.display()))
}

fn signed(text: &str, made: &str) -> String {
    let text = text.trim_end();
    let last = text.lines().next_back().unwrap_or_default();
    let unsigned = match last.starts_with(MADE) {
        true => text.strip_suffix(last).unwrap_or(text).trim_end(),
        false => text,
    };
    format!("{unsigned}\n\n{made}\n")
}

/// The machine, the toolchain and the commit, in a sentence. What a system does not tell is left out.
fn made_here() -> Result<String> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut made = format!("{MADE}{processors} processors");
    let told = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = told("/proc/cpuinfo");
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    if let Some(model) = model.and_then(|rest| Some(rest.split_once(':')?.1.trim())) {
        made += &format!(" ({model})");
    }
    let kernel = told("/proc/sys/kernel/osrelease");
    if let Some(version) = kernel.trim().split('-').next().filter(|it| !it.is_empty()) {
        made += &format!(", Linux {version}");
    }
    let toolchain = told(
        &paths::workspace()
            .join("rust-toolchain.toml")
            .to_string_lossy(),
    );
    let mut lines = toolchain.lines();
    if let Some(channel) = lines.find_map(|line| line.strip_prefix("channel = ")) {
        made += &format!(", Rust {}", channel.trim_matches('"'));
    }
    Ok(format!("{made}, at {}.", commit()?))
}

/// The last commit of the workspace that changed more than documents, in twelve digits: what tasks record is no change.
///
/// # Errors
/// When it is no repository.
pub fn commit() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%h", "--abbrev=12"]);
    git.args(BUT_DOCUMENTS).current_dir(paths::workspace());
    Ok(commands::read(&mut git)?.stdout.trim().to_owned())
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

    #[test]
    fn a_page_says_once_where_it_was_made() {
        let made = made_here().unwrap();
        let holds = made.starts_with(MADE) && made.contains(", Rust 1.");
        assert!(holds, "{made}");
        let page = signed("# Page\n\n| row |\n", "Made on another one.");
        assert_eq!(page, "# Page\n\n| row |\n\nMade on another one.\n");
        let expected = format!("# Page\n\n| row |\n\n{made}\n");
        assert_eq!(signed(&page, &made), expected);
    }
}
