//! JSON values as YAML for people to read.

use anyhow::{Result, bail};
use serde_json::Value;

/// One document, keys in the order of the value.
///
/// # Errors
/// When it holds something that this writer has no words for: an empty list or map below the top.
pub(crate) fn document(value: &Value) -> Result<String> {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(value, 0, &mut text)?,
        _ => bail!("a document is a map that is not empty"),
    }
    Ok(text)
}

/// The lines of a map or list, each after so many blanks; the first one goes where the cursor is.
fn block(value: &Value, indent: usize, text: &mut String) -> Result<()> {
    let mut first = true;
    let mut begin = |text: &mut String| {
        if !std::mem::take(&mut first) {
            text.push_str(&" ".repeat(indent));
        }
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                begin(text);
                text.push_str(&scalar(key));
                text.push(':');
                match value {
                    Value::Object(_) | Value::Array(_) => {
                        text.push('\n');
                        text.push_str(&" ".repeat(indent + 2));
                        block(value, indent + 2, text)?;
                    }
                    _ => leaf(value, indent, text),
                }
            }
        }
        Value::Array(list) => {
            for value in list {
                begin(text);
                text.push('-');
                match value {
                    Value::Object(_) | Value::Array(_) => {
                        text.push(' ');
                        block(value, indent + 2, text)?;
                    }
                    _ => leaf(value, indent, text),
                }
            }
        }
        _ => {}
    }
    if first {
        bail!("an empty list or map has no lines");
    }
    Ok(())
}

fn leaf(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::String(string) if is_literal(string) => {
            text.push_str(" |-");
            for line in string.lines() {
                text.push('\n');
                text.push_str(&" ".repeat(indent + 2));
                text.push_str(line);
            }
        }
        Value::String(string) => {
            text.push(' ');
            text.push_str(&scalar(string));
        }
        other => {
            text.push(' ');
            text.push_str(&other.to_string());
        }
    }
    text.push('\n');
}

/// Whether a text can stand as it is on lines of its own: quotes would only be in the way.
fn is_literal(text: &str) -> bool {
    let quoted = text.contains(['\'', '\n']);
    let lines = text
        .split('\n')
        .all(|line| !line.trim().is_empty() && line.trim_end() == line);
    quoted && lines && !text.starts_with(' ') && !text.contains('\t')
}

/// A text, in quotes unless it cannot be taken for anything else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./()".contains(c);
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
        && !text.ends_with(' ')
        && text.chars().all(plain);
    // What other readers take for booleans, nothing, or no number.
    let special = [
        "true", "false", "yes", "no", "on", "off", "null", "y", "n", ".nan", ".inf",
    ];
    if word && !special.contains(&text.to_ascii_lowercase().as_str()) {
        text.to_owned()
    } else if !text.contains(['\'', '\n', '\t', '\r']) {
        format!("'{text}'")
    } else {
        // A JSON string is a YAML string.
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_lists_and_texts_are_written_as_people_write_them() {
        let value = json!({
            "a": {"b": [1, "two", {"c": true, "d": "x: y"}, ["e"]]},
            "f": ["it's", "one\n  two", "\n'"],
            "g": "true",
            "h": "1.0",
            "i": ".spec.x",
        });
        let expected = "\
a:
  b:
    - 1
    - two
    - c: true
      d: 'x: y'
    - - e
f:
  - |-
    it's
  - |-
    one
      two
  - \"\\n'\"
g: 'true'
h: '1.0'
i: .spec.x
";
        assert_eq!(document(&value).unwrap(), expected);
        for bad in [json!([1]), json!({}), json!({"a": {}}), json!({"a": [[]]})] {
            assert!(document(&bad).is_err(), "{bad}");
        }
    }
}
