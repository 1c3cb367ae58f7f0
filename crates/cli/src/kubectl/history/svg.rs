//! The past as an SVG picture, for a report or a page: readable on a light and on a dark ground, the same for the same past,
//! and without a script or anything that is fetched.

use std::fmt::Write as _;

use elector_protocol::Timestamp;
use elector_runtime::printable;

use super::past::{LeasePast, in_seconds};
use super::segments::{TimelineSegment, leaders, segments};
use crate::output::cut;

/// Heights and widths in pixels. A character is as wide as those of the usual monospaced fonts of this size.
const ROW: usize = 26;
const BAR: usize = 18;
const CHARACTER: usize = 8;
const MARGIN: usize = 10;
/// The width of one part of the time; `--width` is the number of parts.
const PART: usize = 10;
/// The least width of a term, however short it was.
const NARROWEST: usize = 2;
/// The most characters of a name, and of the note on a term that is pointed at.
const LONGEST_NAME: usize = 31;
const LONGEST_NOTE: usize = 1023;

const STYLE: &str = "\
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#59636e}\
.led{fill:#1f6feb}.none{fill:#cf222e}.track{fill:#818b981f}.term{fill:#fff}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}}";

/// A row for each leader in the order in which they came, and a bar for each term, with its number and the reason of the
/// change where there is room for them.
pub(super) fn draw(past: &LeasePast, until: Timestamp, parts: usize) -> String {
    let segments = segments(past, until);
    let Some(first) = segments.first() else {
        return String::new();
    };
    let leaders = leaders(&segments);
    let labels: Vec<String> = leaders.iter().map(|name| cut(name, LONGEST_NAME)).collect();
    let longest = labels.iter().map(|label| label.chars().count()).max();
    let left = 2 * MARGIN + longest.unwrap_or_default() * CHARACTER;
    let plot = parts * PART;
    let start = first.from.as_micros();
    let lasts = (until.as_micros() - start).max(1);
    let x = |time: Timestamp| {
        let part = i128::from(time.as_micros() - start) * i128::try_from(plot).unwrap_or(0);
        let offset = usize::try_from(part / i128::from(lasts)).unwrap_or(0);
        left + offset.min(plot)
    };
    let (width, height) = (left + plot + MARGIN, ROW * (leaders.len() + 2) + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\">\n<title>Who led {lease}</title>\n<style>{STYLE}</style>\n",
        lease = escape(&past.lease.to_string()),
    );
    let lease = cut(&past.lease.to_string(), parts);
    write_text(&mut svg, MARGIN, 0, "", &lease);
    for (row, label) in labels.iter().enumerate() {
        write_text(&mut svg, MARGIN, row + 1, "", label);
        let y = bar(row + 1);
        let track = format!("x=\"{left}\" y=\"{y}\" width=\"{plot}\" height=\"{BAR}\"");
        let _ = writeln!(svg, "<rect class=\"track\" {track}/>");
    }
    for segment in &segments {
        let row = leaders
            .iter()
            .position(|name| *name == segment.leader())
            .map_or(0, |row| row + 1);
        let from = x(segment.from).min(left + plot - NARROWEST);
        let wide = x(segment.to).saturating_sub(from).max(NARROWEST);
        write_bar(&mut svg, segment, row, from, wide);
    }
    let (from, to) = (in_seconds(first.from), in_seconds(until));
    let end = left + plot - to.chars().count() * CHARACTER;
    write_text(&mut svg, left, leaders.len() + 1, "", &from);
    write_text(&mut svg, end, leaders.len() + 1, "", &to);
    svg.push_str("</svg>\n");
    svg
}

/// A term, from `x` on.
fn write_bar(svg: &mut String, segment: &TimelineSegment<'_>, row: usize, x: usize, width: usize) {
    let change = segment.change;
    let class = if change.leader.is_some() {
        "led"
    } else {
        "none"
    };
    let told = format!(
        "{} {}: {}",
        in_seconds(segment.from),
        change.reason,
        change.note
    );
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR}\" rx=\"3\"><title>{}</title></rect>",
        bar(row),
        escape(&cut(&told, LONGEST_NOTE)),
    );
    let term = change.term.map(|term| format!("term {term}"));
    let words = [
        term.as_ref()
            .map(|term| format!("{term} {}", change.reason)),
        term,
    ];
    let fits = |text: &String| (text.chars().count() + 1) * CHARACTER <= width;
    if let Some(text) = words.into_iter().flatten().find(fits) {
        write_text(svg, x + CHARACTER / 2, row, "term", &text);
    }
}

fn write_text(svg: &mut String, x: usize, row: usize, class: &str, text: &str) {
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let y = bar(row) + BAR - 5;
    let _ = writeln!(
        svg,
        "<text{class} x=\"{x}\" y=\"{y}\">{}</text>",
        escape(text)
    );
}

/// Where the bar of a row begins.
const fn bar(row: usize) -> usize {
    MARGIN + row * ROW
}

/// A text as a part of an XML document. Names and notes are those of objects that anybody may have written.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in printable(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
