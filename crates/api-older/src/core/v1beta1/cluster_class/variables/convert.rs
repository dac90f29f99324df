//! Conversion of variables and their schemas.

use std::collections::HashMap;

use serde_json::Value;
use windlass_api::core as hub;

use super::{
    ClusterClassStatusVariable, ClusterClassStatusVariableDefinition, ClusterClassVariable, JSONSchemaProps,
    VariableSchema,
};
use crate::core::v1beta1::ObjectMeta;
use crate::parts::{by_key, intent, some_text};

/// Variables of the hub. `kept` are those that they were made from.
pub(in crate::core::v1beta1) fn to_hub(
    variables: Vec<ClusterClassVariable>,
    kept: &[hub::ClusterClassVariable],
) -> Vec<hub::ClusterClassVariable> {
    let kept = by_key(kept, |kept| &kept.name);
    let variable = |variable: ClusterClassVariable| {
        let ClusterClassVariable {
            name,
            required,
            metadata,
            schema,
        } = variable;
        let kept = kept.get(name.as_str()).map(|kept| &kept.schema);
        hub::ClusterClassVariable {
            deprecated_v1beta1_metadata: metadata.into_hub(),
            required,
            schema: schema_to_hub(schema, kept),
            name,
        }
    };
    variables.into_iter().map(variable).collect()
}

/// The inverse of [`to_hub`].
pub(in crate::core::v1beta1) fn from_hub(variables: Vec<hub::ClusterClassVariable>) -> Vec<ClusterClassVariable> {
    let variable = |variable: hub::ClusterClassVariable| {
        let hub::ClusterClassVariable {
            deprecated_v1beta1_metadata,
            name,
            required,
            schema,
        } = variable;
        ClusterClassVariable {
            name,
            required,
            metadata: ObjectMeta::from_hub(deprecated_v1beta1_metadata),
            schema: schema_from_hub(schema),
        }
    };
    variables.into_iter().map(variable).collect()
}

/// Variables in the status of the hub. `kept` are those that they were made from.
pub(in crate::core::v1beta1) fn status_to_hub(
    variables: Vec<ClusterClassStatusVariable>,
    kept: &[hub::ClusterClassStatusVariable],
) -> Vec<hub::ClusterClassStatusVariable> {
    let kept: HashMap<_, _> = by_key(kept, |kept| &kept.name)
        .into_iter()
        .map(|(name, kept)| (name, (kept, by_key(&kept.definitions, |kept| &kept.from))))
        .collect();
    let variable = |variable: ClusterClassStatusVariable| {
        let ClusterClassStatusVariable {
            name,
            definitions_conflict,
            definitions,
        } = variable;
        let kept = kept.get(name.as_str());
        let definition = |definition: ClusterClassStatusVariableDefinition| {
            let ClusterClassStatusVariableDefinition {
                from,
                required,
                metadata,
                schema,
            } = definition;
            let kept = kept.and_then(|(_, definitions)| definitions.get(from.as_str()));
            hub::ClusterClassStatusVariableDefinition {
                deprecated_v1beta1_metadata: metadata.into_hub(),
                required,
                schema: schema_to_hub(schema, kept.map(|kept| &kept.schema)),
                from,
            }
        };
        hub::ClusterClassStatusVariable {
            definitions: definitions.into_iter().map(definition).collect(),
            definitions_conflict: intent(
                definitions_conflict,
                kept.and_then(|(kept, _)| kept.definitions_conflict),
            ),
            name,
        }
    };
    variables.into_iter().map(variable).collect()
}

/// The inverse of [`status_to_hub`].
pub(in crate::core::v1beta1) fn status_from_hub(
    variables: Vec<hub::ClusterClassStatusVariable>,
) -> Vec<ClusterClassStatusVariable> {
    let definition = |definition: hub::ClusterClassStatusVariableDefinition| {
        let hub::ClusterClassStatusVariableDefinition {
            deprecated_v1beta1_metadata,
            from,
            required,
            schema,
        } = definition;
        ClusterClassStatusVariableDefinition {
            from,
            required,
            metadata: ObjectMeta::from_hub(deprecated_v1beta1_metadata),
            schema: schema_from_hub(schema),
        }
    };
    let variable = |variable: hub::ClusterClassStatusVariable| {
        let hub::ClusterClassStatusVariable {
            definitions,
            definitions_conflict,
            name,
        } = variable;
        ClusterClassStatusVariable {
            name,
            definitions_conflict: definitions_conflict.unwrap_or_default(),
            definitions: definitions.into_iter().map(definition).collect(),
        }
    };
    variables.into_iter().map(variable).collect()
}

