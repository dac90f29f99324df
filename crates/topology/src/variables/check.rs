//! Values of variables, defaulted and checked against the schemas of the class.

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read best as literals")]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};
use windlass_cel::Validator;
use windlass_gocompat::quote::quoted;
use windlass_meta::beginning;
use windlass_meta::budget::{PATTERNS_COST, RULE_COST};
use windlass_schema::{FieldError, MOST_ERRORS, Patterns};

use super::keywords::{known, wrong_types};
use super::{BUILTIN, Values};
use crate::error::Error;
use crate::model::{Topology, VariableStatus, VariableValue};

/// The most bytes of a value in a message.
const LONGEST_SHOWN: usize = 1 << 10;

/// The most bytes of a name in a path. Schemas allow no longer names of worker sets and variables.
pub(super) const LONGEST_NAME: usize = 256;

/// Values after defaulting.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effective {
    /// For the whole Cluster.
    pub global: Values,
    /// For the control plane only.
    pub control_plane: Values,
    /// For single MachineDeployments.
    workers: BTreeMap<String, Values>,
    /// For single MachinePools.
    pools: BTreeMap<String, Values>,
    none: Values,
    /// The `spec.topology` with all defaults; none if it has them.
    pub completed: Option<Value>,
}

impl Effective {
    /// The values that only one MachineDeployment sees.
    pub fn worker(&self, name: &str) -> &Values {
        self.workers.get(name).unwrap_or(&self.none)
    }

    /// The values that only one MachinePool sees.
    pub fn pool(&self, name: &str) -> &Values {
        self.pools.get(name).unwrap_or(&self.none)
    }
}

/// One definition, ready for use.
#[derive(Debug)]
struct Definition {
    name: String,
    required: bool,
    default: Option<Value>,
    /// Checks values; or why none can be checked. A class may have been stored where its schemas were not compiled: what it cannot check is
    /// wrong, and all else goes on.
    validator: Result<Validator, String>,
}

/// The definitions of a class, in its order. The author of a Cluster chooses the number of values, and that of a class the number of
/// definitions, so neither is searched for each of the other.
#[derive(Debug)]
pub struct Definitions {
    all: Vec<Definition>,
    /// Their places by name.
    by_name: HashMap<String, usize>,
    /// What their regular expressions cost.
    patterns: u64,
}

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
        let (mut all, mut by_name, patterns) = (Vec::new(), HashMap::new(), Patterns::default());
        for variable in defined {
            let name = quoted(&variable.name);
            let Some(definition) = variable.definitions.first() else {
                return Err(format!("variable {name} has no definitions"));
            };
            if variable.definitions_conflict {
                return Err(format!("variable {name} has conflicting definitions"));
            }
            let written = &definition.schema.open_api_v3_schema;
            if let Some(wrong) = wrong_types(written, "schema").first() {
                return Err(format!("schema of variable {name} is not valid: {wrong}"));
            }
            let raw = &known(written);
            let validator = Validator::value_within(raw, &patterns);
            by_name.entry(variable.name.clone()).or_insert(all.len());
            all.push(Definition {
                name: variable.name.clone(),
                required: definition.required,
                default: raw.get("default").filter(|default| !default.is_null()).cloned(),
                validator: validator.map_err(|error| format!("schema of variable {name} is not valid: {error}")),
            });
        }
        let patterns = PATTERNS_COST.saturating_sub(patterns.left().unwrap_or_default());
        Ok(Self { all, by_name, patterns })
    }

    /// What their regular expressions cost, in the units of [`PATTERNS_COST`].
    pub(super) fn patterns(&self) -> u64 {
        self.patterns
    }

    fn get(&self, name: &str) -> Option<&Definition> {
        let place = self.by_name.get(name).filter(|_| name != BUILTIN)?;
        self.all.get(*place)
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
        let names: HashSet<&str> = given.iter().map(|variable| variable.name.as_str()).collect();
        let added = self
            .all
            .iter()
            .filter(|definition| !names.contains(definition.name.as_str()));
        for definition in added.filter(|_| list.is_global) {
            out.extend(definition.default.clone().map(|default| definition.completed(default)));
        }
        out
    }

    /// Checks values. `old` are those that are stored: rules may compare with them. `left` is what their rules may
    /// cost, and then what is left of it; nothing if they cost more. Values whose rules were not run are errors, too
    /// ([`is_unchecked`]).
    pub fn check(
        &self,
        values: &[VariableValue],
        old: &[VariableValue],
        list: List<'_>,
        left: &mut Option<u64>,
    ) -> Vec<FieldError> {
        let mut errors = repeated(values, list.at);
        if !errors.is_empty() {
            return errors;
        }
        let names: HashSet<&str> = values.iter().map(|variable| variable.name.as_str()).collect();
        for definition in &self.all {
            if list.is_global && definition.required && !names.contains(definition.name.as_str()) {
                let name = quoted(&definition.name);
                errors.push(FieldError::required(
                    list.at,
                    format!("required variable {name} must be set"),
                ));
            }
        }
        let old: HashMap<&str, &Value> = old.iter().map(|old| (old.name.as_str(), &old.value)).collect();
        for variable in values {
            if errors.len() >= MOST_ERRORS {
                break;
            }
            let Some(definition) = self.get(&variable.name) else {
                errors.push(undefined(variable, list.at));
                continue;
            };
            let old = old.get(variable.name.as_str()).copied();
            definition.check((&variable.value, old), list.at, left, &mut errors);
        }
        errors
    }
}

