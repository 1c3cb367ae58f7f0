//! What is printed for people: names and messages in it come from objects that anybody may have written.

use std::fmt::Display;
use std::io::{self, Write as _};

use elector_runtime::{printable, printable_json};
use serde::Serialize;

/// Says on standard error what is wrong, in one line.
pub(crate) fn print_error(what: impl Display) {
    let line = format!("error: {}\n", printable(what.to_string().trim_end()));
    // Where nobody listens any more, the exit code says it.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints a text whose lines are printable. A closed pipe is no error.
///
/// # Errors
///
/// When standard output cannot be written.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a value as JSON. A closed pipe is no error.
///
/// # Errors
///
/// When standard output cannot be written.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    print(&printable_json(&text))
}

/// Left-aligned columns with so many blanks between them and none at the end of a line, each row one printable line.
pub(crate) fn columns<R: AsRef<[String]>>(rows: &[R], blanks: usize) -> Vec<String> {
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.as_ref().iter().map(|cell| printable(cell)).collect())
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<_>| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        padded.join(&" ".repeat(blanks)).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
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
}