/// The flags of a schema that can be unset in the hub only.
const FLAGS: [&str; 5] = [
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
];
/// The fields of a schema with other schemas.
const NESTED: [&str; 7] = [
    "additionalProperties",
    "items",
    "not",
    "allOf",
    "anyOf",
    "oneOf",
    "properties",
];

/// A nested schema without flags that are false: for the older version, false and unset are the same.
fn forget_false(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for flag in FLAGS {
        if fields.get(flag) == Some(&Value::Bool(false)) {
            fields.remove(flag);
        }
    }
    for name in NESTED {
        if let Some(value) = fields.get_mut(name) {
            forget_in(name, value);
        }
    }
}

/// [`forget_false`] for what is in a field of a schema.
fn forget_in(name: &str, value: &mut Value) {
    match (name, value) {
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(forget_false),
        ("properties", Value::Object(schemas)) => schemas.values_mut().for_each(forget_false),
        ("additionalProperties" | "items" | "not", schema) => forget_false(schema),
        _ => {}
    }
}

/// Brings back the flags that were false on purpose.
fn recall_false(schema: &mut Value, kept: &Value) {
    let (Some(fields), Some(kept)) = (schema.as_object_mut(), kept.as_object()) else {
        return;
    };
    for flag in FLAGS {
        if kept.get(flag) == Some(&Value::Bool(false)) && !fields.contains_key(flag) {
            fields.insert(flag.to_owned(), Value::Bool(false));
        }
    }
    for name in NESTED {
        if let (Some(value), Some(kept)) = (fields.get_mut(name), kept.get(name)) {
            recall_in(name, value, kept);
        }
    }
}

/// [`recall_false`] for what is in a field of a schema.
fn recall_in(name: &str, value: &mut Value, kept: &Value) {
    match (name, value, kept) {
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), Value::Array(kept)) => {
            for (schema, kept) in schemas.iter_mut().zip(kept) {
                recall_false(schema, kept);
            }
        }
        ("properties", Value::Object(schemas), Value::Object(kept)) => {
            for (name, schema) in schemas {
                if let Some(kept) = kept.get(name) {
                    recall_false(schema, kept);
                }
            }
        }
        ("additionalProperties" | "items" | "not", schema, kept) => recall_false(schema, kept),
        _ => {}
    }
}

fn schema_to_hub(schema: VariableSchema, kept: Option<&hub::VariableSchema>) -> hub::VariableSchema {
    let kept = kept.map(|kept| &kept.open_api_v3_schema);
    hub::VariableSchema {
        open_api_v3_schema: props_to_hub(schema.open_api_v3_schema, kept),
    }
}

fn schema_from_hub(schema: hub::VariableSchema) -> VariableSchema {
    VariableSchema {
        open_api_v3_schema: props_from_hub(schema.open_api_v3_schema),
    }
}