impl Definition {
    fn completed(&self, mut value: Value) -> VariableValue {
        // Kubernetes drops nulls of custom resources here. In variables they stay, and are good where their schema allows anything.
        if let Ok(validator) = &self.validator {
            windlass_schema::default_keeping_nulls(validator.schema(), &mut value);
        }
        VariableValue {
            name: self.name.clone(),
            value,
        }
    }

    fn check(
        &self,
        (value, old): (&Value, Option<&Value>),
        at: &str,
        left: &mut Option<u64>,
        errors: &mut Vec<FieldError>,
    ) {
        // Almost all values are good, and need neither.
        let (at, shown) = (|| format!("{at}[{}]", self.name), || shown(value));
        let validator = match &self.validator {
            Ok(validator) => validator,
            Err(why) => return errors.push(FieldError::invalid(format!("{}.value", at()), shown(), why.as_str())),
        };
        let unknown = windlass_schema::unknown_fields(validator.schema(), value);
        let found = validated(validator, value, old, left);
        if found.is_empty() && !unknown.is_empty() {
            let detail = format!(
                "failed validation: {} field(s) are not specified in the variable schema of variable {}",
                quoted(&unknown.join(",")),
                quoted(&self.name)
            );
            return errors.push(FieldError::invalid(at(), shown(), detail));
        }
        if found.is_empty() {
            return;
        }
        let (at, shown) = (format!("{}.value", at()), shown());
        for error in found {
            let path = below(&at, &error.path);
            let detail = error.detail.strip_prefix(" in body ").unwrap_or(&error.detail);
            errors.push(FieldError::new(path, error.kind, Some(shown.clone()), detail));
        }
    }
}

/// Everything wrong with a value: its shape, and what its rules say if that is good. Paths begin at the value.
pub(super) fn validated(
    validator: &Validator,
    value: &Value,
    old: Option<&Value>,
    left: &mut Option<u64>,
) -> Vec<FieldError> {
    let mut found = windlass_schema::validate_at(validator.schema(), "", value, None);
    if !found.is_empty() {
        return found;
    }
    match *left {
        Some(budget) => {
            let mut before = Vec::new();
            *left = validator.check_rest(value, old, budget, &mut found, &mut before);
            // What was wrong before is wrong: the class has changed since.
            found.extend(before);
        }
        // A value that was not checked is not good.
        None if validator.schema().root().has_rules() => {
            let detail = format!("was not checked: the rules of other values failed due to {SPENT}");
            found.push(FieldError::invalid("", Value::Null, detail));
        }
        None => {}
    }
    found
}

