//! Objects as rows of a table, for `kubectl get`.

use serde_json::{Map, Value, json};

use crate::objects::resource::{Column, Resource};
use crate::objects::view::Include;
use crate::objects::view::Meta;
use windlass_builtin_kinds::Special;
use windlass_objects::jsonpath::text_of;

/// A table of objects.
pub(crate) fn table(resource: &Resource, version: Meta, rows: &[Value], metadata: &Value) -> Value {
    let columns: Vec<Value> = resource.columns.iter().map(definition).collect();
    json!({
        "kind": "Table", "apiVersion": version.api_version(),
        "metadata": metadata, "columnDefinitions": columns, "rows": rows,
    })
}

/// kube-apiserver's descriptions of the columns that every table has.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn definition(column: &Column) -> Value {
    let description = match (column.description.as_str(), column.name.as_str()) {
        ("", "Name") => NAME,
        ("", "Age") => AGE,
        (text, _) => text,
    };
    json!({
        "name": column.name,
        "type": column.kind, "format": column.format, "description": description, "priority": column.priority,
    })
}

/// A row.
pub(crate) fn row(resource: &Resource, object: &Value, now: jiff::Timestamp, version: Meta, include: Include) -> Value {
    let cells: Vec<Value> = if resource.is_custom() {
        resource.columns.iter().map(|c| cell(c, object, now)).collect()
    } else {
        resource.strategy.row(object, now)
    };
    let mut out = Map::new();
    out.insert("cells".into(), cells.into());
    if let Some(done) = done(resource, object) {
        out.insert("conditions".into(), done);
    }
    match include {
        Include::Metadata => {
            out.insert("object".into(), crate::objects::view::metadata_only(object, version));
        }
        Include::Object => {
            out.insert("object".into(), object.clone());
        }
        Include::None => {
            out.insert("object".into(), Value::Null);
        }
    }
    Value::Object(out)
}

/// The conditions of the row of a finished pod.
fn done(resource: &Resource, object: &Value) -> Option<Value> {
    let words = match object.pointer("/status/phase")?.as_str()? {
        _ if resource.special != Special::Pod => return None,
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = object.pointer("/status/phase")?;
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": words}]))
}

/// The cell of a custom resource.
fn cell(column: &Column, object: &Value, now: jiff::Timestamp) -> Value {
    let found = column
        .path
        .as_ref()
        .and_then(|path| path.find(object).into_iter().next());
    let Some(first) = found else {
        return Value::Null;
    };
    match column.kind.as_str() {
        "integer" => first.as_i64().map_or(Value::Null, Into::into),
        "number" => first.as_f64().map_or(Value::Null, Into::into),
        "boolean" => first.as_bool().map_or(Value::Null, Into::into),
        "date" => match first.as_str() {
            Some(text) if text.parse::<jiff::Timestamp>().is_err() => "<invalid>".into(),
            Some(text) => date(Some(text), now),
            None => Value::Null,
        },
        // Kubernetes assumes that a path finds one value.
        _ => text_of(first).into(),
    }
}

fn date(time: Option<&str>, now: jiff::Timestamp) -> Value {
    let Some(time) = time.and_then(|t| t.parse::<jiff::Timestamp>().ok()) else {
        return "<unknown>".into();
    };
    windlass_objects::age::human(now.as_second() - time.as_second()).into()
}
