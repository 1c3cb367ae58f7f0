//! OpenAPI v3, as much of it as kubectl asks for: which fields there are, which lists merge how, and that the server
//! validates fields itself.

use serde_json::{Map, Value, json};

use crate::gotime::TimeLayout;
use crate::kind::Kind;
use crate::schema::{Field, Struct, Type};

/// Where each group version has its document.
pub(crate) fn index(kinds: &[&'static Kind]) -> Value {
    let mut paths = Map::new();
    for kind in kinds {
        let path = match kind.group {
            "" => format!("api/{}", kind.version),
            group => format!("apis/{group}/{}", kind.version),
        };
        // The documents of a server never change, so neither does the hash.
        let url = format!("/openapi/v3/{path}?hash=0");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// The document of a group version.
pub(crate) fn document(
    kinds: &[&'static Kind],
    group: &str,
    version: &str,
    minor: u32,
) -> Option<Value> {
    let mut here = kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
        .peekable();
    here.peek()?;
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for kind in here {
        let name = if kind.schema.open {
            add_open_schema(kind, &mut schemas)
        } else {
            add_schema(kind.schema, kind.group, &mut schemas)
        };
        let gvk = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        schemas[&name]["x-kubernetes-group-version-kind"] = json!([gvk]);
        add_paths(kind, &name, &gvk, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("1.{minor}")},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// Adds a struct and what it holds; returns its name in the document.
fn add_schema(schema: &Struct, group: &str, schemas: &mut Map<String, Value>) -> String {
    let name = format!(
        "{}.{}.{}",
        if group.is_empty() { "core" } else { group },
        schema.package,
        schema.name
    );
    if schemas.contains_key(&name) {
        return name;
    }
    schemas.insert(name.clone(), Value::Null);
    let mut properties = Map::new();
    for field in schema.fields {
        properties.insert(field.name.to_owned(), property(field, group, schemas));
    }
    let about = format!("{} of the API.", schema.name);
    schemas.insert(
        name.clone(),
        json!({"type": "object", "description": about, "properties": properties}),
    );
    name
}

/// Adds a kind that this server was not made for; returns its name in the document.
fn add_open_schema(kind: &Kind, schemas: &mut Map<String, Value>) -> String {
    let mut properties = Map::new();
    for field in kind.schema.fields {
        properties.insert(field.name.to_owned(), property(field, kind.group, schemas));
    }
    let group = if kind.group.is_empty() {
        "core"
    } else {
        kind.group
    };
    let name = format!("{group}.{}.{}", kind.version, kind.kind);
    let schema = json!({
        "type": "object", "description": format!("{} of the API.", kind.kind), "properties": properties,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    schemas.insert(name.clone(), schema);
    name
}

fn property(field: &Field, group: &str, schemas: &mut Map<String, Value>) -> Value {
    let mut reference = |inner: &Struct| {
        let name = add_schema(inner, group, schemas);
        json!({"$ref": format!("#/components/schemas/{name}")})
    };
    let mut property = match field.kind {
        Type::Text | Type::OptionalText => json!({"type": "string"}),
        Type::Int32 | Type::OptionalInt32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 | Type::OptionalInt64 => json!({"type": "integer", "format": "int64"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Time(TimeLayout::Micro | TimeLayout::Seconds) => {
            json!({"type": "string", "format": "date-time"})
        }
        Type::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Type::TextList => json!({
            "type": "array", "items": {"type": "string"},
            "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
        }),
        Type::Struct(inner) => json!({"allOf": [reference(inner)]}),
        Type::Structs(inner, key) => json!({
            "type": "array", "items": {"allOf": [reference(inner)]},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key,
        }),
        Type::Any | Type::Dropped => json!({"x-kubernetes-preserve-unknown-fields": true}),
    };
    property["description"] = field.about.into();
    property
}

fn add_paths(kind: &Kind, schema: &str, gvk: &Value, paths: &mut Map<String, Value>) {
    let root = match kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let collection = match kind.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", kind.plural),
        false => format!("{root}/{}", kind.plural),
    };
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let writes = json!([
        query("dryRun"),
        query("fieldManager"),
        query("fieldValidation")
    ]);
    let content =
        json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
    let operation = |action: &str| {
        let mut operation = json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
            "responses": {"200": {"description": "OK", "content": content}},
        });
        if matches!(action, "post" | "put" | "patch") {
            operation["parameters"] = writes.clone();
            operation["requestBody"] = json!({"content": content, "required": true});
        }
        operation
    };
    paths.insert(format!("{collection}/{{name}}"), json!({
        "get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete"),
    }));
    paths.insert(collection, json!({
        "get": operation("list"), "post": operation("post"), "delete": operation("deletecollection"),
    }));
}
