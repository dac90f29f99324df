//! CustomResourceDefinitions as text, and as tables of fields that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// A CRD as YAML.
pub fn to_yaml(crd: &Value) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(crd, options).map_err(|error| {
        format!(
            "{}: cannot be written as YAML: {error}",
            crd.pointer("/metadata/name").unwrap_or(&Value::Null)
        )
    })
}

/// One field of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Field {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, `int-or-string` or `any`.
    pub type_: String,
    /// Whether the field is required; always true for items of lists and maps.
    pub required: bool,
    /// Limits, defaults, list types and the like.
    pub constraints: BTreeMap<String, Value>,
}

/// A version of a CRD, flattened: fields by path, and the facts around them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// `kind`, `plural`, `group`, `version`, `scope`, `shortNames`, `categories`, `served`, `storage`, `subresources`.
    pub facts: BTreeMap<String, String>,
    /// The printer columns, in order: `NAME PATH TYPE priority N`.
    pub columns: Vec<String>,
    /// The fields by path: `spec.a.b`, `spec.list[]`, `spec.map{}`.
    pub fields: BTreeMap<String, Field>,
}

/// Schema keywords that limit values, with their names in a table.
const CONSTRAINTS: &[(&str, &str)] = &[
    ("format", "format"),
    ("default", "default"),
    ("enum", "enum"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("exclusiveMinimum", "exclusiveMinimum"),
    ("exclusiveMaximum", "exclusiveMaximum"),
    ("multipleOf", "multipleOf"),
    ("minLength", "minLength"),
    ("maxLength", "maxLength"),
    ("pattern", "pattern"),
    ("minItems", "minItems"),
    ("maxItems", "maxItems"),
    ("uniqueItems", "uniqueItems"),
    ("minProperties", "minProperties"),
    ("maxProperties", "maxProperties"),
    ("nullable", "nullable"),
    ("x-kubernetes-list-type", "list-type"),
    ("x-kubernetes-list-map-keys", "list-map-keys"),
    ("x-kubernetes-map-type", "map-type"),
    ("x-kubernetes-preserve-unknown-fields", "preserve-unknown-fields"),
    ("x-kubernetes-int-or-string", "int-or-string"),
    ("x-kubernetes-embedded-resource", "embedded-resource"),
];

/// Flattens one version of a CRD.
pub fn flatten(crd: &Value, version: &str) -> Option<Table> {
    let spec = &crd["spec"];
    let names = &spec["names"];
    let version = spec["versions"].as_array()?.iter().find(|v| v["name"] == version)?;
    let list = |value: &Value| {
        let words: Vec<&str> = value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if words.is_empty() {
            "-".to_owned()
        } else {
            words.join(",")
        }
    };
    let facts = [
        ("kind", text(&names["kind"])),
        ("plural", text(&names["plural"])),
        ("group", text(&spec["group"])),
        ("version", text(&version["name"])),
        ("scope", text(&spec["scope"])),
        ("shortNames", list(&names["shortNames"])),
        ("categories", list(&names["categories"])),
        ("served", (version["served"] == true).to_string()),
        ("storage", (version["storage"] == true).to_string()),
        (
            "subresources",
            version.get("subresources").unwrap_or(&json!({})).to_string(),
        ),
    ];
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    let mut table = Table {
        facts: facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        columns: columns.map(column).collect(),
        fields: BTreeMap::new(),
    };
    let root = &version["schema"]["openAPIV3Schema"];
    if let Some(properties) = root["properties"].as_object() {
        let required = required(root);
        for (name, schema) in properties {
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                add(
                    &mut table.fields,
                    name.clone(),
                    schema,
                    required.contains(name.as_str()),
                );
            }
        }
    }
    Some(table)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn column(column: &Value) -> String {
    let priority = column["priority"].as_i64().unwrap_or(0);
    format!(
        "{} {} {} priority {priority}",
        text(&column["name"]),
        text(&column["jsonPath"]),
        text(&column["type"])
    )
}

fn required(schema: &Value) -> BTreeSet<&str> {
    schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn add(fields: &mut BTreeMap<String, Field>, path: String, schema: &Value, is_required: bool) {
    let type_ = if schema["x-kubernetes-int-or-string"] == true {
        "int-or-string".to_owned()
    } else {
        schema["type"].as_str().unwrap_or("any").to_owned()
    };
    let mut constraints: BTreeMap<String, Value> = CONSTRAINTS
        .iter()
        .filter_map(|(keyword, name)| Some(((*name).to_owned(), schema.get(*keyword)?.clone())))
        .collect();
    if let Some(rules) = schema["x-kubernetes-validations"].as_array() {
        constraints.insert("cel-rules".to_owned(), json!(rules.len()));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let required = required(schema);
        for (name, child) in properties {
            add(
                fields,
                format!("{path}.{name}"),
                child,
                required.contains(name.as_str()),
            );
        }
    }
    if let Some(items) = schema.get("items") {
        add(fields, format!("{path}[]"), items, true);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        add(fields, format!("{path}{{}}"), values, true);
    }
    fields.insert(
        path,
        Field {
            type_,
            required: is_required,
            constraints,
        },
    );
}

/// Violations of the rules of structural schemas, by path; empty without any.
///
/// A structural schema names the type of every value, and holds descriptions, defaults and Kubernetes extensions only
/// outside of `anyOf` and similar keywords.
pub fn not_structural(path: &str, schema: &Value) -> Vec<String> {
    let Some(node) = schema.as_object() else {
        return vec![format!("{path}: not a schema")];
    };
    let mut findings = Vec::new();
    let mut say = |what: &str| findings.push(format!("{path}: {what}"));
    for keyword in [
        "$ref",
        "$schema",
        "$defs",
        "definitions",
        "title",
        "const",
        "patternProperties",
        "if",
    ] {
        if node.contains_key(keyword) {
            say(&format!("{keyword} is not allowed"));
        }
    }
    let int_or_string = node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let free = node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    match node.get("type") {
        Some(Value::String(_)) => {}
        Some(_) => say("type is not one word"),
        None if int_or_string || free => {}
        None => say("no type"),
    }
    if node.contains_key("properties") && node.contains_key("additionalProperties") {
        say("both properties and additionalProperties");
    }
    if node.get("default").is_some_and(Value::is_null) {
        say("the default is null");
    }
    if ["allOf", "oneOf", "not"].iter().any(|k| node.contains_key(*k)) || (node.contains_key("anyOf") && !int_or_string)
    {
        say("allOf, anyOf, oneOf and not are not used here");
    }
    findings.extend(list_findings(path, node));
    for (name, child) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        findings.extend(not_structural(&format!("{path}.{name}"), child));
    }
    for (keyword, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = node.get(keyword) {
            findings.extend(not_structural(&format!("{path}{suffix}"), child));
        }
    }
    findings
}

/// Checks that the keys of a list map are required or have a default in every item.
fn list_findings(path: &str, node: &Map<String, Value>) -> Vec<String> {
    let mut findings = Vec::new();
    if node.get("type") == Some(&json!("array")) && !node.contains_key("items") {
        findings.push(format!("{path}: a list without items"));
    }
    let Some(items) = node.get("items") else {
        return findings;
    };
    for key in node
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = key.as_str().unwrap_or_default();
        if items["properties"].get(key).is_none() {
            findings.push(format!("{path}: list key {key} is not a property of the items"));
        } else if !required(items).contains(key) && items["properties"][key].get("default").is_none() {
            findings.push(format!("{path}: list key {key} is neither required nor defaulted"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::kinds::{KINDS, all_crds};

    #[test]
    fn all_schemas_are_structural() {
        for crd in all_crds() {
            for version in crd["spec"]["versions"].as_array().unwrap() {
                let schema = &version["schema"]["openAPIV3Schema"];
                let found = not_structural(crd["metadata"]["name"].as_str().unwrap(), schema);
                assert_eq!(found, Vec::<String>::new());
            }
        }
    }

    #[test]
    fn findings_name_the_path() {
        let schema = json!({"type": "object", "properties": {
            "a": {"properties": {}},
            "b": {"type": ["string", "null"]},
            "c": {"type": "array"},
            "d": {"$ref": "#/definitions/x", "type": "object"},
        }});
        let expect = [
            "x.a: no type",
            "x.b: type is not one word",
            "x.c: a list without items",
            "x.d: $ref is not allowed",
        ];
        assert_eq!(not_structural("x", &schema), expect);
    }

    #[test]
    fn every_kind_has_a_name_of_its_own_and_flattens() {
        let mut names = BTreeSet::new();
        for entry in KINDS {
            assert!(names.insert(entry.crd_name()), "{} is there twice", entry.crd_name());
            let crd = (entry.crd)();
            assert_eq!(crd["metadata"]["name"], entry.crd_name());
            let table = flatten(&crd, entry.version).unwrap();
            assert_eq!(table.facts["kind"], entry.kind);
            // The inventory is the only kind without a spec: it has observed state only.
            assert_eq!(
                table.fields.contains_key("spec"),
                entry.kind != "Provider",
                "{}",
                entry.kind
            );
        }
    }

    #[test]
    fn every_field_is_described() {
        fn undescribed(path: &str, schema: &Value, findings: &mut Vec<String>) {
            for (name, child) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                if child.get("description").is_none() && name != "metadata" {
                    findings.push(path.clone());
                }
                undescribed(&path, child, findings);
                undescribed(&path, &child["items"], findings);
            }
        }
        for crd in all_crds() {
            for version in crd["spec"]["versions"].as_array().unwrap() {
                let mut findings = Vec::new();
                undescribed("", &version["schema"]["openAPIV3Schema"], &mut findings);
                assert_eq!(findings, Vec::<String>::new(), "{}", crd["metadata"]["name"]);
            }
        }
    }

    #[test]
    fn yaml_reads_back_as_it_was() {
        for crd in all_crds() {
            let yaml = to_yaml(&crd).unwrap();
            assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), crd);
        }
    }
}
