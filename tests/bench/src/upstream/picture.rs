//! The picture of the times: a row for each subject of each figure, and a mark for each run.

use std::fmt::Write as _;

use super::results::RunResults;
use super::table::{COLD_START, CRASH, ComparisonRow, GAP, SUBJECTS};

const ROWS: [ComparisonRow; 3] = [COLD_START, CRASH, GAP];

/// Sizes in pixels.
const LINE: usize = 20;
const LABELS: usize = 290;
const WIDTH: usize = 870;

const STYLE: &str = "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#59636e}.axis{stroke:#818b981f}\
.s0{fill:#1f6feb}.s1{fill:#0e7490}.s2{fill:#cf222e}.s3{fill:#9a6700}@media(prefers-color-scheme:dark){text{fill:#9198a1}}";

/// Draws all runs on one scale of seconds.
pub(super) fn draw(results: &RunResults) -> String {
    let values = |row: &ComparisonRow, subject| results.values(row.case, subject, row.figure);
    let all = ROWS
        .iter()
        .flat_map(|row| SUBJECTS.map(|(subject, _)| values(row, subject)));
    let longest = all.flatten().fold(1.0, f64::max);
    let scale = (WIDTH - LABELS - LINE) as f64 / longest;
    let place = |seconds: f64| LABELS as f64 + seconds * scale;
    let mut text = String::new();
    let mut y = LINE;
    // Writing to a String does not fail.
    for row in &ROWS {
        let _ = writeln!(text, "<text x=\"10\" y=\"{y}\">{}</text>", row.name);
        y += LINE;
        for (class, (subject, name)) in SUBJECTS.into_iter().enumerate() {
            let values = values(row, subject);
            if values.is_empty() {
                continue;
            }
            let _ = writeln!(text, "<text x=\"24\" y=\"{y}\">{name}</text>");
            for value in values {
                let (x, y) = (place(value), y - 5);
                let mark = "r=\"4\" fill-opacity=\"0.6\"";
                let _ = writeln!(
                    text,
                    "<circle class=\"s{class}\" cx=\"{x:.1}\" cy=\"{y}\" {mark}/>"
                );
            }
            y += LINE;
        }
        y += LINE / 2;
    }
    for second in (0..=longest as u32).step_by(5) {
        let x = place(f64::from(second));
        let _ = writeln!(text, "<path class=\"axis\" d=\"M{x:.1} 0V{y}\"/>");
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{}\">{second} s</text>",
            y + LINE
        );
    }
    let height = y + 2 * LINE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\">\n<title>Times of elections, a mark for each run</title>\n<style>{STYLE}</style>\n{text}</svg>\n"
    )
}
