//! The parts that all versions of a definition share: errors name them at the top of the definition.

use serde_json::Value;
use windlass_schema::shown_schema;

use super::versions;
use windlass_objects::metadata::text;

/// Which parts are equal in all versions.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) schema: bool,
    pub(super) subresources: bool,
    pub(super) columns: bool,
    pub(super) selectable: bool,
}

impl Layout {
    pub(super) fn of(crd: &Value) -> Self {
        let versions = versions(crd);
        let same = |key: &str| {
            let first = versions.first().and_then(|v| v.get(key));
            versions.iter().all(|v| v.get(key) == first)
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

/// The versions in the form of messages.
pub(super) fn shown(crd: &Value) -> String {
    let layout = Layout::of(crd);
    let parts: Vec<String> = versions(crd).iter().map(|v| version(v, &layout)).collect();
    format!("[{}]", parts.join(","))
}

fn version(version: &Value, layout: &Layout) -> String {
    let own = |common: bool, key: &str| version.get(key).filter(|v| !common && !v.is_null());
    let flag = |key: &str| version.get(key) == Some(&Value::Bool(true));
    let schema = own(layout.schema, "schema").map_or_else(
        || "null".to_owned(),
        |schema| {
            let inner = schema
                .get("openAPIV3Schema")
                .map_or_else(|| "null".to_owned(), shown_schema);
            format!("{{\"OpenAPIV3Schema\":{inner}}}")
        },
    );
    let subresources = own(layout.subresources, "subresources").map_or_else(|| "null".to_owned(), subresources);
    let columns = list(own(layout.columns, "additionalPrinterColumns"), |column| {
        format!(
            "{{\"Name\":{},\"Type\":{},\"Format\":{},\"Description\":{},\"Priority\":{},\"JSONPath\":{}}}",
            quoted(column, "name"),
            quoted(column, "type"),
            quoted(column, "format"),
            quoted(column, "description"),
            column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            quoted(column, "jsonPath")
        )
    });
    let selectable = list(own(layout.selectable, "selectableFields"), |field| {
        format!("{{\"JSONPath\":{}}}", quoted(field, "jsonPath"))
    });
    let warning = version.get("deprecationWarning").filter(|w| w.is_string());
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{schema},\"Subresources\":{subresources},\"AdditionalPrinterColumns\":{columns},\"SelectableFields\":{selectable}}}",
        quoted(version, "name"),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        warning.unwrap_or(&Value::Null),
    )
}

fn quoted(value: &Value, key: &str) -> String {
    Value::from(text(value, key)).to_string()
}

fn list(values: Option<&Value>, each: impl Fn(&Value) -> String) -> String {
    match values.and_then(Value::as_array) {
        Some(values) => format!("[{}]", values.iter().map(each).collect::<Vec<_>>().join(",")),
        None => "null".to_owned(),
    }
}

fn subresources(value: &Value) -> String {
    let status = value.get("status").filter(|s| !s.is_null()).map_or("null", |_| "{}");
    let scale = value.get("scale").filter(|s| !s.is_null()).map_or_else(
        || "null".to_owned(),
        |scale| {
            format!(
                "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{}}}",
                quoted(scale, "specReplicasPath"),
                quoted(scale, "statusReplicasPath"),
                scale.get("labelSelectorPath").unwrap_or(&Value::Null)
            )
        },
    );
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}
