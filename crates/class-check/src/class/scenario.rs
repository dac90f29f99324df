//! The Clusters with which the patches of a class are tried.
//!
//! First a Cluster with the defaults alone, then one with all variables set, then some with other values of all of them, for the versions that the
//! class allows or compares with, and one for each other value of a variable: so most conditions are tried both ways.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use windlass_topology::keys::CORE_API_VERSION;
use windlass_topology::model::{ClassSpec, VariableStatus, VariableValue, text};
use windlass_topology::variables::check::{BUDGET, Definitions, List};

use super::example::{Example, examples, is_empty};
use super::usage::texts;

/// The most Clusters that are tried, and the most of them for a class with many patches.
const MOST: usize = 64;
const MOST_OF_MANY: usize = 12;
/// So many patches are many.
const MANY: usize = 100;
/// The most versions that are tried.
const MOST_VERSIONS: usize = 12;
/// The version of Clusters of a class that names none.
const VERSION: &str = "v1.36.0";

/// Values for all variables of a class.
pub(super) struct Values {
    /// Of each variable, in the order of the class.
    of: Vec<(String, bool, Vec<Example>)>,
}

/// Chooses the value of a variable, which may be required, among its examples.
type Pick<'a> = &'a dyn Fn(bool, &[Example]) -> Option<Example>;

/// A Cluster to try.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// Its values, without those that are defaults.
    pub(super) values: BTreeMap<String, Value>,
    /// Its version.
    pub(super) version: String,
    /// Whether some values are made up.
    pub(super) is_made_up: bool,
}

impl Values {
    /// Values for the variables of a class that are good. `status` has their definitions.
    pub(super) fn of(spec: &ClassSpec, status: &[VariableStatus]) -> Self {
        let literals = literals(spec);
        let of = spec.variables.iter().filter_map(|variable| {
            let status = status.iter().find(|status| status.name == variable.name)?;
            let definitions = Definitions::of(std::slice::from_ref(status)).ok()?;
            let schema = &variable.schema.open_api_v3_schema;
            let mut all = examples(schema);
            if schema["type"] == "string" && schema["enum"].is_null() {
                // What conditions compare with.
                all.extend(literals.iter().map(|text| Example {
                    value: text.as_str().into(),
                    is_made_up: false,
                }));
            }
            all.retain(|example| is_allowed(&definitions, &variable.name, &example.value));
            Some((variable.name.clone(), variable.required, all))
        });
        Self { of: of.collect() }
    }

    /// The variables that have no value to try.
    pub(super) fn without_any(&self) -> impl Iterator<Item = (&str, bool)> {
        let none = self.of.iter().filter(|(.., examples)| examples.is_empty());
        none.map(|(name, required, _)| (name.as_str(), *required))
    }

