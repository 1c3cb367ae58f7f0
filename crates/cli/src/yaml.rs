//! A value as YAML: block style, and every text that is not plain in the quotes of JSON, which YAML reads alike.
//!
//! Texts come from objects that anybody may have written. In these quotes each character that a terminal might obey is
//! an escape, and the value stays the same.

use elector_runtime::printable_json;
use serde_json::Value;

/// The document, with a line break at its end.
pub(crate) fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    printable_json(&text).into_owned()
}

/// Writes a value from the beginning of a line, `depth` levels in.
fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                out.push_str(&format!("{indent}{}:", scalar(&name.as_str().into())));
                field(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut text = String::new();
                block(item, depth + 1, &mut text);
                // The first line of the item stands beside its dash.
                let first = text.strip_prefix(&"  ".repeat(depth + 1));
                out.push_str(&format!("{indent}- {}", first.unwrap_or(&text)));
            }
        }
        other => out.push_str(&format!("{indent}{}\n", scalar(other))),
    }
}

/// Writes what follows the name of a field.
fn field(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(value, depth + 1, out);
        }
        // kubectl writes lists at the level of their name.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, depth, out);
        }
        other => out.push_str(&format!(" {}\n", scalar(other))),
    }
}

/// A text in quotes, unless no reader of YAML could take it for anything else.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// True for a text that needs no quotes: words and names that begin with a letter and are none of YAML's own words.
fn is_plain(text: &str) -> bool {
    const WORDS: &[&str] = &["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ');
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(plain)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_reads_as_kubectl_writes_it() {
        let value = json!([
            {"lease": "web", "term": 3, "next": "", "since": null, "candidates": [
                {"name": "a", "rank": 1}, {"name": "b: c", "rank": null},
            ]},
            {"lease": "yes", "candidates": [], "wake": {"afterSeconds": 1.5}},
        ]);
        let text = "- candidates:\n  - name: a\n    rank: 1\n  - name: \"b: c\"\n    rank: null\n  lease: web\n  \
                    next: \"\"\n  since: null\n  term: 3\n- candidates: []\n  lease: \"yes\"\n  wake:\n    afterSeconds: \
                    1.5\n";
        assert_eq!(to_yaml(&value), text);
        assert_eq!(serde_saphyr::from_str::<Value>(text).unwrap(), value);
        assert_eq!(to_yaml(&json!([])), "[]\n");
    }

    #[test]
    fn every_text_keeps_its_value_and_none_reaches_the_terminal() {
        for text in [
            "",
            " a",
            "a ",
            "NO",
            "null",
            "~",
            "1",
            "1e3",
            "0x1",
            "2026-11-20",
            "- a",
            "a #b",
            "a: b",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "'a",
            "\"a",
            "a\\b",
            "a\nb",
            "a\tb",
            ".inf",
            "<<",
            "---",
            "über",
            "\u{1b}[2J",
            "\u{202e}x\u{2028}\u{85}\u{7f}\u{feff}\u{e0041}",
        ] {
            for value in [
                json!(text),
                json!([text]),
                json!({"a": text}),
                json!({text: [[text]]}),
            ] {
                let document = to_yaml(&value);
                assert_eq!(
                    serde_saphyr::from_str::<Value>(&document).unwrap(),
                    value,
                    "{document:?}"
                );
                let harmful = |c: char| c != '\n' && c != 'ü' && !(' '..='~').contains(&c);
                assert!(!document.contains(harmful), "{document:?}");
            }
        }
    }
}
