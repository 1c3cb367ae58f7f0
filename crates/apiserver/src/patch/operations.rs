//! JSON patch, RFC 6902, with the leniency of the API server: replacing a field that is not there adds it.

use serde_json::{Value, map};

/// One operation.
#[derive(Debug)]
pub(super) enum PatchOperation {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
    Move { from: String, path: String },
    Copy { from: String, path: String },
    Test { path: String, value: Value },
}

// === impl PatchOperation ===

impl PatchOperation {
    /// Reads an operation; `None` where it is none.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let path = text("path")?;
        let operand = || value.get("value").cloned();
        Some(match value.get("op")?.as_str()? {
            "add" => Self::Add {
                path,
                value: operand()?,
            },
            "remove" => Self::Remove { path },
            "replace" => Self::Replace {
                path,
                value: operand()?,
            },
            "move" => Self::Move {
                from: text("from")?,
                path,
            },
            "copy" => Self::Copy {
                from: text("from")?,
                path,
            },
            "test" => Self::Test {
                path,
                value: operand().unwrap_or_default(),
            },
            _ => return None,
        })
    }

    /// Changes a document; `None` where that cannot be done.
    pub(super) fn apply(self, document: &mut Value) -> Option<()> {
        match self {
            Self::Add { path, value } => put(document, &path, value, true),
            Self::Remove { path } => take(document, &path).map(drop),
            Self::Replace { path, value } => put(document, &path, value, false),
            Self::Move { from, path } => {
                let value = take(document, &from)?;
                put(document, &path, value, true)
            }
            Self::Copy { from, path } => {
                let value = document.pointer(&from)?.clone();
                put(document, &path, value, true)
            }
            Self::Test { path, value } => {
                let found = document.pointer(&path).unwrap_or(&Value::Null);
                (*found == value).then_some(())
            }
        }
    }
}

/// The parent of a path and the last part of it.
fn parent<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((
        document.pointer_mut(parent)?,
        last.replace("~1", "/").replace("~0", "~"),
    ))
}

fn put(document: &mut Value, path: &str, value: Value, inserts: bool) -> Option<()> {
    if path.is_empty() {
        *document = value;
        return Some(());
    }
    match parent(document, path)? {
        (Value::Object(fields), name) => {
            fields.insert(name, value);
        }
        (Value::Array(items), index) if inserts => {
            let index = if index == "-" {
                items.len()
            } else {
                index.parse().ok()?
            };
            if index > items.len() {
                return None;
            }
            items.insert(index, value);
        }
        (Value::Array(items), index) => *items.get_mut(index.parse::<usize>().ok()?)? = value,
        _ => return None,
    }
    Some(())
}

fn take(document: &mut Value, path: &str) -> Option<Value> {
    match parent(document, path)? {
        (Value::Object(fields), name) => match fields.entry(name) {
            map::Entry::Occupied(entry) => Some(entry.remove()),
            map::Entry::Vacant(_) => None,
        },
        (Value::Array(items), index) => {
            let index = index
                .parse::<usize>()
                .ok()
                .filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Cases that no recorded answer shows.
    #[test]
    fn an_item_is_added_before_others_and_not_beyond_the_end() {
        let add = |path: &str| {
            let mut list = json!({"l": [1, 2]});
            let operation = json!({"op": "add", "path": path, "value": 3});
            PatchOperation::of(&operation)?.apply(&mut list)?;
            Some(list)
        };
        assert_eq!(add("/l/0"), Some(json!({"l": [3, 1, 2]})));
        assert_eq!(add("/l/9"), None);
    }
}
