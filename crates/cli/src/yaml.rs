//! A value as YAML that is safe to print.
//!
//! Texts come from objects that anybody may have written. One with characters that a terminal might obey stands in double
//! quotes, where each of them is an escape and the value stays the same.

use elector_runtime::{printable, printable_json};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, ser_options, to_string_with_options};

/// A value whose texts stand in double quotes where they have to be escaped.
struct EscapableValue<'a>(&'a Value);

/// The document, with a line break at its end.
pub(crate) fn to_yaml(value: &Value) -> anyhow::Result<String> {
    let options = ser_options! { prefer_block_scalars: false };
    let text = to_string_with_options(&EscapableValue(value), options)?;
    Ok(printable_json(&text).into_owned())
}

// === impl EscapableValue ===

impl Serialize for EscapableValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => serializer.collect_map(
                fields
                    .iter()
                    .map(|(name, value)| (name, EscapableValue(value))),
            ),
            Value::Array(items) => serializer.collect_seq(items.iter().map(EscapableValue)),
            Value::String(text) if printable(text) != text.as_str() => {
                DoubleQuoted(text.as_str()).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
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
        assert_eq!(to_yaml(&value).unwrap(), text);
        assert_eq!(to_yaml(&json!([])).unwrap(), "[]\n");
    }

    #[test]
    fn every_text_keeps_its_value_and_none_reaches_the_terminal() {
        let plain = [
            "", " a", "a ", "NO", "~", "1e3", "- a", "a #b", "*a", "a\nb", "a\tb", "a\\b", "---",
            "über",
        ];
        let harmful = [
            "\u{1b}[2J",
            "\u{202e}x\u{2028}\u{85}\u{7f}\u{feff}\u{e0041}",
        ];
        for text in plain.into_iter().chain(harmful) {
            for value in [json!(text), json!([text]), json!({"a": [[text]]})] {
                let document = to_yaml(&value).unwrap();
                let read = serde_saphyr::from_str::<Value>(&document).unwrap();
                assert_eq!(read, value, "{document:?}");
                let is_harmful = |c: char| c != '\n' && c != 'ü' && !(' '..='~').contains(&c);
                assert!(!document.contains(is_harmful), "{document:?}");
            }
        }
    }
}
