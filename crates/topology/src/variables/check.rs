//! Values of variables, defaulted and checked against the schemas of the class.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cel::Validator;

use super::{BUILTIN, Values};
use crate::error::Error;
use crate::model::{Topology, VariableClass, VariableStatus, VariableValue};

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
struct Definition {
    required: bool,
    default: Option<Value>,
    validator: Validator,
}

/// Defaults and checks all values of a topology. Nothing is written into the user's fields.
pub fn effective(cluster: &str, topology: &Topology, defined: &[VariableStatus]) -> Result<Effective, Error> {
    let definitions = definitions(cluster, defined)?;
    let at = "spec.topology.variables";
    let mut out = Effective {
        global: values(cluster, at, &topology.variables, &definitions)?,
        ..Effective::default()
    };
    for (name, definition) in &definitions {
        if !out.global.contains_key(name)
            && let Some(default) = &definition.default
        {
            let value = completed(cluster, at, name, default.clone(), definition)?;
            out.global.insert(name.clone(), value);
        }
        if definition.required && !out.global.contains_key(name) {
            let message = format!("required variable {name:?} has no value");
            return Err(Error::new(cluster, at, message));
        }
    }
    let overrides = &topology.control_plane.variables.overrides;
    let at = "spec.topology.controlPlane.variables.overrides";
    out.control_plane = values(cluster, at, overrides, &definitions)?;
    for (index, entry) in topology.workers.machine_deployments.iter().enumerate() {
        let at = format!("spec.topology.workers.machineDeployments[{index}].variables.overrides");
        let values = values(cluster, &at, &entry.variables.overrides, &definitions)?;
        out.workers.insert(entry.name.clone(), values);
    }
    Ok(out)
}

fn definitions(cluster: &str, defined: &[VariableStatus]) -> Result<BTreeMap<String, Definition>, Error> {
    let mut out = BTreeMap::new();
    for variable in defined {
        let refuse = |message: String| Err(Error::new(cluster, "spec.topology.classRef", message));
        if variable.definitions_conflict {
            return refuse(format!(
                "variable {:?} of the class has conflicting definitions",
                variable.name
            ));
        }
        let Some(definition) = variable.definitions.first() else {
            continue;
        };
        let raw = &definition.schema.open_api_v3_schema;
        let validator = match Validator::value(raw) {
            Ok(validator) => validator,
            Err(e) => return refuse(format!("schema of variable {:?} is not valid: {e}", variable.name)),
        };
        out.insert(
            variable.name.clone(),
            Definition {
                required: definition.required,
                default: raw.get("default").cloned(),
                validator,
            },
        );
    }
    Ok(out)
}

fn values(
    cluster: &str,
    at: &str,
    given: &[VariableValue],
    definitions: &BTreeMap<String, Definition>,
) -> Result<Values, Error> {
    let mut out = Values::new();
    let mut seen = BTreeSet::new();
    for variable in given {
        let name = &variable.name;
        if !seen.insert(name) {
            return Err(Error::new(
                cluster,
                at,
                format!("variable {name:?} is given more than once"),
            ));
        }
        let Some(definition) = definitions.get(name).filter(|_| name != BUILTIN) else {
            let message = format!("variable {name:?} is not defined by the ClusterClass");
            return Err(Error::new(cluster, at, message));
        };
        let value = match (&variable.value, &definition.default) {
            (Value::Null, Some(default)) => default.clone(),
            (value, _) => value.clone(),
        };
        out.insert(name.clone(), completed(cluster, at, name, value, definition)?);
    }
    Ok(out)
}

/// Fills in nested defaults and checks the result.
fn completed(cluster: &str, at: &str, name: &str, mut value: Value, definition: &Definition) -> Result<Value, Error> {
    let field = format!("{at}[{name}].value");
    let schema = definition.validator.schema();
    let unknown = windlass_schema::unknown_fields(schema, &value);
    if !unknown.is_empty() {
        let message = format!("has fields that its schema does not know: {}", unknown.join(", "));
        return Err(Error::new(cluster, field, message));
    }
    windlass_schema::default(schema, &mut value);
    let faults = definition.validator.validate(&value, None);
    if faults.is_empty() {
        return Ok(value);
    }
    let faults: Vec<String> = faults.iter().map(told).collect();
    Err(Error::new(cluster, field, faults.join("; ")))
}

/// A fault within a value: where, unless it is the value itself, and what.
fn told(fault: &windlass_schema::FieldError) -> String {
    let body = fault.body();
    match fault.path.trim_start_matches('.') {
        // The validator's words begin with the path, which is empty.
        "" => body.replace(":  in body must", ": must"),
        path => format!("{path}: {body}"),
    }
}

/// Checks the inline variables of a class: names, schemas, and that defaults fit their schema.
pub fn check_class(class: &str, variables: &[VariableClass]) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, variable) in variables.iter().enumerate() {
        let at = format!("spec.variables[{index}]");
        let name = variable.name.as_str();
        let mut refuse = |field: &str, message: String| {
            errors.push(Error::new(class, format!("{at}.{field}"), message));
        };
        match name {
            "" => refuse("name", "must not be empty".into()),
            BUILTIN => refuse("name", format!("{BUILTIN:?} is reserved")),
            _ if name.contains('.') => refuse("name", format!("{name:?} must not contain \".\"")),
            _ if !seen.insert(name) => refuse("name", format!("{name:?} is defined more than once")),
            _ => {}
        }
        let raw = &variable.schema.open_api_v3_schema;
        match Validator::value(raw) {
            Err(e) => refuse("schema.openAPIV3Schema", e.to_string()),
            Ok(validator) => {
                for part in ["default", "example"] {
                    let Some(value) = raw.get(part) else { continue };
                    for fault in validator.validate(value, None) {
                        refuse(&format!("schema.openAPIV3Schema.{part}"), fault.to_string());
                    }
                }
            }
        }
    }
    errors
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
            "Invalid value: \"integer\": must be of type string: \"integer\"",
        );
        refuse(
            values(json!([{"name": "region", "value": "a"}, {"name": "proxy", "value": {"port": "x"}}])),
            "spec.topology.variables[proxy].value",
            "port: Invalid value",
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
            "spec.topology.workers.machineDeployments[0].variables.overrides",
            "string",
        );
    }

    // TO-073, TO-077, TO-081
    #[test]
    fn bad_definitions_are_refused() {
        let count =
            |list: Value| check_class("ClusterClass a/b", &serde_json::from_value::<Vec<_>>(list).unwrap()).len();
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
