//! Values of variables, defaulted and checked against the schemas of the class.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cel::Validator;
use windlass_gocompat::quote::quoted;
use windlass_meta::beginning;
use windlass_meta::budget::RULE_COST;
use windlass_objects::names::{check_annotations, check_labels};
use windlass_schema::{FieldError, Reviewing};

use super::{BUILTIN, Values};
use crate::error::Error;
use crate::model::{Topology, VariableClass, VariableStatus, VariableValue};

/// The most bytes of a value in a message.
const LONGEST_SHOWN: usize = 1 << 10;

/// Values after defaulting.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effective {
    /// For the whole Cluster.
    pub global: Values,
    /// For the control plane only.
    pub control_plane: Values,
    /// For single worker sets.
    workers: BTreeMap<String, Values>,
    none: Values,
}

impl Effective {
    /// The values that only one worker set sees.
    pub fn worker(&self, name: &str) -> &Values {
        self.workers.get(name).unwrap_or(&self.none)
    }
}

/// One definition, ready for use.
#[derive(Debug)]
struct Definition {
    name: String,
    required: bool,
    default: Option<Value>,
    validator: Validator,
}

/// The definitions of a class, in its order.
#[derive(Debug)]
pub struct Definitions(Vec<Definition>);

/// A list of values: for the whole Cluster, or for a part of its topology.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    /// Its path.
    pub at: &'a str,
    /// Whether it is for the whole Cluster: then it gets values of definitions with a default, and needs those that are required.
    pub is_global: bool,
}

impl Definitions {
    /// Compiles the definitions of a class. An error says what is wrong with the class.
    pub fn of(defined: &[VariableStatus]) -> Result<Self, String> {
        let mut out = Vec::new();
        for variable in defined {
            let name = quoted(&variable.name);
            let Some(definition) = variable.definitions.first() else {
                return Err(format!("variable {name} has no definitions"));
            };
            if variable.definitions_conflict {
                return Err(format!("variable {name} has conflicting definitions"));
            }
            let raw = &known(&definition.schema.open_api_v3_schema);
            let validator = Validator::value(raw);
            out.push(Definition {
                name: variable.name.clone(),
                required: definition.required,
                default: raw.get("default").filter(|default| !default.is_null()).cloned(),
                validator: validator.map_err(|e| format!("schema of variable {name} is not valid: {e}"))?,
            });
        }
        Ok(Self(out))
    }

    fn get(&self, name: &str) -> Option<&Definition> {
        self.0
            .iter()
            .find(|definition| definition.name == name && name != BUILTIN)
    }

    /// The values with their defaults: first those that are given, in their order, then those that are added, in the order of the class. So
    /// values that are complete stay as they are. Values without a definition stay, too: [`Self::check`] finds them.
    pub fn complete(&self, given: &[VariableValue], list: List<'_>) -> Vec<VariableValue> {
        if !repeated(given, list.at).is_empty() {
            return given.to_vec();
        }
        let mut out = Vec::new();
        for variable in given {
            let Some(definition) = self.get(&variable.name) else {
                out.push(variable.clone());
                continue;
            };
            let value = match (&variable.value, &definition.default) {
                (Value::Null, Some(default)) => default,
                (value, _) => value,
            };
            out.push(definition.completed(value.clone()));
        }
        let is_given = |name: &str| given.iter().any(|variable| variable.name == name);
        for definition in self
            .0
            .iter()
            .filter(|definition| list.is_global && !is_given(&definition.name))
        {
            out.extend(definition.default.clone().map(|default| definition.completed(default)));
        }
        out
    }

    /// Checks values. `old` are those that are stored: rules may compare with them. `budget` is what the rules of one value may cost.
    pub fn check(
        &self,
        values: &[VariableValue],
        old: &[VariableValue],
        list: List<'_>,
        budget: u64,
    ) -> Vec<FieldError> {
        let mut errors = repeated(values, list.at);
        if !errors.is_empty() {
            return errors;
        }
        let is_given = |name: &str| values.iter().any(|variable| variable.name == name);
        for definition in &self.0 {
            if list.is_global && definition.required && !is_given(&definition.name) {
                let name = quoted(&definition.name);
                errors.push(FieldError::required(
                    list.at,
                    format!("required variable {name} must be set"),
                ));
            }
        }
        for variable in values {
            let Some(definition) = self.get(&variable.name) else {
                errors.push(undefined(variable, list.at));
                continue;
            };
            let old = old.iter().find(|old| old.name == variable.name);
            definition.check(
                (&variable.value, old.map(|old| &old.value)),
                list.at,
                budget,
                &mut errors,
            );
        }
        errors
    }
}

