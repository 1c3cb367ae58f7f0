//! The narration: one line for each thing that happens, with the time since the start.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use elector_runtime::printable;

/// Writes what happens, line by line.
#[derive(Debug)]
pub(super) struct Narration<W> {
    out: W,
    began: Instant,
    colour: bool,
}

/// Which name is written in which colour.
const COLOURS: [(&str, &str); 4] = [
    ("blue", "34"),
    ("green", "32"),
    ("red", "31"),
    ("violet", "35"),
];

// === impl Narration ===

impl<W: Write> Narration<W> {
    /// A narration whose clock starts now.
    pub(super) fn new(out: W, colour: bool) -> Self {
        Self {
            out,
            began: Instant::now(),
            colour,
        }
    }

    /// Something happened.
    pub(super) fn say(&mut self, at: Instant, line: fmt::Arguments<'_>) -> io::Result<()> {
        let seconds = at.saturating_duration_since(self.began).as_secs_f64();
        let line = self.painted(line);
        if self.colour {
            writeln!(self.out, "\u{1b}[2m{seconds:6.1}s\u{1b}[0m  {line}")?;
        } else {
            writeln!(self.out, "{seconds:6.1}s  {line}")?;
        }
        self.out.flush()
    }

    /// More about what was said last.
    pub(super) fn explain(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        let line = self.painted(line);
        writeln!(self.out, "         {line}")?;
        self.out.flush()
    }

    /// The writer.
    #[cfg(test)]
    pub(super) fn into_inner(self) -> W {
        self.out
    }

    /// The line as a terminal may show it, with each name in its colour.
    fn painted(&self, line: fmt::Arguments<'_>) -> String {
        let line = printable(&line.to_string()).into_owned();
        if !self.colour {
            return line;
        }
        let is_end = |c: char| !c.is_ascii_alphanumeric();
        let mut painted = String::with_capacity(line.len() * 2);
        for piece in line.split_inclusive(is_end) {
            let word = piece.trim_end_matches(is_end);
            match COLOURS.iter().find(|(name, _)| *name == word) {
                Some((name, colour)) => {
                    painted.push_str(&format!("\u{1b}[1;{colour}m{name}\u{1b}[0m"));
                    painted.push_str(&piece[word.len()..]);
                }
                None => painted.push_str(piece),
            }
        }
        painted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(colour: bool) -> String {
        let mut narration = Narration::new(Vec::new(), colour);
        let at = narration.began + Duration::from_millis(12_345);
        narration
            .say(at, format_args!("green leads; blue and bluebells do not."))
            .unwrap();
        narration
            .explain(format_args!("why: red, it seems"))
            .unwrap();
        String::from_utf8(narration.into_inner()).unwrap()
    }

    #[test]
    fn what_a_stranger_wrote_stays_in_its_line_and_moves_no_cursor() {
        for colour in [false, true] {
            let mut narration = Narration::new(Vec::new(), colour);
            narration
                .explain(format_args!(
                    "why: \u{1b}[2J\u{9b}A\n  0.0s  x leads\u{202e}"
                ))
                .unwrap();
            let expected = "         why: \\u{1b}[2J\\u{9b}A\\n  0.0s  x leads\\u{202e}\n";
            assert_eq!(String::from_utf8(narration.into_inner()).unwrap(), expected);
        }
    }

    #[test]
    fn names_are_painted_where_colours_are_wanted_and_nothing_else() {
        assert_eq!(
            outcome(false),
            "  12.3s  green leads; blue and bluebells do not.\n         why: red, it seems\n"
        );
        assert_eq!(
            outcome(true),
            "\u{1b}[2m  12.3s\u{1b}[0m  \u{1b}[1;32mgreen\u{1b}[0m leads; \u{1b}[1;34mblue\u{1b}[0m and bluebells do \
             not.\n         why: \u{1b}[1;31mred\u{1b}[0m, it seems\n"
        );
    }
}
