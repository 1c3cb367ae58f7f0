//! Text for people: names and messages in it come from objects that anybody may have written.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::process;

use clap::ValueEnum;
use elector_runtime::{printable, printable_json};
use serde::Serialize;

use crate::yaml::to_yaml;

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
    Yaml,
}

/// Says on standard error what is wrong, in one line.
pub(crate) fn print_error(what: impl Display) {
    let line = format!("error: {}\n", printable(what.to_string().trim_end()));
    // Where nobody listens any more, the exit code says it.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints a text whose lines are printable. A closed pipe is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints one of many texts. A closed pipe ends the process: what follows has no reader either.
pub(crate) fn print_or_end(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(0),
        result => result,
    }
}

/// Says on standard error that there is nothing to print, as kubectl says it.
pub(crate) fn print_nothing_found(namespace: Option<&str>) {
    match namespace {
        Some(namespace) => eprintln!("No resources found in {} namespace.", printable(namespace)),
        None => eprintln!("No resources found"),
    }
}

/// The colour of errors.
pub(crate) const RED: u8 = 31;
/// The colour of warnings.
pub(crate) const YELLOW: u8 = 33;

/// True where standard output is a terminal whose user does not refuse colours with $NO_COLOR.
pub(crate) fn is_coloured() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stdout().is_terminal()
}

/// Lines, each in one of the terminal's colours or in none.
pub(crate) fn coloured(
    lines: Vec<String>,
    colours: impl IntoIterator<Item = Option<u8>>,
) -> String {
    let is_coloured = is_coloured();
    let lines = lines.into_iter().zip(colours);
    let lines = lines.map(|(line, colour)| match colour.filter(|_| is_coloured) {
        Some(colour) => format!("\u{1b}[{colour}m{line}\u{1b}[0m\n"),
        None => line + "\n",
    });
    lines.collect()
}

/// Prints a value as JSON. A closed pipe is no error.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    print(&printable_json(&text))
}

/// Prints a list in the form that is asked for. A closed pipe is no error.
pub(crate) fn print_list(
    format: ListFormat,
    list: &impl Serialize,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    match format {
        ListFormat::Table => print(&table())?,
        ListFormat::Json => print_json(list)?,
        ListFormat::Yaml => print(&to_yaml(&serde_json::to_value(list)?)?)?,
    }
    Ok(())
}

/// Left-aligned columns with so many blanks between them and none at the end of a line, each row one printable line.
pub(crate) fn columns<R: AsRef<[String]>>(rows: &[R], blanks: usize) -> Vec<String> {
    Columns::new(blanks).lines(rows)
}

/// Columns that are at least as wide as they were before, for rows that come one after the other.
#[derive(Debug)]
pub(crate) struct Columns {
    blanks: usize,
    widths: Vec<usize>,
}

/// The most characters of a text in the last column of a row: a sentence with a few names in it.
const LONGEST_TEXT: usize = 1024;

/// The most characters of a text in any other column: no server takes a longer name of an object.
const LONGEST_NAME: usize = 253;

// === impl Columns ===

impl Default for Columns {
    /// As far apart as kubectl's.
    fn default() -> Self {
        Self::new(3)
    }
}

impl Columns {
    /// Columns with so many blanks between them.
    pub(crate) const fn new(blanks: usize) -> Self {
        Self {
            blanks,
            widths: Vec::new(),
        }
    }

    /// Further rows. What is too long for a table is cut.
    pub(crate) fn lines<R: AsRef<[String]>>(&mut self, rows: &[R]) -> Vec<String> {
        let cells = |row: &R| {
            let row = row.as_ref();
            let most = |index| {
                if index + 1 == row.len() {
                    LONGEST_TEXT
                } else {
                    LONGEST_NAME
                }
            };
            let cells = row.iter().enumerate();
            cells.map(|(index, cell)| cut(cell, most(index))).collect()
        };
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        for row in &rows {
            self.widths.resize(self.widths.len().max(row.len()), 0);
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let gap = " ".repeat(self.blanks);
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.widths);
            let padded: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            padded.join(&gap).trim_end().to_owned()
        };
        rows.iter().map(line).collect()
    }
}

/// A text as one printable line of so many characters at most.
pub(crate) fn cut(text: &str, most: usize) -> String {
    // No more of the text than can be shown is looked at.
    let end = text.char_indices().nth(most + 1);
    let shown = printable(end.map_or(text, |(end, _)| &text[..end]));
    match shown.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_takes_the_room_that_its_escapes_need() {
        let rows =
            [["a\nb", "c"], ["long", "d\u{1b}[31m"], ["", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows, 3), ["a\\nb   c", "long   d\\u{1b}[31m", ""]);
    }

    #[test]
    fn a_cell_that_is_too_long_is_cut_after_it_was_escaped() {
        let row = [
            "\u{1b}".repeat(100_000),
            "x".to_owned(),
            "ü".repeat(100_000),
        ];
        let line = columns(&[row], 1).remove(0);
        let cells: Vec<_> = line.split(' ').collect();
        assert!(cells[0].starts_with(r"\u{1b}\u{1b}"), "{line}");
        let length = |cell: &str| cell.chars().count();
        assert_eq!(length(cells[0]), LONGEST_NAME + 1);
        assert_eq!(length(cells[2]), LONGEST_TEXT + 1);
        let holds = cells[0].ends_with('…') && cells[2].ends_with("ü…");
        assert!(holds, "{line}");
        let exact = ["n".repeat(LONGEST_NAME), "x".to_owned()];
        assert!(!columns(&[exact], 1)[0].contains('…'));
    }

    #[test]
    fn columns_grow_and_never_shrink() {
        let mut columns = Columns::new(1);
        let row = |cells: [&str; 2]| cells.map(str::to_owned);
        assert_eq!(columns.lines(&[row(["long", "a"])]), ["long a"]);
        assert_eq!(columns.lines(&[row(["b", "c"])]), ["b    c"]);
        assert_eq!(columns.lines(&[row(["longer", "d"])]), ["longer d"]);
    }
}