impl Definition {
    fn completed(&self, mut value: Value) -> VariableValue {
        windlass_schema::default(self.validator.schema(), &mut value);
        VariableValue {
            name: self.name.clone(),
            value,
        }
    }

    fn check(&self, (value, old): (&Value, Option<&Value>), at: &str, budget: u64, errors: &mut Vec<FieldError>) {
        let (at, shown) = (format!("{at}[{}]", self.name), shown(value));
        let schema = self.validator.schema();
        let mut found = windlass_schema::validate_at(schema, "", value, None);
        if found.is_empty() {
            let unknown = windlass_schema::unknown_fields(schema, value);
            if !unknown.is_empty() {
                let detail = format!(
                    "failed validation: {} field(s) are not specified in the variable schema of variable {}",
                    quoted(&unknown.join(",")),
                    quoted(&self.name)
                );
                return errors.push(FieldError::invalid(at, shown, detail));
            }
            let mut before = Vec::new();
            self.validator.check_rest(value, old, budget, &mut found, &mut before);
            // What was wrong before is wrong: the class has changed since.
            found.extend(before);
        }
        for error in found {
            let path = match error.path.trim_start_matches('.') {
                // Rules about the value itself name no field.
                "" | "<nil>" => format!("{at}.value"),
                item if item.starts_with('[') => format!("{at}.value{item}"),
                field => format!("{at}.value.{field}"),
            };
            let detail = error
                .detail
                .strip_prefix(" in body ")
                .unwrap_or(&error.detail)
                .to_owned();
            errors.push(FieldError::new(path, error.kind, Some(shown.clone()), detail));
        }
    }
}

/// A value in a message. There may be many messages about a long value.
fn shown(value: &Value) -> Value {
    beginning(&value.to_string(), LONGEST_SHOWN).into()
}

/// What the rules of one of so many values may cost: together they cost no more than the rules of an object.
pub fn budget(values: usize) -> u64 {
    RULE_COST / u64::try_from(values.max(1)).unwrap_or(u64::MAX)
}

fn repeated(values: &[VariableValue], at: &str) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    let again = values.iter().filter(|variable| !seen.insert(&variable.name));
    let error = |variable: &VariableValue| {
        let detail = format!("variable {} is set more than once", quoted(&variable.name));
        FieldError::invalid(format!("{at}[{}]", variable.name), shown(&variable.value), detail)
    };
    again.map(error).collect()
}

fn undefined(variable: &VariableValue, at: &str) -> FieldError {
    let path = format!("{at}[{}]", variable.name);
    FieldError::invalid(path, shown(&variable.value), "variable is not defined")
}

/// A list of values in a topology.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    /// Its path in messages: worker sets have their names there.
    pub at: String,
    /// The JSON pointer to it in the Cluster.
    pub pointer: String,
    /// The values.
    pub values: &'a [VariableValue],
}

impl Place<'_> {
    /// What kind of list it is.
    pub fn list(&self) -> List<'_> {
        List {
            at: &self.at,
            is_global: self.at == GLOBAL,
        }
    }
}

/// The lists of values in a topology: for the whole Cluster, for the control plane, and for each worker set.
pub fn places(topology: &Topology) -> Vec<Place<'_>> {
    let place = |at: &str, values| Place {
        at: at.to_owned(),
        pointer: format!("/{}", at.replace('.', "/")),
        values,
    };
    let mut out = vec![
        place(GLOBAL, topology.variables.as_slice()),
        place(
            "spec.topology.controlPlane.variables.overrides",
            topology.control_plane.variables.overrides.as_slice(),
        ),
    ];
    let workers = &topology.workers;
    let sets = workers
        .machine_deployments
        .iter()
        .map(|set| (&set.name, &set.variables))
        .enumerate();
    let pools = workers
        .machine_pools
        .iter()
        .map(|pool| (&pool.name, &pool.variables))
        .enumerate();
    let sets = sets.map(|(index, set)| ("machineDeployments", index, set));
    for (field, index, (name, variables)) in sets.chain(pools.map(|(index, pool)| ("machinePools", index, pool))) {
        out.push(Place {
            at: format!("spec.topology.workers.{field}[{name}].variables.overrides"),
            pointer: format!("/spec/topology/workers/{field}/{index}/variables/overrides"),
            values: variables.overrides.as_slice(),
        });
    }
    out
}

/// The path of the values for the whole Cluster.
const GLOBAL: &str = "spec.topology.variables";

