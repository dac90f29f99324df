//! Schemas of the built-in kinds: generated from the Rust types, with what those do not say (list keys, defaults) added from
//! tables. Made on first use, once per process.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use windlass_schema::Schema;

const LISTS: &str = include_str!("builtin_lists.tsv");
const DEFAULTS: &str = include_str!("builtin_defaults.tsv");
const ATOMIC: &str = include_str!("builtin_atomic.tsv");

/// Definitions by full type name, encoded, without their descriptions: decoded they would cost many times the memory.
static COMPACT: LazyLock<BTreeMap<String, Box<str>>> = LazyLock::new(|| {
    let Value::Object(map) = definitions() else {
        return BTreeMap::new();
    };
    map.into_iter()
        .map(|(name, mut definition)| {
            drop_descriptions(&mut definition);
            // What must be there is checked by rules of each kind: the types mark more than the server asks for.
            if let Some(object) = definition.as_object_mut()
                && !name.ends_with("JSONSchemaProps")
            {
                object.remove("required");
            }
            (name, definition.to_string().into())
        })
        .collect()
});

fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A field may be called that, too: then it is an object.
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

/// A definition and all that it refers to, decoded.
fn closure(name: &str) -> Map<String, Value> {
    let mut out = Map::new();
    let mut queue = vec![name.to_owned()];
    while let Some(name) = queue.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let Some(definition) = COMPACT.get(&name).and_then(|text| serde_json::from_str(text).ok()) else {
            continue;
        };
        references(&definition, &mut queue);
        out.insert(name, definition);
    }
    out
}

/// The names of the definitions that a schema refers to.
pub(crate) fn references(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref", Value::String(text)) => {
                        out.extend(text.rsplit('/').next().map(str::to_owned));
                    }
                    _ => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

macro_rules! define {
    ($generator:ident: $($kind:ty),* $(,)?) => {
        $( $generator.subschema_for::<$kind>(); )*
    };
}

fn definitions() -> Value {
    use k8s_openapi::api::{
        admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authn,
        authorization::v1 as authz, autoscaling::v1 as autoscaling, batch::v1 as batch,
        coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery, events::v1 as events,
        policy::v1 as policy, rbac::v1 as rbac, storage::v1 as storage,
    };
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
    use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as registration;

    let mut generator = schemars::generate::SchemaSettings::openapi3()
        .with(|s| s.definitions_path = "/components/schemas".into())
        .into_generator();
    define!(generator:
        core::Namespace, core::Secret, core::ConfigMap, core::Event, core::Node, core::Pod, core::Service,
        core::ServiceAccount, core::Endpoints, core::PersistentVolume, core::PersistentVolumeClaim,
        core::ReplicationController,
        apps::Deployment, apps::DaemonSet, apps::StatefulSet, apps::ReplicaSet, batch::Job,
        coordination::Lease, events::Event, rbac::Role, rbac::RoleBinding, rbac::ClusterRole,
        rbac::ClusterRoleBinding, policy::PodDisruptionBudget, policy::Eviction, storage::StorageClass,
        storage::VolumeAttachment, discovery::EndpointSlice, admission::ValidatingWebhookConfiguration,
        admission::MutatingWebhookConfiguration, registration::APIService,
        extensions::CustomResourceDefinition, autoscaling::Scale, authn::TokenReview,
        authn::SelfSubjectReview, authz::SelfSubjectAccessReview, authz::SubjectAccessReview,
        meta::DeleteOptions, meta::Status,
    );
    let mut out = Value::Object(generator.take_definitions(true));
    complete(&mut out);
    out
}

