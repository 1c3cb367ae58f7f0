//! A failing script made small.

use serde_json::Value;

/// The smallest script that can be made from this one by leaving things out, and still fails.
pub fn shrink(script: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(script);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .map_while(Result::ok)
        .collect();
    let whole = Value::Array(documents);
    // What a tree of values cannot say, such as a field that stands twice, is kept as it is.
    if !fails(&written(&whole)) {
        return script.to_vec();
    }
    let mut small = whole;
    let mut place = 0;
    while let Some(smaller) = simpler(&small, place) {
        match smaller.into_iter().find(|one| fails(&written(one))) {
            Some(found) => small = found,
            None => place += 1,
        }
    }
    written(&small)
}

/// The simpler forms of the `place`-th value in it, the simplest first. `None` where there are not so many values.
fn simpler(whole: &Value, place: usize) -> Option<Vec<Value>> {
    let mut left = place;
    let value = at(whole, &mut left)?;
    let forms: Vec<Value> = match value {
        Value::Array(list) => (0..list.len())
            .map(|index| {
                let mut shorter = list.clone();
                shorter.remove(index);
                Value::Array(shorter)
            })
            .collect(),
        Value::Object(map) => map
            .keys()
            .map(|name| {
                let mut fewer = map.clone();
                fewer.remove(name);
                Value::Object(fewer)
            })
            .collect(),
        Value::String(text) if text.len() > 24 => {
            let half = text.chars().take(text.chars().count() / 2);
            vec![half.collect::<String>().into()]
        }
        _ => Vec::new(),
    };
    let replaced = |form: Value| {
        let (mut copy, mut left) = (whole.clone(), place);
        if let Some(value) = at_mut(&mut copy, &mut left) {
            *value = form;
        }
        copy
    };
    Some(forms.into_iter().map(replaced).collect())
}

fn written(documents: &Value) -> Vec<u8> {
    let documents = documents.as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<_> = documents.iter().map(|one| format!("{one}\n")).collect();
    lines.concat().into_bytes()
}

/// The value at a place, counted from the top and from the left.
pub(crate) fn at<'a>(value: &'a Value, left: &mut usize) -> Option<&'a Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter().find_map(|one| at(one, left)),
        Value::Object(map) => map.values().find_map(|one| at(one, left)),
        _ => None,
    }
}

/// The same, to be changed.
pub(crate) fn at_mut<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|one| at_mut(one, left)),
        Value::Object(map) => map.values_mut().find_map(|one| at_mut(one, left)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let script =
            br#"{"pass": "5s"} {"kind": "Lease", "spec": {"a": [1, 2, "the cause"], "b": 3}} 7"#;
        let fails = |script: &[u8]| String::from_utf8_lossy(script).contains("cause");
        let small = shrink(script, fails);
        assert_eq!(
            String::from_utf8_lossy(&small),
            "{\"spec\":{\"a\":[\"the cause\"]}}\n"
        );
    }
}
