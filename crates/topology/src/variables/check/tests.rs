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
    let cluster = json!({"spec": {"topology": topology}});
    effective(
        "Cluster a/b",
        &cluster,
        &serde_json::from_value(topology).unwrap(),
        &Definitions::of(&defined()),
    )
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

/// In values of Helm, for example, a null says something.
#[test]
fn nulls_stay_where_anything_is_allowed() {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "string"}, "d": {"type": "string", "default": "x"}},
        "additionalProperties": null, "x-kubernetes-preserve-unknown-fields": true,
    });
    let defined = json!([{"name": "v", "definitions": [{"from": "inline", "schema": {"openAPIV3Schema": schema}}]}]);
    let definitions = Definitions::of(&serde_json::from_value::<Vec<_>>(defined).unwrap()).unwrap();
    let list = List {
        at: "spec.overrides",
        is_global: false,
    };
    let completed = |value: Value| {
        let value = VariableValue {
            name: "v".to_owned(),
            value,
        };
        let completed = definitions.complete(&[value], list);
        let errors = definitions.check(&completed, &[], list, &mut BUDGET.clone());
        (completed[0].value.clone(), errors.len())
    };
    assert_eq!(
        completed(json!({"replicas": null, "d": null})),
        (json!({"replicas": null, "d": "x"}), 0)
    );
    assert_eq!(completed(json!({"n": null})).1, 1);
}

/// A class of another implementation may have a pattern that it never compiled.
#[test]
fn a_schema_that_cannot_be_read_is_wrong_for_its_own_values_only() {
    let of = |pattern: &str| json!({"type": "string", "pattern": pattern, "default": "d"});
    let definition = |name: &str, pattern: &str| json!({"name": name, "definitions": [{"from": "inline", "schema": {"openAPIV3Schema": of(pattern)}}]});
    let defined = json!([definition("bad", "^(?!a)"), definition("good", "^[\\w-.]+$")]);
    let definitions = Definitions::of(&serde_json::from_value::<Vec<_>>(defined).unwrap()).unwrap();
    let list = List {
        at: "spec.topology.variables",
        is_global: false,
    };
    let check = |name: &str, value: &str| {
        let values = [VariableValue {
            name: name.to_owned(),
            value: value.into(),
        }];
        let completed = definitions.complete(&values, list);
        let errors = definitions.check(&completed, &[], list, &mut BUDGET.clone());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(check("good", "a-b.c"), [""; 0]);
    assert_eq!(check("good", "a,b").len(), 1);
    let errors = check("bad", "x");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with("spec.topology.variables[bad].value: Invalid value")
            && errors[0].contains("invalid or unsupported Perl syntax: `(?!`"),
        "{errors:?}"
    );
}

/// The author of a class chooses what its rules cost, and its users how many values there are.
#[test]
fn the_rules_of_all_values_share_one_budget() {
    let numbers = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
    let rule = format!("{numbers}.all(a, {numbers}.all(b, self + a + b > 0))");
    let schema = json!({"type": "integer", "x-kubernetes-validations": [{"rule": rule}]});
    let defined = json!([{"name": "n", "definitions": [{"from": "inline", "schema": {"openAPIV3Schema": schema}}]}]);
    let definitions = Definitions::of(&serde_json::from_value::<Vec<_>>(defined).unwrap()).unwrap();
    let list = List {
        at: "spec.overrides",
        is_global: false,
    };
    let value = [VariableValue {
        name: "n".to_owned(),
        value: json!(1),
    }];
    let mut left = BUDGET;
    assert_eq!(definitions.check(&value, &[], list, &mut left), []);
    let cost = RULE_COST - left.unwrap();
    // Enough for two and a half.
    let mut left = Some(cost * 5 / 2);
    assert_eq!(definitions.check(&value, &[], list, &mut left), []);
    assert_eq!(definitions.check(&value, &[], list, &mut left), []);
    let errors = definitions.check(&value, &[], list, &mut left);
    assert!(errors.len() == 1 && is_unchecked(&errors[0]), "{errors:?}");
    assert_eq!(left, None);
    // What is not checked may be anything, but for its shape.
    let errors = definitions.check(&value, &[], list, &mut left);
    assert!(errors.len() == 1 && is_unchecked(&errors[0]), "{errors:?}");
    let wrong = [VariableValue {
        name: "n".to_owned(),
        value: json!("x"),
    }];
    let errors = definitions.check(&wrong, &[], list, &mut left);
    assert!(errors.len() == 1 && !is_unchecked(&errors[0]), "{errors:?}");
}
