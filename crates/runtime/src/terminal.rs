//! Text for a terminal.
//!
//! Names and messages come from all who may write an object. On a terminal, escape sequences in them would move
//! the cursor, set the title or hide what stands beside them, and a line break would pass for a line of ours. All that
//! people read therefore goes through [`printable`], and JSON through [`printable_json`], which keeps exact values.

use std::borrow::Cow;

/// The text as one line of visible characters: controls (C0, DEL, C1), line and paragraph separators, format characters
/// (bidirectional overrides, characters of no width), combining marks and unassigned characters become escapes such as
/// `\n` and `\u{1b}`. Escaping what is escaped changes nothing.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if is_printable(character) {
            line.push(character);
        } else {
            line.extend(character.escape_debug());
        }
    }
    Cow::Owned(line)
}

/// A serialized JSON document in which the same characters are escaped inside of strings, where alone they can stand:
/// it has the same value.
pub fn printable_json(document: &str) -> Cow<'_, str> {
    // The serializer has escaped C0 controls; those that are left are the white space between values.
    let stays = |character: char| character < ' ' || is_printable(character);
    if document.chars().all(stays) {
        return Cow::Borrowed(document);
    }
    let mut text = String::with_capacity(document.len() * 2);
    for character in document.chars() {
        if stays(character) {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Cow::Owned(text)
}

fn is_printable(character: char) -> bool {
    // Debug output also escapes the characters that delimit Rust's literals.
    matches!(character, '"' | '\'' | '\\') || character.escape_debug().eq([character])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that do something else than take up one place.
    const HARMFUL: [char; 22] = [
        '\0',
        '\t',
        '\n',
        '\r',
        '\u{7}',
        '\u{8}',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{9b}',
        '\u{9d}',
        '\u{ad}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{202e}',
        '\u{2028}',
        '\u{2029}',
        '\u{2066}',
        '\u{feff}',
        '\u{fe0f}',
        '\u{e0041}',
    ];

    #[test]
    fn harmful_characters_are_escaped_and_nothing_else_is() {
        let plain = r#"green/"a'b\c" is late: 5 s, über 日本 …"#;
        assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
        assert_eq!(
            printable("a\u{1b}[2Jb\nc\u{202e}d\u{9b}e\u{2028}"),
            r"a\u{1b}[2Jb\nc\u{202e}d\u{9b}e\u{2028}"
        );
        for character in HARMFUL {
            let text = character.to_string();
            let escaped = printable(&text);
            assert!(escaped.is_ascii() && escaped.starts_with('\\'), "{escaped}");
            assert_eq!(printable(&escaped), escaped, "once is enough");
        }
    }

    #[test]
    fn a_json_document_keeps_its_value() {
        let text: String = HARMFUL.iter().chain(&['ü', '"']).collect();
        let value = serde_json::json!({ (text.clone()): [text, 1.5, null] });
        for document in [
            serde_json::to_string(&value).unwrap(),
            serde_json::to_string_pretty(&value).unwrap(),
        ] {
            let escaped = printable_json(&document);
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
                value
            );
            let harmful = |c: char| c >= ' ' && HARMFUL.contains(&c);
            assert!(!escaped.contains(harmful), "{escaped:?}");
        }
    }
}
