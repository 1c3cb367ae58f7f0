//! The past as an SVG picture, for a report or a page: readable on a light and on a dark ground, the same for the same past,
//! and without a script or anything that is fetched.

use std::fmt::Write as _;

use elector_protocol::Timestamp;
use elector_runtime::printable;

use super::group::{GroupPast, member_of};
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

/// The colours of members, in the order of their names; those that come after begin anew.
const MEMBERS: [&str; 10] = [
    "1f6feb", "1a7f37", "8250df", "9a6700", "0e7490", "bc4c00", "bf3989", "57606a", "4d7c0f",
    "7c2d12",
];

/// A picture before it is written down.
struct SvgPicture<'a> {
    /// The lease or the group.
    subject: &'a str,
    style: String,
    /// The names of the rows.
    labels: Vec<&'a str>,
    bars: Vec<SvgBar<'a>>,
    /// The colours that have a meaning, by the names of their classes.
    legend: Vec<(String, &'a str)>,
    from: Timestamp,
    until: Timestamp,
}

/// A stretch of time in a row.
struct SvgBar<'a> {
    row: usize,
    class: String,
    segment: TimelineSegment<'a>,
    /// Texts to stand in it; the first that fits does.
    words: Vec<String>,
}

/// A row for each leader in the order in which they came, and a bar for each term, with its number and the reason of the
/// change where there is room for them.
pub(super) fn draw(past: &LeasePast, until: Timestamp, parts: usize) -> String {
    let segments = segments(past, until);
    let Some(from) = segments.first().map(|first| first.from) else {
        return String::new();
    };
    let labels = leaders(&segments);
    let bars = segments.into_iter().map(|segment| {
        let row = labels.iter().position(|name| *name == segment.leader());
        let change = segment.change;
        let term = change.term.map(|term| format!("term {term}"));
        let both = term
            .as_ref()
            .map(|term| format!("{term} {}", change.reason));
        let led = if change.leader.is_some() {
            "led"
        } else {
            "none"
        };
        SvgBar {
            row: row.unwrap_or_default(),
            class: led.to_owned(),
            words: both.into_iter().chain(term).collect(),
            segment,
        }
    });
    let picture = SvgPicture {
        subject: &past.lease.to_string(),
        style: STYLE.to_owned(),
        bars: bars.collect(),
        labels,
        legend: Vec::new(),
        from,
        until,
    };
    picture.draw(parts)
}

/// A row for each part of a group, and a bar for each term in the colour of the member that led.
pub(super) fn draw_group(past: &GroupPast, until: Timestamp, parts: usize) -> String {
    let Some(from) = past.from() else {
        return String::new();
    };
    let members = past.members();
    let class_of = |index: usize| format!("m{}", index % MEMBERS.len());
    let mut bars = Vec::new();
    for (row, part) in past.parts.iter().enumerate() {
        for segment in segments(part, until) {
            let leader = segment.change.leader.as_deref();
            let member = leader.map(|leader| member_of(&part.lease, leader));
            let index = member.and_then(|member| members.iter().position(|it| *it == member));
            bars.push(SvgBar {
                row,
                class: index.map_or_else(|| "none".to_owned(), class_of),
                words: member.map(str::to_owned).into_iter().collect(),
                segment,
            });
        }
    }
    let colours = MEMBERS.iter().enumerate();
    let colours: String = colours
        .map(|(index, colour)| format!(".m{index}{{fill:#{colour}}}"))
        .collect();
    let names = members.iter().enumerate();
    let picture = SvgPicture {
        subject: &past.name,
        style: format!("{STYLE}{colours}"),
        labels: past.parts.iter().map(|part| &*part.lease.name).collect(),
        bars,
        legend: names
            .map(|(index, name)| (class_of(index), *name))
            .collect(),
        from,
        until,
    };
    picture.draw(parts)
}

// === impl SvgPicture ===

impl SvgPicture<'_> {
    fn draw(&self, parts: usize) -> String {
        let labels = self.labels.iter().map(|name| cut(name, LONGEST_NAME));
        let labels: Vec<String> = labels.collect();
        let longest = labels.iter().map(|label| label.chars().count()).max();
        let left = 2 * MARGIN + longest.unwrap_or_default() * CHARACTER;
        let plot = parts * PART;
        let start = self.from.as_micros();
        let lasts = (self.until.as_micros() - start).max(1);
        let x = |time: Timestamp| {
            let part = i128::from(time.as_micros() - start) * i128::try_from(plot).unwrap_or(0);
            let offset = usize::try_from(part / i128::from(lasts)).unwrap_or(0);
            left + offset.min(plot)
        };
        let axis = labels.len() + 1;
        let rows = axis + 1 + self.legend.len();
        let (width, height) = (left + plot + MARGIN, ROW * rows + MARGIN);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\">\n<title>Who led {subject}</title>\n<style>{style}</style>\n",
            subject = escape(self.subject),
            style = self.style,
        );
        write_text(&mut svg, MARGIN, 0, "", &cut(self.subject, parts));
        for (row, label) in labels.iter().enumerate() {
            write_text(&mut svg, MARGIN, row + 1, "", label);
            let y = bar(row + 1);
            let track = format!("x=\"{left}\" y=\"{y}\" width=\"{plot}\" height=\"{BAR}\"");
            let _ = writeln!(svg, "<rect class=\"track\" {track}/>");
        }
        for bar in &self.bars {
            let from = x(bar.segment.from).min(left + plot - NARROWEST);
            let wide = x(bar.segment.to).saturating_sub(from).max(NARROWEST);
            bar.write(&mut svg, from, wide);
        }
        let (from, to) = (in_seconds(self.from), in_seconds(self.until));
        let end = left + plot - to.chars().count() * CHARACTER;
        write_text(&mut svg, left, axis, "", &from);
        write_text(&mut svg, end, axis, "", &to);
        for (row, (class, name)) in self.legend.iter().enumerate() {
            let row = axis + 1 + row;
            let y = bar(row);
            let square =
                format!("x=\"{left}\" y=\"{y}\" width=\"{BAR}\" height=\"{BAR}\" rx=\"3\"");
            let _ = writeln!(svg, "<rect class=\"{class}\" {square}/>");
            write_text(&mut svg, left + BAR + CHARACTER, row, "", &cut(name, parts));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

// === impl SvgBar ===

impl SvgBar<'_> {
    /// Writes it, from `x` on.
    fn write(&self, svg: &mut String, x: usize, width: usize) {
        let (change, class, row) = (self.segment.change, &self.class, self.row + 1);
        let from = in_seconds(self.segment.from);
        let note = format!("{from} {}: {}", change.reason, change.note);
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR}\" rx=\"3\"><title>{}</title></rect>",
            bar(row),
            escape(&cut(&note, LONGEST_NOTE)),
        );
        let fits = |text: &&String| (text.chars().count() + 1) * CHARACTER <= width;
        if let Some(text) = self.words.iter().find(fits) {
            write_text(svg, x + CHARACTER / 2, row, "term", text);
        }
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