/// Adds what the generated schemas lack.
fn complete(definitions: &mut Value) {
    let Some(map) = definitions.as_object_mut() else {
        return;
    };
    for (name, definition) in map.iter_mut() {
        if name.ends_with("Status") {
            zero_required(definition);
        }
    }
    for definition in map.values_mut() {
        // Only the Rust types always have it.
        if let Some(Value::Array(required)) = definition.get_mut("required") {
            required.retain(|name| name != "metadata");
        }
    }
    // Types that stand for any JSON.
    for (name, definition) in map.iter_mut() {
        let any = [
            "FieldsV1",
            "RawExtension",
            "JSON",
            "JSONSchemaPropsOrArray",
            "JSONSchemaPropsOrBool",
            "JSONSchemaPropsOrStringArray",
        ];
        if any.iter().any(|t| name.rsplit('.').next() == Some(t)) {
            let description = definition.get("description").cloned();
            *definition = json!({"x-kubernetes-preserve-unknown-fields": true});
            if let Some(text) = description {
                definition["description"] = text;
            }
            if name.ends_with("FieldsV1") {
                definition["type"] = "object".into();
            }
        }
    }
    for line in LISTS.lines() {
        let mut parts = line.split('\t');
        let (Some(name), Some(field)) = (parts.next(), parts.next()) else {
            continue;
        };
        let keys: Vec<&str> = parts.next().unwrap_or("").split_whitespace().collect();
        let Some(property) = property(map, name, field) else {
            continue;
        };
        if let Some(first) = keys.first() {
            property.insert("x-kubernetes-list-type".into(), "map".into());
            property.insert("x-kubernetes-list-map-keys".into(), json!(keys));
            property.insert("x-kubernetes-patch-merge-key".into(), (*first).into());
            let strategy = if field == "volumes" {
                "merge,retainKeys"
            } else {
                "merge"
            };
            property.insert("x-kubernetes-patch-strategy".into(), strategy.into());
        } else {
            property.insert("x-kubernetes-list-type".into(), "set".into());
            if field == "finalizers" {
                property.insert("x-kubernetes-patch-strategy".into(), "merge".into());
            }
        }
    }
    for line in DEFAULTS.lines() {
        let mut parts = line.split('\t');
        if let (Some(name), Some(field), Some(default)) = (parts.next(), parts.next(), parts.next())
            && let Some(property) = property(map, name, field)
            && let Ok(default) = serde_json::from_str::<Value>(default)
        {
            property.insert("default".into(), default);
        }
    }
    for name in ATOMIC.lines() {
        if let Some(definition) = map.get_mut(name).and_then(Value::as_object_mut) {
            definition.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
    }
    for (owner, field) in [
        ("io.k8s.api.apps.v1.DeploymentSpec", "strategy"),
        ("io.k8s.api.apps.v1.DaemonSetSpec", "updateStrategy"),
    ] {
        if let Some(property) = property(map, owner, field) {
            property.insert("x-kubernetes-patch-strategy".into(), "retainKeys".into());
        }
    }
}

/// What a status must have is written even when nobody has set it: as zero, false or an empty text.
fn zero_required(definition: &mut Value) {
    let required: Vec<String> = crate::object::strings(definition.get("required"))
        .into_iter()
        .map(str::to_owned)
        .collect();
    for name in required {
        let Some(property) = definition.pointer_mut(&format!("/properties/{name}")) else {
            continue;
        };
        let zero = match property.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => json!(0),
            Some("boolean") => json!(false),
            Some("string") if property.get("format").is_none() => json!(""),
            _ => continue,
        };
        property["default"] = zero;
    }
}

fn property<'a>(
    definitions: &'a mut Map<String, Value>,
    name: &str,
    field: &str,
) -> Option<&'a mut Map<String, Value>> {
    definitions
        .get_mut(name)?
        .get_mut("properties")?
        .get_mut(field)?
        .as_object_mut()
}

/// All definitions, as OpenAPI v3 `components.schemas`; made anew for each document, which nobody asks for often.
pub(crate) fn all() -> Value {
    definitions()
}

/// The schema of a built-in type.
pub(crate) fn parsed(name: &str) -> Option<Arc<Schema>> {
    let definitions = Value::Object(closure(name));
    match Schema::open_api(definitions.get(name)?, &definitions) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(error) => {
            tracing::error!(%error, name, "the schema of a built-in type cannot be used");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_resource_has_a_usable_schema() {
        for resource in crate::builtin::resources() {
            assert!(resource.schema().is_some(), "{}", resource.kind);
        }
    }

    #[test]
    fn every_row_of_the_tables_names_a_field() {
        let all = all();
        let map = all.as_object().unwrap();
        for table in [LISTS, DEFAULTS] {
            for line in table.lines() {
                let mut parts = line.split('\t');
                let (name, field) = (parts.next().unwrap(), parts.next().unwrap());
                if let Some(definition) = map.get(name) {
                    assert!(definition["properties"].get(field).is_some(), "{line}");
                }
            }
        }
        for name in ATOMIC.lines() {
            assert!(map.contains_key(name), "{name}");
        }
    }
}