/// Defaults and checks all values of a topology. Nothing is written into the user's fields.
pub fn effective(cluster: &str, topology: &Topology, defined: &[VariableStatus]) -> Result<Effective, Error> {
    let definitions = Definitions::of(defined).map_err(|why| Error::new(cluster, "spec.topology.classRef", why))?;
    let mut completed = Vec::new();
    let places = places(topology);
    let count = places.iter().map(|place| place.values.len()).sum();
    for place in places {
        let values = definitions.complete(place.values, place.list());
        let errors = definitions.check(&values, &[], place.list(), budget(count));
        if let Some(first) = errors.first() {
            let more = errors.iter().skip(1).map(|error| format!("; {error}"));
            return Err(Error::new(
                cluster,
                first.path.clone(),
                first.body() + &more.collect::<String>(),
            ));
        }
        completed.push(super::values(&values));
    }
    let mut completed = completed.into_iter();
    let mut out = Effective {
        global: completed.next().unwrap_or_default(),
        control_plane: completed.next().unwrap_or_default(),
        ..Effective::default()
    };
    for (entry, values) in topology.workers.machine_deployments.iter().zip(completed) {
        out.workers.insert(entry.name.clone(), values);
    }
    Ok(out)
}

/// The keywords of a variable's schema. Others have no effect (Cluster API v1.14, `JSONSchemaProps`).
const KEYWORDS: [&str; 30] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-metadata",
];

