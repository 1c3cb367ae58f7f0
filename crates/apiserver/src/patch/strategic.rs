//! Strategic merge patch: a merge that knows which lists are sets and which are keyed.

use serde_json::{Map, Value};

use crate::schema::{Struct, Type};

/// Merges a patch into an object of that schema.
pub(super) fn apply(schema: &Struct, target: &mut Value, patch: &Value) {
    if let (Value::Object(target), Value::Object(patch)) = (target, patch) {
        merge(target, patch, &|name| schema.type_of(name));
    }
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Merges maps. `kind` tells the type of a field.
fn merge(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    kind: &dyn Fn(&str) -> Option<Type>,
) {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("delete") => return target.clear(),
        Some("replace") => {
            *target = patch.clone();
            target.remove(DIRECTIVE);
            return;
        }
        _ => {}
    }
    if let Some(retained) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        target.retain(|name, _| retained.iter().any(|one| one == name.as_str()));
    }
    for (name, removed) in patch {
        if let (Some(list), Some(removed)) = (name.strip_prefix(DELETE_FROM), removed.as_array())
            && let Some(Value::Array(items)) = target.get_mut(list)
        {
            items.retain(|item| !removed.contains(item));
        }
    }
    for (name, value) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        let order = patch
            .get(&format!("{ORDER}{name}"))
            .and_then(Value::as_array);
        match (kind(name), value) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(Type::Struct(inner)), Value::Object(patch)) => {
                merge(map_of(target, name), patch, &|name| inner.type_of(name));
            }
            (Some(Type::Any), Value::Object(patch)) => {
                merge(map_of(target, name), patch, &|_| Some(Type::Any));
            }
            (Some(Type::Texts), Value::Object(patch)) => {
                merge(map_of(target, name), patch, &|_| None);
            }
            (Some(Type::TextList), Value::Array(patch)) => {
                let present = list_of(target, name);
                *present = merge_list(present, patch, order, "", &|present, _| present.clone());
            }
            (Some(Type::Structs(inner, key)), Value::Array(patch)) => {
                let present = list_of(target, name);
                let kind = |name: &str| inner.type_of(name);
                let join = |present: &Value, patch: &Value| {
                    let mut joined = present.clone();
                    if let (Value::Object(joined), Value::Object(patch)) = (&mut joined, patch) {
                        merge(joined, patch, &kind);
                    }
                    joined
                };
                *present = merge_list(present, patch, order, key, &join);
            }
            _ => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
    let is_any = |name: &String| matches!(kind(name), Some(Type::Any));
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    target.retain(|name, value| is_any(name) || !is_empty(value));
}

/// Merges lists whose items are told apart by a field, or by themselves where `key` is empty. What the patch names
/// comes in its order, before or after the rest as it was.
fn merge_list(
    present: &[Value],
    patch: &[Value],
    order: Option<&Vec<Value>>,
    key: &str,
    join: &dyn Fn(&Value, &Value) -> Value,
) -> Vec<Value> {
    let identity = |item: &Value| {
        if key.is_empty() {
            item.clone()
        } else {
            item.get(key).cloned().unwrap_or_default()
        }
    };
    let position =
        |items: &[Value], id: &Value| items.iter().position(|item| identity(item) == *id);
    let directive = |item: &Value| {
        item.get(DIRECTIVE)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let given = |item: &&Value| directive(item).is_none();
    if patch
        .iter()
        .any(|item| directive(item).as_deref() == Some("replace"))
    {
        return patch.iter().filter(given).cloned().collect();
    }
    let deleted: Vec<_> = patch
        .iter()
        .filter(|item| directive(item).as_deref() == Some("delete"))
        .map(identity)
        .collect();
    let kept: Vec<_> = present
        .iter()
        .filter(|item| !deleted.contains(&identity(item)))
        .cloned()
        .collect();
    let mut named: Vec<Value> = patch
        .iter()
        .filter(given)
        .map(|item| match position(&kept, &identity(item)) {
            Some(index) => join(&kept[index], item),
            None => item.clone(),
        })
        .collect();
    let mut rest: Vec<_> = kept
        .iter()
        .filter(|item| position(&named, &identity(item)).is_none())
        .cloned()
        .collect();
    if let Some(order) = order {
        let rank = |item: &Value| order.iter().position(|one| identity(one) == identity(item));
        // Items that the order names go with those that the patch names.
        let (ordered, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|item| rank(item).is_some());
        named.extend(ordered);
        named.sort_by_key(|item| rank(item));
        rest = others;
    }
    let mut merged = Vec::with_capacity(named.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for item in named {
        if let Some(index) = position(present, &identity(&item)) {
            while let Some(other) =
                rest.next_if(|other| position(present, &identity(other)) < Some(index))
            {
                merged.push(other);
            }
        }
        merged.push(item);
    }
    merged.extend(rest);
    merged
}

fn map_of<'a>(target: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let field = target
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    field.as_object_mut().expect("it was made a map just now")
}

fn list_of<'a>(target: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let field = target
        .entry(name)
        .or_insert_with(|| Value::Array(Vec::new()));
    if !field.is_array() {
        *field = Value::Array(Vec::new());
    }
    field.as_array_mut().expect("it was made a list just now")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::LEASE;

    /// Cases that no recorded answer shows.
    #[test]
    fn a_map_is_emptied_and_a_list_is_replaced() {
        let owners = json!([{"uid": "u", "name": "p"}, {"uid": "v", "name": "q"}]);
        let mut lease = json!({"metadata": {"labels": {"x": "1"}, "ownerReferences": owners}});
        let owners = json!([{"$patch": "replace"}, {"uid": "w"}]);
        let patch =
            json!({"metadata": {"labels": {"$patch": "delete"}, "ownerReferences": owners}});
        apply(&LEASE, &mut lease, &patch);
        let metadata = json!({"labels": {}, "ownerReferences": [{"uid": "w"}]});
        assert_eq!(lease, json!({ "metadata": metadata }));
    }
}
