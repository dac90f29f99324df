//! The resources of a definition. Pure.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;
use windlass_cel::Validator;
use windlass_schema::Schema;

use super::{compare_versions, flag, is_established, names, storage_version, versions};
use crate::crds::definition::Definition;
use crate::http::heavy::Remembered;
use crate::objects::conversion::Conversion;
use crate::objects::converter::Converter;
use crate::objects::resource::{Column, Resource, ScalePaths, SchemaSource};
use windlass_builtin_kinds::{Special, Strategy};
use windlass_objects::jsonpath::JsonPath;
use windlass_objects::metadata::{meta_value, strings, text};
use windlass_objects::names::NameRule;
use windlass_objects::names::api_version;

/// The resources of a definition; none before it is established.
pub(crate) fn definition(
    crd: &Value,
    revision: u64,
    before: Option<&Definition>,
    converter: Option<&Arc<dyn Converter>>,
) -> Definition {
    if !is_established(crd) {
        return Definition::default();
    }
    let fingerprint = fingerprint(crd);
    let mut all: Vec<&Value> = versions(crd).iter().collect();
    all.sort_by(|a, b| compare_versions(text(b, "name"), text(a, "name")));
    let schemas: BTreeMap<String, Arc<Schema>> = versions(crd)
        .iter()
        .filter_map(|version| {
            let raw = version.pointer("/schema/openAPIV3Schema")?;
            Some((text(version, "name").to_owned(), Arc::new(Schema::stored(raw))))
        })
        .collect();
    let before = before.and_then(|before| before.stored.as_ref()?.conversion.clone());
    let kind = text(accepted_names(crd), "kind");
    let conversion = Conversion::of(crd, kind, schemas, revision, before.as_deref());
    let conversion = Arc::new(conversion.converting(converter));
    let mut out = Definition {
        fingerprint,
        labels: labels(crd),
        ..Definition::default()
    };
    for version in all {
        if !flag(version, "served") && !flag(version, "storage") {
            continue;
        }
        let Some(resource) = resource(crd, version, &conversion) else {
            continue;
        };
        if flag(version, "storage") {
            out.stored = Some(Arc::clone(&resource));
        }
        if flag(version, "served") {
            out.served.push(resource);
        }
    }
    out
}

/// A hash of the parts of a definition that affect its resources.
pub(crate) fn fingerprint(crd: &Value) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    for part in ["/spec", "/status/acceptedNames"] {
        crd.pointer(part).map(Value::to_string).hash(&mut hasher);
    }
    is_established(crd).hash(&mut hasher);
    hasher.finish()
}

/// The labels of a definition.
pub(crate) fn labels(crd: &Value) -> BTreeMap<String, String> {
    let labels = meta_value(crd, "labels").and_then(Value::as_object);
    let texts = labels.into_iter().flatten();
    texts
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The accepted names of a definition, which may differ from the desired ones.
fn accepted_names(crd: &Value) -> &Value {
    crd.pointer("/status/acceptedNames")
        .filter(|accepted| !text(accepted, "kind").is_empty())
        .unwrap_or_else(|| names(crd))
}

fn resource(crd: &Value, version: &Value, conversion: &Arc<Conversion>) -> Option<Arc<Resource>> {
    let spec = crd.get("spec")?;
    let group = text(spec, "group");
    let names = accepted_names(crd);
    let raw = version.pointer("/schema/openAPIV3Schema")?;
    let scale = version.pointer("/subresources/scale");
    let version_name = text(version, "name");
    let schema = Arc::clone(conversion.schema(&api_version(group, version_name))?);
    Some(Arc::new(Resource {
        group: group.to_owned(),
        version: version_name.to_owned(),
        api_version: api_version(group, version_name),
        kind: text(names, "kind").to_owned(),
        list_kind: text(names, "listKind").to_owned(),
        plural: text(names, "plural").to_owned(),
        singular: text(names, "singular").to_owned(),
        short_names: owned(names.get("shortNames")),
        categories: owned(names.get("categories")),
        namespaced: text(spec, "scope") == "Namespaced",
        storage: format!("{}.{group}", text(names, "plural")).into(),
        storage_api_version: api_version(group, storage_version(crd)),
        status: version.pointer("/subresources/status").is_some(),
        scale: scale.map(|s| ScalePaths {
            spec: dotted(text(s, "specReplicasPath")),
            status: dotted(text(s, "statusReplicasPath")),
            selector: s.get("labelSelectorPath").and_then(Value::as_str).map(dotted),
        }),
        generation: true,
        name_rule: NameRule::Subdomain,
        special: Special::None,
        strategy: Strategy::PLAIN,
        create_on_update: false,
        needs_revision: true,
        columns: columns(version),
        selectable: version
            .get("selectableFields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|f| dotted(text(f, "jsonPath")))
            .map(|p| (p.clone(), p))
            .collect(),
        schema: SchemaSource::Custom(Validator::new(schema)),
        raw_schema: Some(Arc::new(raw.clone())),
        conversion: Some(Arc::clone(conversion)),
        costly: Remembered::default(),
        deprecation: flag(version, "deprecated").then(|| {
            let words = text(version, "deprecationWarning");
            if words.is_empty() {
                format!("{group}/{version_name} {} is deprecated", text(names, "kind"))
            } else {
                words.to_owned()
            }
        }),
    }))
}

fn owned(value: Option<&Value>) -> Vec<String> {
    strings(value).into_iter().map(str::to_owned).collect()
}

fn dotted(path: &str) -> String {
    path.trim_start_matches('.').to_owned()
}

fn columns(version: &Value) -> Vec<Column> {
    let mut out = vec![Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: String::new(),
        priority: 0,
        path: JsonPath::parse(".metadata.name").ok(),
    }];
    let own = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for column in own.into_iter().flatten() {
        out.push(Column {
            name: text(column, "name").to_owned(),
            kind: text(column, "type").to_owned(),
            format: text(column, "format").to_owned(),
            description: match text(column, "description") {
                "" => format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    text(column, "jsonPath")
                ),
                words => words.to_owned(),
            },
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            path: JsonPath::parse(text(column, "jsonPath")).ok(),
        });
    }
    if own.is_none_or(Vec::is_empty) {
        out.push(Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: JsonPath::parse(".metadata.creationTimestamp").ok(),
        });
    }
    out
}