fn props_to_hub(props: JSONSchemaProps, kept: Option<&hub::JSONSchemaProps>) -> hub::JSONSchemaProps {
    let JSONSchemaProps {
        description,
        example,
        type_,
        properties,
        additional_properties,
        max_properties,
        min_properties,
        required,
        items,
        max_items,
        min_items,
        unique_items,
        format,
        max_length,
        min_length,
        pattern,
        maximum,
        exclusive_maximum,
        minimum,
        exclusive_minimum,
        x_kubernetes_preserve_unknown_fields,
        enum_,
        default,
        x_kubernetes_validations,
        x_metadata,
        x_kubernetes_int_or_string,
        all_of,
        one_of,
        any_of,
        not,
    } = props;
    let flag = |flag: bool, of: fn(&hub::JSONSchemaProps) -> Option<bool>| intent(flag, kept.and_then(of));
    let nested = |name: &str, value: Option<Value>, of: fn(&hub::JSONSchemaProps) -> Option<&Value>| {
        let mut value = value?;
        forget_in(name, &mut value);
        if let Some(kept) = kept.and_then(of) {
            recall_in(name, &mut value, kept);
        }
        Some(value)
    };
    hub::JSONSchemaProps {
        additional_properties: nested("additionalProperties", additional_properties, |kept| {
            kept.additional_properties.as_ref()
        }),
        all_of: nested("allOf", all_of, |kept| kept.all_of.as_ref()),
        any_of: nested("anyOf", any_of, |kept| kept.any_of.as_ref()),
        default,
        description: some_text(description),
        enum_,
        example,
        exclusive_maximum: flag(exclusive_maximum, |kept| kept.exclusive_maximum),
        exclusive_minimum: flag(exclusive_minimum, |kept| kept.exclusive_minimum),
        format: some_text(format),
        items: nested("items", items, |kept| kept.items.as_ref()),
        max_items,
        max_length,
        max_properties,
        maximum,
        min_items,
        min_length,
        min_properties,
        minimum,
        not: nested("not", not, |kept| kept.not.as_ref()),
        one_of: nested("oneOf", one_of, |kept| kept.one_of.as_ref()),
        pattern: some_text(pattern),
        properties: nested("properties", properties, |kept| kept.properties.as_ref()),
        required,
        type_: some_text(type_),
        unique_items: flag(unique_items, |kept| kept.unique_items),
        x_kubernetes_int_or_string: flag(x_kubernetes_int_or_string, |kept| kept.x_kubernetes_int_or_string),
        x_kubernetes_preserve_unknown_fields: flag(x_kubernetes_preserve_unknown_fields, |kept| {
            kept.x_kubernetes_preserve_unknown_fields
        }),
        x_kubernetes_validations,
        x_metadata: x_metadata.and_then(ObjectMeta::into_hub),
    }
}

fn props_from_hub(props: hub::JSONSchemaProps) -> JSONSchemaProps {
    let hub::JSONSchemaProps {
        additional_properties,
        all_of,
        any_of,
        default,
        description,
        enum_,
        example,
        exclusive_maximum,
        exclusive_minimum,
        format,
        items,
        max_items,
        max_length,
        max_properties,
        maximum,
        min_items,
        min_length,
        min_properties,
        minimum,
        not,
        one_of,
        pattern,
        properties,
        required,
        type_,
        unique_items,
        x_kubernetes_int_or_string,
        x_kubernetes_preserve_unknown_fields,
        x_kubernetes_validations,
        x_metadata,
    } = props;
    let nested = |name: &str, value: Option<Value>| {
        let mut value = value?;
        forget_in(name, &mut value);
        Some(value)
    };
    JSONSchemaProps {
        description: description.unwrap_or_default(),
        example,
        type_: type_.unwrap_or_default(),
        properties: nested("properties", properties),
        additional_properties: nested("additionalProperties", additional_properties),
        max_properties,
        min_properties,
        required,
        items: nested("items", items),
        max_items,
        min_items,
        unique_items: unique_items.unwrap_or_default(),
        format: format.unwrap_or_default(),
        max_length,
        min_length,
        pattern: pattern.unwrap_or_default(),
        maximum,
        exclusive_maximum: exclusive_maximum.unwrap_or_default(),
        minimum,
        exclusive_minimum: exclusive_minimum.unwrap_or_default(),
        x_kubernetes_preserve_unknown_fields: x_kubernetes_preserve_unknown_fields.unwrap_or_default(),
        enum_,
        default,
        x_kubernetes_validations,
        x_metadata: x_metadata.map(|metadata| ObjectMeta::from_hub(Some(metadata))),
        x_kubernetes_int_or_string: x_kubernetes_int_or_string.unwrap_or_default(),
        all_of: nested("allOf", all_of),
        one_of: nested("oneOf", one_of),
        any_of: nested("anyOf", any_of),
        not: nested("not", not),
    }
}
