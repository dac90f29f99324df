//! The resources of the built-in kinds, and the functions that apply a kind's strategy to an object.

use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;
use windlass_builtin_kinds::{KINDS, Kind, Special, Strategy, Trait, Validate};
use windlass_objects::Part;
use windlass_objects::names::{NameRule, api_version};

use crate::admission::webhook;
use crate::crds;
use crate::error::ApiError;
use crate::http::heavy::Remembered;
use crate::objects::fresh::Fresh;
use crate::objects::resource::{Column, Resource, ScalePaths, SchemaSource};

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

/// The strategy of a kind, with the validation of kinds that configure the server itself.
fn strategy(kind: &Kind) -> Strategy {
    let mut strategy = kind.strategy;
    match strategy.special {
        Special::Crd => {
            strategy.default = crds::default;
            strategy.validate = Validate::Part(|object, old, part, errors| {
                errors.extend(match part {
                    Part::Status => crds::status_errors(object),
                    _ => crds::errors(object, old),
                });
            });
        }
        Special::Webhooks => {
            strategy.validate = if kind.kind.starts_with("Mutating") {
                Validate::Object(|object, old, errors| errors.extend(webhook::errors(true, object, old)))
            } else {
                Validate::Object(|object, old, errors| errors.extend(webhook::errors(false, object, old)))
            };
        }
        _ => {}
    }
    strategy
}

fn resource(kind: &'static Kind) -> Resource {
    // Both event groups show the same objects, stored in the form of the core group.
    let storage = if kind.group.is_empty() || kind.kind == "Event" {
        kind.plural.to_owned()
    } else {
        format!("{}.{}", kind.plural, kind.group)
    };
    let stored_version = match kind.group {
        _ if kind.kind == "Event" => "v1".to_owned(),
        "autoscaling" => "autoscaling/v2".to_owned(),
        group => api_version(group, kind.version),
    };
    let categories = [(Trait::All, "all"), (Trait::ApiExtensions, "api-extensions")];
    let strategy = strategy(kind);
    let columns = windlass_builtin_kinds::columns(kind.group, kind.version, kind.plural);
    Resource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: api_version(kind.group, kind.version),
        kind: kind.kind.to_owned(),
        list_kind: format!("{}List", kind.kind),
        plural: kind.plural.to_owned(),
        singular: kind.kind.to_lowercase(),
        short_names: list(kind.short),
        categories: categories
            .into_iter()
            .filter(|(wanted, _)| kind.has(*wanted))
            .map(|(_, name)| name.to_owned())
            .collect(),
        namespaced: kind.has(Trait::Namespaced),
        storage: storage.into(),
        storage_api_version: stored_version,
        status: kind.has(Trait::Status),
        scale: kind.has(Trait::Scale).then(|| ScalePaths {
            spec: "spec.replicas".to_owned(),
            status: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
        }),
        generation: kind.has(Trait::Generation),
        name_rule: if kind.has(Trait::LabelNames) {
            NameRule::Label
        } else if kind.has(Trait::PathSegmentNames) {
            NameRule::PathSegment
        } else {
            NameRule::Subdomain
        },
        special: strategy.special,
        strategy,
        create_on_update: kind.has(Trait::CreateOnUpdate),
        needs_revision: kind.has(Trait::NeedsRevision),
        columns: columns
            .into_iter()
            .map(|column| Column {
                name: column.name,
                kind: column.kind,
                format: column.format,
                description: String::new(),
                priority: column.priority,
                path: None,
            })
            .collect(),
        selectable: list(kind.fields).into_iter().map(|f| (f.clone(), f)).collect(),
        schema: SchemaSource::BuiltIn(kind, OnceLock::new()),
        raw_schema: None,
        conversion: None,
        costly: Remembered::default(),
        deprecation: strategy.deprecation.map(str::to_owned),
    }
}

static RESOURCES: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| KINDS.iter().map(|kind| Arc::new(resource(kind))).collect());

/// All built-in resources, in the order of discovery; shared by all servers of the process.
pub(crate) fn resources() -> &'static [Arc<Resource>] {
    &RESOURCES
}

/// Sets the fields of a new object that only the server sets.
pub(crate) fn on_create(resource: &Resource, object: &mut Value, fresh: &Fresh) {
    (resource.strategy.on_create)(object, fresh.now);
    if let Some(schema) = resource.schema().filter(|_| !resource.is_custom()) {
        // The types of Kubernetes have a status from the start, with zeros for required numbers.
        windlass_schema::default(schema, object);
        // A stored object is decoded with defaults again: some follow from the fields that were just set.
        (resource.strategy.default)(object);
        windlass_builtin_kinds::settle(schema.root(), object);
    }
    // The conditions of a definition exist from the start, as null.
    if resource.special == Special::Crd {
        crds::initial(object);
    }
}

/// The stored form of an object after all changes.
pub(crate) fn settle(resource: &Resource, object: &mut Value) {
    if let Some(schema) = resource.schema().filter(|_| !resource.is_custom()) {
        windlass_builtin_kinds::settle(schema.root(), object);
    }
}

/// Sets the fields of a changed object that only the server sets.
pub(crate) fn on_update(resource: &Resource, old: &Value, new: &mut Value, part: Part) {
    if part == Part::Main {
        (resource.strategy.on_update)(old, new);
    }
}

/// Validates the node name of a binding.
pub(crate) fn binding(name: &str, binding: &Value) -> Result<(), ApiError> {
    let errors = windlass_builtin_kinds::binding_errors(binding);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("", "Binding", name, &errors))
}
