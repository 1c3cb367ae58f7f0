//! Finds the JSON documents in a text, between anything else.

use serde_json::Value;
use serde_json::error::Category;

use super::position::Position;

/// A part of a text.
#[derive(Debug)]
pub(super) enum TextPart {
    /// A JSON object.
    Document {
        /// Where it begins.
        position: Position,
        /// Its content.
        value: Value,
    },
    /// Anything else.
    Unreadable {
        /// Where it begins.
        position: Position,
        /// Its fault.
        why: String,
    },
}

/// The most unreadable lines in a row that are reported one by one.
const TOLD_LINE_BY_LINE: usize = 5;

/// All documents of a text. After a document that is none, it goes on at the next line that begins one.
pub(super) fn scan(text: &str) -> Vec<TextPart> {
    let mut found = Vec::new();
    let (mut rest, mut line, mut documents, mut unreadable) = (text, 1, 0, 0);
    loop {
        let start = rest.trim_start();
        line += lines(&rest[..rest.len() - start.len()]);
        rest = start;
        if rest.is_empty() {
            return found;
        }
        let end = if rest.starts_with('{') {
            documents += 1;
            let position = Position {
                document: Some(documents),
                line,
            };
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match stream.next().transpose() {
                Ok(value) => {
                    let value = value.unwrap_or_default();
                    found.push(TextPart::Document { position, value });
                    stream.byte_offset()
                }
                Err(error) => {
                    let why = broken(&error, line);
                    found.push(TextPart::Unreadable { position, why });
                    next_start(rest)
                }
            }
        } else {
            unreadable += 1;
            let document = None;
            let position = Position { document, line };
            if unreadable <= TOLD_LINE_BY_LINE {
                let why = "neither a JSON object nor a part of one".to_owned();
                found.push(TextPart::Unreadable { position, why });
            } else if unreadable == TOLD_LINE_BY_LINE + 1 {
                let why = "more of this, which is not repeated".to_owned();
                found.push(TextPart::Unreadable { position, why });
            }
            rest.find('\n').unwrap_or(rest.len())
        };
        line += lines(&rest[..end]);
        rest = &rest[end..];
    }
}

/// Where the line ends before the next one that can begin a document: its first character is a brace.
fn next_start(rest: &str) -> usize {
    rest.find("\n{").unwrap_or(rest.len())
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The fault of a document that begins in this line.
fn broken(error: &serde_json::Error, line: usize) -> String {
    if error.classify() == Category::Eof {
        return "ends in the midst of the document".to_owned();
    }
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("no JSON: {what} in line {}", line + error.line() - 1)
}
