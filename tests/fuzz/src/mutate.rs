//! One script from another: a document, a field or a character is changed, so that most of it still means something.

use serde_json::{Map, Value, json};

use crate::dictionary::{NAMES, TEXTS, values};
use crate::shrink::{at, at_mut};

/// The largest script that is made, in bytes.
const LARGEST: usize = 4 << 20;

/// Numbers that follow from a seed alone.
struct Choices(u64);

/// Another script, like this one but for something. Equal seeds make equal scripts.
///
/// ```
/// let script = br#"{"kind": "Lease", "metadata": {"name": "l"}}"#;
/// assert_eq!(elector_fuzz::mutate(script, 7), elector_fuzz::mutate(script, 7));
/// assert_ne!(elector_fuzz::mutate(script, 7), elector_fuzz::mutate(script, 8));
/// ```
pub fn mutate(script: &[u8], seed: u64) -> Vec<u8> {
    let mut choices = Choices(seed);
    let text = String::from_utf8_lossy(script);
    let mut documents: Vec<Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .map_while(Result::ok)
        .collect();
    for _ in 0..=choices.below(3) {
        match choices.below(4) {
            0 => rearrange(&mut documents, &mut choices),
            _ => alter(&mut documents, &mut choices),
        }
    }
    let lines: Vec<_> = documents.iter().map(Value::to_string).collect();
    let mut text = lines.join("\n");
    match choices.below(24) {
        0 => text = doubled(&text, &mut choices),
        1 => text = nested(&text, &mut choices),
        _ => {}
    }
    let mut end = text.len().min(LARGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.into_bytes()
}

/// Mutates the script in the first `size` bytes of a buffer in place, up to `most` bytes, and returns its new size.
/// Most scripts stay JSON; one in eight, and one that would not fit, is changed `as_bytes`.
pub fn mutate_in_place(
    script: &mut [u8],
    size: usize,
    most: usize,
    seed: u32,
    as_bytes: impl FnOnce(&mut [u8], usize, usize) -> usize,
) -> usize {
    if seed.is_multiple_of(8) {
        return as_bytes(script, size, most);
    }
    let next = mutate(&script[..size], u64::from(seed));
    if next.len() > most {
        return as_bytes(script, size, most);
    }
    script[..next.len()].copy_from_slice(&next);
    next.len()
}

/// Changes which documents there are, in which order and which dress.
fn rearrange(documents: &mut Vec<Value>, choices: &mut Choices) {
    let Some(index) = choices.index(documents.len()) else {
        documents.push(order(choices));
        return;
    };
    let other = choices.below(documents.len());
    match choices.below(8) {
        0 => drop(documents.remove(index)),
        1 => documents.swap(index, other),
        2 => documents.insert(other, documents[index].clone()),
        3 => {
            let kind = choices.of(&["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "x"]);
            documents[index] = json!({"type": kind, "object": documents[index].take()});
        }
        4 => {
            let kind = documents[index]["kind"]
                .as_str()
                .unwrap_or("Lease")
                .to_owned()
                + "List";
            let like = documents[index]["kind"].clone();
            let items: Vec<_> = documents
                .iter()
                .filter(|one| one["kind"] == like)
                .cloned()
                .collect();
            let list = json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": items});
            documents.insert(other, list);
        }
        // A later revision of the same object, which the driver numbers.
        5 => {
            let mut next = documents[index].clone();
            if let Some(metadata) = next.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("resourceVersion");
            }
            documents.push(next);
        }
        _ => documents.insert(other, order(choices)),
    }
}

/// Something that happens to an elector or to a candidate.
fn order(choices: &mut Choices) -> Value {
    match choices.below(14) {
        0..3 => {
            json!({"pass": choices.of(&["1ms", "1s", "2s", "5s", "10s", "15s", "31s", "15m", "40m", "876000h"])})
        }
        3..5 => json!({"apply": true}),
        5 => json!({"answer": true}),
        6 => json!({"grant": true}),
        7..9 => json!({"done": true}),
        9 => json!({"fails": choices.of(&["conflict", "gone", "refused", "unknown"])}),
        10 => json!({"prefer": choices.of(&["b", "me", ""])}),
        11 => json!({choices.of(&["stopped", "shutDown", "withdrawn", "listen", "drops"]): true}),
        12 => {
            json!({"wall": choices.of(&["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-01-01T00:00:00Z"])})
        }
        _ => {
            json!({choices.of(&["registered", "unregistered"]): choices.of(&["conflict", "gone", "refused", "unknown"])})
        }
    }
}

/// Changes one value somewhere.
fn alter(documents: &mut [Value], choices: &mut Choices) {
    let count: usize = documents.iter().map(size).sum();
    let (Some(place), Some(mut from)) = (choices.index(count), choices.index(count)) else {
        return;
    };
    let copied = documents.iter().find_map(|one| at(one, &mut from)).cloned();
    let mut left = place;
    let found = documents.iter_mut().find_map(|one| at_mut(one, &mut left));
    if let Some(value) = found {
        change(value, copied.unwrap_or_default(), choices);
    }
}

fn change(value: &mut Value, copied: Value, choices: &mut Choices) {
    match (choices.below(8), &mut *value) {
        (0, _) => *value = copied,
        (1, _) => *value = choices.of_owned(values()),
        (2, _) => *value = choices.of(TEXTS).into(),
        (3 | 4, Value::Object(map)) => remove(map, choices),
        (5..7, Value::Object(map)) => {
            let field = if choices.below(2) == 0 {
                copied
            } else {
                choices.of(TEXTS).into()
            };
            drop(map.insert(choices.of(NAMES).to_owned(), field));
        }
        (3.., Value::Array(list)) => list.push(copied),
        (3..6, Value::Number(number)) => {
            let near = number.as_i64().unwrap_or_default();
            let step = i64::try_from(choices.below(5)).unwrap_or_default() - 2;
            *value = near.saturating_add(step).into();
        }
        (3..6, Value::String(text)) => *text = retyped(text, choices),
        (6, Value::String(text)) => {
            // A megabyte takes long to read, so it is rare.
            let times = [70, 300, 300, 300, 70_000, 1 << 20][choices.below(6)] / text.len().max(1);
            *text = text.repeat(times.max(2));
        }
        _ => *value = choices.of_owned(values()),
    }
}

fn remove(map: &mut Map<String, Value>, choices: &mut Choices) {
    let Some(index) = choices.index(map.len()) else {
        return;
    };
    let name = map.keys().nth(index).cloned().unwrap_or_default();
    map.remove(&name);
}

/// A text with one character more, fewer, or other.
fn retyped(text: &str, choices: &mut Choices) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = choices.below(letters.len() + 1);
    let letter = choices.of(&[
        '0', '1', '9', '-', '.', '/', ':', 'Z', 'a', '\u{0}', 'é', '名',
    ]);
    match choices.below(3) {
        0 => letters.insert(at, letter),
        1 if at < letters.len() => letters[at] = letter,
        _ if at < letters.len() => drop(letters.remove(at)),
        _ => {}
    }
    letters.into_iter().collect()
}

/// A field twice in one object.
fn doubled(text: &str, choices: &mut Choices) -> String {
    let places: Vec<_> = text.match_indices(":{").map(|(at, _)| at + 2).collect();
    let Some(index) = choices.index(places.len()) else {
        return text.to_owned();
    };
    let (head, tail) = text.split_at(places[index]);
    let comma = if tail.starts_with('}') { "" } else { "," };
    format!(
        "{head}{:?}:{}{comma}{tail}",
        choices.of(NAMES),
        Value::from(choices.of(TEXTS))
    )
}

/// A value in place of another that lies deeper than any reader looks.
fn nested(text: &str, choices: &mut Choices) -> String {
    let Some((head, tail)) = text.split_once(":\"") else {
        return text.to_owned();
    };
    let depth = [100, 130, 5_000][choices.below(3)];
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    let tail = tail.split_once('"').map_or("", |(_, tail)| tail);
    format!("{head}:{open}{close}{tail}")
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum(),
        _ => 0,
    }
}

// === impl Choices ===

impl Choices {
    /// The next number (SplitMix64).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, zero where that is zero.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    fn index(&mut self, length: usize) -> Option<usize> {
        (length > 0).then(|| self.below(length))
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn of_owned(&mut self, mut list: Vec<Value>) -> Value {
        let index = self.below(list.len());
        list.swap_remove(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size after a mutation in a buffer of 4096 bytes, and the script; 0 where it is changed as bytes.
    fn mutated(script: &[u8], most: usize, seed: u32) -> (usize, Vec<u8>) {
        let mut buffer = vec![0; 4096];
        buffer[..script.len()].copy_from_slice(script);
        let size = mutate_in_place(&mut buffer, script.len(), most, seed, |_, _, _| 0);
        buffer.truncate(size);
        (size, buffer)
    }

    #[test]
    fn most_scripts_stay_json_and_what_does_not_fit_is_changed_as_bytes() {
        let script = br#"{"kind": "Lease", "metadata": {"name": "l"}}"#;
        assert_eq!(mutated(script, 4096, 7).1, mutate(script, 7));
        assert_eq!(mutated(script, 4096, 8).0, 0);
        assert_eq!(mutated(script, 1, 7).0, 0);
    }
}