    /// The Clusters to try, and whether all values are among them. None if a variable that each must have has no value.
    pub(super) fn scenarios(&self, spec: &ClassSpec) -> (Vec<Scenario>, bool) {
        if self.without_any().any(|(_, required)| required) {
            return (Vec::new(), true);
        }
        let versions = versions(spec);
        let newest = versions.first().cloned().unwrap_or_else(|| VERSION.to_owned());
        let with = |picks: Pick<'_>| {
            let (mut values, mut is_made_up) = (BTreeMap::new(), false);
            for (name, required, examples) in &self.of {
                if let Some(example) = picks(*required, examples) {
                    is_made_up |= example.is_made_up;
                    values.insert(name.clone(), example.value);
                }
            }
            Scenario {
                values,
                version: newest.clone(),
                is_made_up,
            }
        };
        let first = |examples: &[Example]| examples.first().cloned();
        let good = |examples: &[Example]| {
            let named = |e: &&Example| !e.is_made_up;
            let full = examples.iter().filter(named).find(|e| !is_empty(&e.value));
            full.or_else(|| examples.iter().find(named)).cloned()
        };
        let full = |examples: &[Example]| {
            examples
                .iter()
                .find(|e| !is_empty(&e.value))
                .or(examples.first())
                .cloned()
        };
        let mut out = vec![
            with(&|required, examples| first(examples).filter(|_| required)),
            with(&|required, examples| good(examples).or_else(|| first(examples).filter(|_| required))),
            with(&|_, examples| good(examples).or_else(|| full(examples))),
            with(&|_, examples| full(examples)),
        ];
        let (defaults, all) = (out[0].clone(), out[2].clone());
        // Each value of each variable, of all variables at once.
        let longest = self
            .of
            .iter()
            .map(|(.., examples)| examples.len())
            .max()
            .unwrap_or_default();
        for number in 0..longest {
            out.push(with(&|_, examples| {
                let clean: Vec<&Example> = examples.iter().filter(|e| !e.is_made_up).collect();
                let nth = number.checked_rem(clean.len()).and_then(|n| clean.get(n));
                nth.map_or_else(|| first(examples), |example| Some((*example).clone()))
            }));
        }
        for version in versions.iter().skip(1) {
            for base in [&defaults, &all] {
                out.push(Scenario {
                    version: version.clone(),
                    ..base.clone()
                });
            }
        }
        let each = self
            .of
            .iter()
            .flat_map(|(name, _, examples)| examples.iter().map(move |example| (name, example)));
        // Of many, only as many are made as can be tried.
        for (name, example) in each.take(4 * MOST) {
            for base in [&defaults, &all] {
                let mut scenario = base.clone();
                scenario.is_made_up |= example.is_made_up;
                scenario.values.insert(name.clone(), example.value.clone());
                out.push(scenario);
            }
        }
        let mut seen = BTreeSet::new();
        out.retain(|scenario| seen.insert((scenario.says(), scenario.version.clone())));
        // Those without made-up values first: what they show is sure.
        out.sort_by_key(|scenario| scenario.is_made_up);
        let most = if spec.patches.len() > MANY { MOST_OF_MANY } else { MOST };
        let are_all = out.len() <= most;
        out.truncate(most);
        (out, are_all)
    }
}

fn is_allowed(definitions: &Definitions, name: &str, value: &Value) -> bool {
    let list = List {
        at: "values",
        is_global: true,
    };
    let given = [VariableValue {
        name: name.to_owned(),
        value: value.clone(),
    }];
    let values = definitions.complete(&given, list);
    definitions.check(&values, &[], list, &mut { BUDGET }).is_empty()
}

/// The texts in quotes in conditions.
fn literals(spec: &ClassSpec) -> BTreeSet<String> {
    const MOST: usize = 16;
    let mut out = BTreeSet::new();
    for (index, patch) in spec.patches.iter().enumerate() {
        for text in texts(index, patch)
            .iter()
            .filter(|text| text.field.ends_with("enabledIf"))
        {
            let text = text.template.text();
            for part in text
                .split('"')
                .skip(1)
                .step_by(2)
                .chain(text.split('`').skip(1).step_by(2))
            {
                if out.len() < MOST && part != "true" && !part.is_empty() {
                    out.insert(part.to_owned());
                }
            }
        }
    }
    out
}