/// What the errors about a spent budget say.
const SPENT: &str = "running out of cost budget";

/// Whether an error says that rules cost too much, rather than that the value is wrong.
pub fn is_unchecked(error: &FieldError) -> bool {
    error.detail.contains(SPENT)
}

/// The path of a field below another one.
pub(super) fn below(at: &str, path: &str) -> String {
    match path.trim_start_matches('.') {
        // Rules about the value itself name no field.
        "" | "<nil>" => at.to_owned(),
        item if item.starts_with('[') => format!("{at}{item}"),
        field => format!("{at}.{field}"),
    }
}

/// A value in a message. There may be many messages about a long value.
fn shown(value: &Value) -> Value {
    beginning(&value.to_string(), LONGEST_SHOWN).into()
}

/// What the rules of all values of a write may cost together: as much as those of an object.
pub const BUDGET: Option<u64> = Some(RULE_COST);

fn repeated(values: &[VariableValue], at: &str) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    let again = values.iter().filter(|variable| !seen.insert(&variable.name));
    let error = |variable: &VariableValue| {
        let detail = format!("variable {} is set more than once", quoted(&variable.name));
        FieldError::invalid(format!("{at}[{}]", variable.name), shown(&variable.value), detail)
    };
    again.take(MOST_ERRORS).map(error).collect()
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
        // It is part of the path of each value.
        let name = beginning(name, LONGEST_NAME);
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

/// Writes the completed values of a place into a Cluster. Entries that are there keep other fields that they have.
pub fn write(cluster: &mut Value, place: &Place<'_>, values: &[VariableValue]) {
    if place.list().is_global
        && let Some(topology) = cluster.pointer_mut("/spec/topology").and_then(Value::as_object_mut)
        && !topology.get("variables").is_some_and(Value::is_array)
    {
        topology.insert("variables".to_owned(), json!([]));
    }
    let Some(list) = cluster.pointer_mut(&place.pointer).and_then(Value::as_array_mut) else {
        return;
    };
    for (index, value) in values.iter().enumerate() {
        match list.get_mut(index) {
            // An entry of another type violates the schema, which says so.
            Some(entry) => {
                if let Some(entry) = entry.as_object_mut() {
                    entry.insert("value".to_owned(), value.value.clone());
                }
            }
            None => list.push(json!({"name": value.name, "value": value.value})),
        }
    }
}

/// Defaults and checks all values of the topology of a Cluster, which is not changed. `about` names it in errors.
pub fn effective(
    about: &str,
    cluster: &Value,
    topology: &Topology,
    definitions: &Result<Definitions, String>,
) -> Result<Effective, Error> {
    let definitions = definitions
        .as_ref()
        .map_err(|why| Error::new(about, "spec.topology.classRef", why.as_str()))?;
    let (mut completed, mut stored) = (Vec::new(), None);
    let mut left = BUDGET;
    for place in places(topology) {
        let values = definitions.complete(place.values, place.list());
        let errors = definitions.check(&values, &[], place.list(), &mut left);
        if let Some(first) = errors.first() {
            let more = errors.iter().skip(1).map(|error| format!("; {error}"));
            return Err(Error::new(
                about,
                first.path.clone(),
                first.body() + &more.collect::<String>(),
            ));
        }
        if values != place.values {
            let stored = stored.get_or_insert_with(|| json!({"spec": {"topology": cluster["spec"]["topology"]}}));
            write(stored, &place, &values);
        }
        completed.push(super::values(&values));
    }
    let mut completed = completed.into_iter();
    let mut out = Effective {
        global: completed.next().unwrap_or_default(),
        control_plane: completed.next().unwrap_or_default(),
        completed: stored.map(|mut stored| stored["spec"]["topology"].take()),
        ..Effective::default()
    };
    for (entry, values) in topology.workers.machine_deployments.iter().zip(completed.by_ref()) {
        out.workers.insert(entry.name.clone(), values);
    }
    for (entry, values) in topology.workers.machine_pools.iter().zip(completed) {
        out.pools.insert(entry.name.clone(), values);
    }
    Ok(out)
}
