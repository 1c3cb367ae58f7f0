//! JSON merge patch, RFC 7386.

use serde_json::{Map, Value};

/// Merges maps; `null` removes, everything else replaces.
pub(super) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            apply(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An example of RFC 7396 that no recorded answer shows.
    #[test]
    fn what_is_null_in_a_new_object_is_left_out() {
        let mut target = json!({});
        apply(&mut target, &json!({"a": {"bb": {"ccc": null}}}));
        assert_eq!(target, json!({"a": {"bb": {}}}));
    }
}