/// A schema with the keywords that variables have. The CRD keeps what stands below the first level as it is.
fn known(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let all = |list: &Value| list.as_array().map(|list| list.iter().map(known).collect::<Value>());
    let mut out = serde_json::Map::new();
    for (name, value) in map.iter().filter(|(name, _)| KEYWORDS.contains(&name.as_str())) {
        let value = match name.as_str() {
            "x-kubernetes-preserve-unknown-fields" if *value != true => continue,
            "additionalProperties" | "items" | "not" => known(value),
            "allOf" | "anyOf" | "oneOf" => all(value).unwrap_or_else(|| value.clone()),
            "properties" => match value.as_object() {
                Some(map) => map.iter().map(|(name, value)| (name.clone(), known(value))).collect(),
                None => value.clone(),
            },
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    out.into()
}

/// Checks the inline variables of a class: names, schemas, and that defaults, examples and values of enumerations fit their schema.
pub fn check_class(variables: &[VariableClass]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for variable in variables {
        let (name, at) = (variable.name.as_str(), format!("spec.variables[{}]", variable.name));
        let field = format!("{at}.name");
        let mut refuse = |detail: String| errors.push(FieldError::invalid(field.clone(), name.into(), detail));
        if !seen.insert(name) {
            refuse(format!(
                "variable name must be unique. Variable with name {} is defined more than once",
                quoted(name)
            ));
        }
        if name == BUILTIN {
            refuse(format!("{} is a reserved variable name", quoted(name)));
        }
        if name.contains('.') {
            refuse("variable name cannot contain \".\"".to_owned());
        }
        if name.is_empty() {
            errors.push(FieldError::required(field, "variable name must be defined"));
        }
        schema(
            &known(&variable.schema.open_api_v3_schema),
            &format!("{at}.schema.openAPIV3Schema"),
            &mut errors,
        );
    }
    errors
}

fn schema(raw: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let how = Reviewing {
        at,
        resource: false,
        status: false,
        known: false,
    };
    let found = windlass_cel::review(raw, &how);
    if found.is_empty() {
        samples(raw, at, errors);
    }
    errors.extend(found);
    metadata(raw, at, errors);
}

/// Checks the example and the values of the enumeration of each level.
fn samples(raw: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if let Ok(validator) = Validator::value(raw) {
        let example = raw.get("example").map(|value| (format!("{at}.example"), value));
        let listed = raw
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate();
        let listed = listed.map(|(index, value)| (format!("{at}.enum[{index}]"), value));
        for (at, value) in example.into_iter().chain(listed).filter(|(_, value)| !value.is_null()) {
            errors.extend(validator.validate_at(&at, value, None));
        }
    }
    below(raw, at, &mut |raw, at| samples(raw, at, errors));
}

/// Checks labels and annotations that a schema carries.
fn metadata(raw: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let carried = &raw["x-metadata"];
    check_labels(&carried["labels"], &format!("{at}.x-metadata.labels"), errors);
    check_annotations(&carried["annotations"], &format!("{at}.x-metadata.annotations"), errors);
    below(raw, at, &mut |raw, at| metadata(raw, at, errors));
}

/// Visits the schemas directly below one.
fn below(raw: &Value, at: &str, visit: &mut dyn FnMut(&Value, &str)) {
    for part in ["additionalProperties", "items"] {
        if raw[part].is_object() {
            visit(&raw[part], &format!("{at}.{part}"));
        }
    }
    for (name, property) in raw["properties"].as_object().into_iter().flatten() {
        visit(property, &format!("{at}.properties[{name}]"));
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read best as literals")]
mod tests {
    use serde_json::json;

    use super::*;

    fn defined() -> Vec<VariableStatus> {
        let one = |name: &str, required: bool, schema: Value| {
            json!({"name": name, "definitions": [
                {"from": "inline", "required": required, "schema": {"openAPIV3Schema": schema}},
            ]})
        };
        serde_json::from_value(json!([
            one("region", true, json!({"type": "string", "maxLength": 9})),
            one("type", false, json!({"type": "string", "default": "t3.large"})),
            one(
                "proxy",
                false,
                json!({"type": "object", "properties": {
                    "url": {"type": "string"}, "port": {"type": "integer", "default": 80},
                }})
            ),
        ]))
        .unwrap()
    }

    fn run(topology: Value) -> Result<Effective, Error> {
        effective("Cluster a/b", &serde_json::from_value(topology).unwrap(), &defined())
    }

    fn values(list: Value) -> Value {
        json!({"variables": list})
    }

    // TO-086, TO-087, TO-091, TO-106
    #[test]
    fn missing_values_are_defaulted() {
        let out = run(values(json!([
            {"name": "region", "value": "us-east-1"}, {"name": "proxy", "value": {"url": "x"}},
        ])))
        .unwrap();
        assert_eq!(out.global["type"], "t3.large");
        assert_eq!(out.global["proxy"], json!({"url": "x", "port": 80}));
        let out = run(json!({
            "variables": [{"name": "region", "value": "a"}],
            "workers": {"machineDeployments": [
                {"name": "md", "variables": {"overrides": [{"name": "proxy", "value": {}}]}},
            ]},
        }))
        .unwrap();
        assert!(!out.global.contains_key("proxy"));
        assert_eq!(
            out.worker("md"),
            &Values::from([("proxy".to_owned(), json!({"port": 80}))])
        );
        assert_eq!(out.worker("other"), &Values::new());
    }

    // TO-085, TO-094, TO-095, TO-096, TO-097, TO-105
    #[test]
    fn bad_values_are_refused_by_name() {
        let refuse = |topology: Value, field: &str, part: &str| {
            let error = run(topology).unwrap_err();
            assert!(error.field.contains(field) && error.message.contains(part), "{error}");
        };
        let at = "spec.topology.variables";
        refuse(values(json!([])), at, "required variable \"region\"");
        refuse(
            values(json!([{"name": "region", "value": 5}])),
            "spec.topology.variables[region].value",
            "Invalid value: \"5\": must be of type string: \"integer\"",
        );
        refuse(
            values(json!([{"name": "region", "value": "a"}, {"name": "proxy", "value": {"port": "x"}}])),
            "spec.topology.variables[proxy].value.port",
            "Invalid value: \"{\\\"port\\\":\\\"x\\\"}\"",
        );
        refuse(values(json!([{"name": "region", "value": "much-too-long"}])), at, "9");
        refuse(
            values(json!([{"name": "region", "value": "a"}, {"name": "x", "value": 1}])),
            at,
            "not defined",
        );
        refuse(
            values(json!([{"name": "region", "value": "a"}, {"name": "region", "value": "b"}])),
            at,
            "more than once",
        );
        refuse(
            values(json!([{"name": "region", "value": "a"}, {"name": "proxy", "value": {"no": 1}}])),
            "spec.topology.variables[proxy]",
            "no",
        );
        refuse(
            json!({
                "variables": [{"name": "region", "value": "a"}],
                "workers": {"machineDeployments": [
                    {"name": "md", "variables": {"overrides": [{"name": "type", "value": 1}]}},
                ]},
            }),
            "spec.topology.workers.machineDeployments[md].variables.overrides[type].value",
            "string",
        );
    }

    // TO-073, TO-077, TO-081
    #[test]
    fn bad_definitions_are_refused() {
        let count = |list: Value| check_class(&serde_json::from_value::<Vec<_>>(list).unwrap()).len();
        let schema = |s: Value| json!({"openAPIV3Schema": s});
        let string = || schema(json!({"type": "string"}));
        assert_eq!(count(json!([{"name": "a", "required": true, "schema": string()}])), 0);
        for name in ["", "builtin", "a.b"] {
            assert_eq!(count(json!([{"name": name, "schema": string()}])), 1, "{name}");
        }
        assert_eq!(
            count(json!([{"name": "a", "schema": string()}, {"name": "a", "schema": string()}])),
            1
        );
        assert_eq!(
            count(json!([{"name": "a", "schema": schema(json!({"type": "date"}))}])),
            1
        );
        let wrong = schema(json!({"type": "integer", "default": "x"}));
        assert!(count(json!([{"name": "a", "schema": wrong}])) >= 1);
    }
}
