//! CRD fields: a page per kind; kinds with the same schema share a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use windlass_manager::registry::kinds;

use super::{code, table};

/// A kind on a page.
struct Kind {
    name: String,
    group: String,
    version: String,
    plural: String,
    description: String,
}

/// The pages by file name, and the list of them.
pub(super) fn pages() -> Result<BTreeMap<String, String>, String> {
    let mut by_schema: Vec<(Value, Vec<Kind>)> = Vec::new();
    for entry in kinds::KINDS {
        let crd = (entry.crd)();
        let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let stored = versions.find(|version| version["name"] == entry.version);
        let schema = &stored.unwrap_or(&Value::Null)["schema"]["openAPIV3Schema"];
        let kind = Kind {
            name: entry.kind.to_owned(),
            group: entry.group.to_owned(),
            version: entry.version.to_owned(),
            plural: entry.plural.to_owned(),
            description: text(schema, "description"),
        };
        let fields = schema["properties"].clone();
        match by_schema
            .iter_mut()
            .find(|(known, kinds)| *known == fields && kinds[0].group == kind.group)
        {
            Some((_, kinds)) => kinds.push(kind),
            None => by_schema.push((fields, vec![kind])),
        }
    }
    let mut pages = BTreeMap::new();
    for (fields, kinds) in by_schema {
        let first = kinds.first().ok_or("a page without a kind")?;
        pages.insert(format!("{}.{}.md", first.plural, first.group), page(&fields, &kinds));
    }
    Ok(pages)
}

fn page(fields: &Value, kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    let mut text = format!("# {}\n\n", names.join(", "));
    for kind in kinds {
        let _ = write!(
            text,
            "`{}` in `{}/{}`, resource `{}`. {}\n\n",
            kind.name, kind.group, kind.version, kind.plural, kind.description
        );
    }
    let mut rows = Vec::new();
    for top in ["spec", "status"] {
        if let Some(schema) = fields.get(top) {
            collect(top, schema, true, &mut rows);
        }
    }
    for (name, schema) in fields.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata", "spec", "status"].contains(&name.as_str()) {
            collect(name, schema, false, &mut rows);
        }
    }
    text.push_str(&table(&["field", "type", "description"], &rows));
    text
}

fn text(schema: &Value, key: &str) -> String {
    schema[key].as_str().unwrap_or_default().to_owned()
}

/// The field and all fields below it.
fn collect(path: &str, schema: &Value, required: bool, rows: &mut Vec<Vec<String>>) {
    let mut description = text(schema, "description");
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().filter_map(Value::as_str).map(code).collect();
        let _ = write!(description, " One of {}.", values.join(", "));
    }
    if let Some(default) = schema.get("default") {
        let _ = write!(description, " Default: `{default}`.");
    }
    let mut type_ = type_of(schema);
    if required {
        type_.push_str(", required");
    }
    rows.push(vec![code(path), type_, description.trim().to_owned()]);
    below(path, schema, rows);
}

fn below(path: &str, schema: &Value, rows: &mut Vec<Vec<String>>) {
    let required = |name: &str| {
        let names = schema["required"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).any(|found| found == name)
    };
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        collect(&format!("{path}.{name}"), child, required(name), rows);
    }
    if schema["items"].is_object() {
        below(&format!("{path}[]"), &schema["items"], rows);
    }
    if schema["additionalProperties"].is_object() {
        below(&format!("{path}.*"), &schema["additionalProperties"], rows);
    }
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&schema["additionalProperties"]))
        }
        Some(type_) => schema["format"].as_str().unwrap_or(type_).to_owned(),
        None => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_page() {
        let pages = pages().unwrap();
        for entry in kinds::KINDS {
            let line = format!("`{}` in `{}/{}`", entry.kind, entry.group, entry.version);
            assert!(pages.values().any(|page| page.contains(&line)), "{line}");
        }
    }

    #[test]
    fn fields_have_a_path_and_a_type() {
        let schema = serde_json::json!({
            "type": "object", "required": ["a"],
            "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string", "enum": ["x"]}}}}},
        });
        let mut rows = Vec::new();
        collect("spec", &schema, false, &mut rows);
        let expect = [
            ["`spec`", "object", ""],
            ["`spec.a`", "list of object, required", ""],
            ["`spec.a[].b`", "string", "One of `x`."],
        ];
        assert_eq!(rows, expect.map(|row| row.map(str::to_owned).to_vec()));
    }
}
