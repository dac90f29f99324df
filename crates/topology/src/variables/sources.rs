//! Definitions of variables from several sources: a class, and the extensions of its external patches.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Keywords that are the same when they are false and when they are not there.
const SWITCHES: [&str; 5] = [
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
];

/// The variables that one source defines, as `ClusterClass.spec.variables` has them.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// `inline`, or the name of the patch.
    pub from: &'a str,
    /// The variables.
    pub variables: &'a [Value],
}

/// The definitions of all sources, as `ClusterClass.status.variables` has them: by name, each with its definitions in the order of the
/// sources. Definitions of a variable that differ are in conflict, as in v1.14.
pub fn together(sources: &[Source<'_>]) -> Vec<Value> {
    let mut by_name: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for source in sources {
        for variable in source.variables {
            let name = variable["name"].as_str().unwrap_or_default();
            by_name.entry(name).or_default().push(definition(source.from, variable));
        }
    }
    let variables = by_name.into_iter().map(|(name, definitions)| {
        let first = compared(&definitions[0]);
        let conflict = definitions[1..].iter().any(|other| compared(other) != first);
        json!({"name": name, "definitionsConflict": conflict, "definitions": definitions})
    });
    variables.collect()
}

/// The names of the variables in conflict.
pub fn in_conflict(variables: &[Value]) -> Vec<&str> {
    let conflicts = variables.iter().filter(|one| one["definitionsConflict"] == true);
    conflicts.filter_map(|one| one["name"].as_str()).collect()
}

fn definition(from: &str, variable: &Value) -> Value {
    let mut definition = json!({
        "from": from,
        "required": variable["required"].as_bool().unwrap_or_default(),
        "schema": variable["schema"],
    });
    if let Some(metadata) = variable.get("deprecatedV1Beta1Metadata") {
        definition["deprecatedV1Beta1Metadata"] = metadata.clone();
    }
    definition
}

/// What has to be equal.
fn compared(definition: &Value) -> Value {
    let schema = &definition["schema"]["openAPIV3Schema"];
    json!([
        definition["required"],
        definition["deprecatedV1Beta1Metadata"],
        without_switches(schema)
    ])
}

/// A schema without switches that are off. Names of properties are no keywords.
fn without_switches(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let is_off = |name: &str, value: &Value| SWITCHES.contains(&name) && value == false;
    let kept = keywords.iter().filter(|(name, value)| !is_off(name, value));
    let below = |name: &str, value: &Value| match (name, value) {
        ("properties", Value::Object(all)) => {
            let all: Map<String, Value> = all.iter().map(|(n, one)| (n.clone(), without_switches(one))).collect();
            all.into()
        }
        ("items" | "additionalProperties" | "not", one) => without_switches(one),
        ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => all.iter().map(without_switches).collect(),
        (_, value) => value.clone(),
    };
    let kept: Map<String, Value> = kept.map(|(name, value)| (name.clone(), below(name, value))).collect();
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, required: bool, schema: &Value) -> Value {
        json!({"name": name, "required": required, "schema": {"openAPIV3Schema": schema}})
    }

    // TO-111: in the version from v1.8 on, in which definitions that differ make the class not ready.
    #[test]
    fn definitions_that_differ_are_in_conflict() {
        let text = || json!({"type": "string"});
        let same = |a: (bool, Value), b: (bool, Value)| {
            let (a, b) = ([variable("v", a.0, &a.1)], [variable("v", b.0, &b.1)]);
            let sources = [("inline", &a), ("p", &b)].map(|(from, variables)| Source { from, variables });
            in_conflict(&together(&sources)).is_empty()
        };
        assert!(same((true, text()), (true, text())));
        assert!(!same((true, text()), (false, text())));
        assert!(!same((true, text()), (true, json!({"type": "integer"}))));
        let switched = |off: bool| {
            let mut one = json!({"type": "array", "items": {"type": "object", "properties": {"uniqueItems": {"type": "boolean", "default": false}}}});
            if off {
                one["uniqueItems"] = false.into();
                one["items"]["x-kubernetes-preserve-unknown-fields"] = false.into();
                one["items"]["properties"]["uniqueItems"]["exclusiveMinimum"] = false.into();
            }
            one
        };
        assert!(same((false, switched(false)), (false, switched(true))));
        let mut other = switched(true);
        other["uniqueItems"] = true.into();
        assert!(!same((false, switched(false)), (false, other)));
        let mut other = switched(false);
        other["items"]["properties"]["uniqueItems"]["default"] = true.into();
        assert!(!same((false, switched(false)), (false, other)));
    }

    #[test]
    fn definitions_have_the_order_of_their_sources_and_variables_that_of_their_names() {
        let text = json!({"type": "string"});
        let mut carrying = variable("a", false, &text);
        carrying["deprecatedV1Beta1Metadata"] = json!({"labels": {"x": "y"}});
        let (inline, first, second) = (
            [variable("b", false, &text)],
            [carrying, variable("b", false, &text)],
            [json!({"name": "b", "schema": {"openAPIV3Schema": text}})],
        );
        let sources = [("inline", &inline[..]), ("z", &first[..]), ("c", &second[..])]
            .map(|(from, variables)| Source { from, variables });
        let all = together(&sources);
        assert_eq!(all.len(), 2);
        assert_eq!((&all[0]["name"], &all[1]["name"]), (&json!("a"), &json!("b")));
        assert_eq!(
            all[0]["definitions"][0]["deprecatedV1Beta1Metadata"]["labels"]["x"],
            "y"
        );
        let from: Vec<_> = all[1]["definitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["from"])
            .collect();
        assert_eq!(from, ["inline", "z", "c"]);
        assert_eq!(all[1]["definitions"][2]["required"], false);
        assert_eq!(all[1]["definitionsConflict"], false);
    }
}