/// The versions to try, the one of most trials first: those that the class allows, and those beside which conditions compare with.
fn versions(spec: &ClassSpec) -> Vec<String> {
    let mut out: Vec<String> = spec.kubernetes_versions.iter().rev().cloned().collect();
    if out.is_empty() {
        out.push(VERSION.to_owned());
        for (index, patch) in spec.patches.iter().enumerate() {
            for text in texts(index, patch) {
                let text = text.template.text();
                let compared = if text.contains("ersion") {
                    compared(text)
                } else {
                    Vec::new()
                };
                for (major, minor) in compared {
                    let before = minor.saturating_sub(1);
                    let after = minor.saturating_add(1);
                    out.extend([before, minor, after].map(|minor| format!("v{major}.{minor}.0")));
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    out.retain(|version| seen.insert(version.clone()));
    out.truncate(MOST_VERSIONS);
    out
}

/// Major and minor numbers of the versions in a text.
fn compared(text: &str) -> Vec<(u32, u32)> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let version = words.filter_map(|word| {
        let mut numbers = word.split('.');
        let version = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        (version.0 == 1).then_some(version)
    });
    version.collect()
}

impl Scenario {
    /// Its values and its version, for messages; empty for defaults alone.
    pub(super) fn says(&self) -> String {
        let shown = |(name, value): (&String, &Value)| {
            let value = value.to_string();
            format!("{name}={}", windlass_meta::beginning(&value, 80))
        };
        let values: Vec<String> = self.values.iter().map(shown).collect();
        values.join(", ")
    }

    /// The Cluster: with one worker set of each class.
    pub(super) fn cluster(&self, class: &Value, spec: &ClassSpec) -> Value {
        let namespace = text(class, "/metadata/namespace");
        let variables = self.values.iter();
        let variables: Vec<Value> = variables
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let set = |(number, class): (usize, &str), prefix: &str| json!({"class": class, "name": format!("{prefix}-{number}"), "replicas": 1});
        let (sets, pools) = (&spec.workers.machine_deployments, &spec.workers.machine_pools);
        let sets = sets.iter().map(|set| set.class.as_str()).enumerate();
        let pools = pools.iter().map(|pool| pool.class.as_str()).enumerate();
        let mut workers = Map::new();
        workers.insert(
            "machineDeployments".to_owned(),
            sets.map(|one| set(one, "md")).collect(),
        );
        workers.insert("machinePools".to_owned(), pools.map(|one| set(one, "mp")).collect());
        json!({
            "apiVersion": CORE_API_VERSION,
            "kind": "Cluster",
            "metadata": {"name": "example", "namespace": namespace, "uid": "00000000-0000-0000-0000-000000000000"},
            "spec": {
                "clusterNetwork": {
                    "services": {"cidrBlocks": ["10.128.0.0/12"]},
                    "pods": {"cidrBlocks": ["192.168.0.0/16"]},
                    "serviceDomain": "cluster.local",
                },
                "topology": {
                    "classRef": {"name": text(class, "/metadata/name"), "namespace": namespace},
                    "version": self.version,
                    "controlPlane": {"replicas": 3},
                    "workers": workers,
                    "variables": variables,
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> ClassSpec {
        serde_json::from_value(value).unwrap()
    }

    fn values(spec: &ClassSpec) -> Values {
        let status: Vec<VariableStatus> = spec
            .variables
            .iter()
            .map(|v| {
                let definition = json!({"from": "inline", "required": v.required,
                    "schema": {"openAPIV3Schema": v.schema.open_api_v3_schema}});
                serde_json::from_value(json!({"name": v.name, "definitions": [definition]})).unwrap()
            })
            .collect();
        Values::of(spec, &status)
    }

    #[test]
    fn conditions_are_tried_both_ways() {
        let spec = spec(json!({
            "variables": [
                {"name": "a", "required": true, "schema": {"openAPIV3Schema": {"type": "boolean"}}},
                {"name": "b", "schema": {"openAPIV3Schema": {"type": "string", "default": ""}}},
            ],
            "patches": [{"name": "p", "enabledIf": "{{ and .a (eq .b \"cilium\") (semverCompare \">= 1.33.1\" .builtin.controlPlane.version) }}"}],
        }));
        let scenarios = values(&spec).scenarios(&spec).0;
        let has = |a: bool, b: Option<&str>| {
            scenarios
                .iter()
                .any(|s| s.values["a"] == a && s.values.get("b") == b.map(Value::from).as_ref())
        };
        assert!(has(true, None) && has(false, None) && has(true, Some("cilium")));
        let versions: BTreeSet<&str> = scenarios.iter().map(|s| s.version.as_str()).collect();
        assert_eq!(Vec::from_iter(versions), ["v1.32.0", "v1.33.0", "v1.34.0", "v1.36.0"]);
        assert!(!scenarios[0].is_made_up && scenarios.is_sorted_by_key(|s| s.is_made_up));
    }

    #[test]
    fn a_required_variable_without_any_value_leaves_nothing_to_try() {
        let spec = spec(json!({"variables": [
            {"name": "a", "required": true, "schema": {"openAPIV3Schema": {"type": "string", "pattern": "^impossible$"}}},
        ]}));
        let values = values(&spec);
        assert_eq!(values.without_any().collect::<Vec<_>>(), [("a", true)]);
        assert!(values.scenarios(&spec).0.is_empty());
    }
}
