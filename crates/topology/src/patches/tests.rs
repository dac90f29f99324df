//! The targets of patches.
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "cases read best as literals, one after another"
)]

use serde_json::json;

use super::*;

fn item(place: Place) -> Item {
    Item {
        place,
        holder: Holder::default(),
        api_version: "infra/v1".to_owned(),
        template: json!({
            "apiVersion": "infra/v1", "kind": "MT", "metadata": {"name": "t", "uid": "u"},
            "spec": {"template": {"spec": {"size": "s", "files": ["a"]}}, "other": 1},
        }),
        variables: Values::new(),
    }
}

fn values() -> Values {
    Values::from([
        ("size".to_owned(), json!("big")),
        ("tag".to_owned(), json!("1.10")),
        ("proxy".to_owned(), json!({"url": "http://x"})),
    ])
}

fn patches(list: Value) -> Vec<Patch> {
    serde_json::from_value(list).unwrap()
}

fn one(operations: Value) -> Vec<Patch> {
    patches(json!([{"name": "p", "definitions": [{
        "selector": {"apiVersion": "infra/v1", "kind": "MT", "matchResources": {"controlPlane": true}},
        "jsonPatches": operations,
    }]}]))
}

/// Applies inline patches, which the class defines all variables for.
fn applied(patches: &[Patch], items: &mut [Item]) -> Result<(), Error> {
    let values = values();
    let setting = Setting {
        class: "ClusterClass c",
        patches,
        definitions: &[],
        global: &values,
        answer: None,
    };
    apply(&setting, items, Budget::default()).map_err(|halt| match halt {
        Halt::Refused(error) => error,
        other => panic!("{other:?}"),
    })
}

fn check(operations: Value, expect: Value) {
    let mut items = [item(Place::ControlPlane)];
    applied(&one(operations.clone()), &mut items).unwrap();
    assert_eq!(items[0].template["spec"]["template"]["spec"], expect, "{operations}");
}

fn fails(operations: Value, part: &str) {
    let mut items = [item(Place::ControlPlane)];
    let error = applied(&one(operations), &mut items).unwrap_err();
    assert!(error.to_string().contains(part), "{error}");
    assert!(error.field.starts_with("spec.patches[0]"), "{error}");
}

// TO-132, TO-136, TO-138, TO-140, TO-144, TO-146, TO-147, TO-149
#[test]
fn operations_take_literals_variables_and_templates() {
    let at = "/spec/template/spec";
    check(
        json!([{"op": "replace", "path": format!("{at}/size"), "valueFrom": {"variable": "size"}}]),
        json!({"size": "big", "files": ["a"]}),
    );
    check(
        json!([{"op": "add", "path": format!("{at}/url"), "valueFrom": {"variable": "proxy.url"}}]),
        json!({"size": "s", "files": ["a"], "url": "http://x"}),
    );
    check(
        json!([{"op": "add", "path": format!("{at}/image"),
            "valueFrom": {"template": "tag: {{ .tag }}\nname: {{ .size | upper | quote }}"}}]),
        json!({"size": "s", "files": ["a"], "image": {"tag": 1.1, "name": "BIG"}}),
    );
    check(
        json!([{"op": "add", "path": format!("{at}/files/-"), "value": "z"},
            {"op": "add", "path": format!("{at}/files/0"), "value": "0"}]),
        json!({"size": "s", "files": ["0", "a", "z"]}),
    );
    check(
        json!([{"op": "remove", "path": format!("{at}/size")}]),
        json!({"files": ["a"]}),
    );
    check(
        json!([{"op": "add", "path": format!("{at}/a~1b"), "value": null}]),
        json!({"size": "s", "files": ["a"], "a/b": null}),
    );
}

// TO-124, TO-133, TO-136, TO-139, TO-143, TO-147, TO-164, TO-173
#[test]
fn failures_name_the_field() {
    let at = "/spec/template/spec";
    fails(json!([{"op": "move", "path": format!("{at}/x")}]), "not supported");
    fails(
        json!([{"op": "add", "path": "/status/x", "value": 1}]),
        "must start with",
    );
    fails(
        json!([{"op": "add", "path": format!("{at}/files/1"), "value": 1}]),
        "list element",
    );
    fails(
        json!([{"op": "remove", "path": format!("{at}/files/0")}]),
        "list element",
    );
    fails(
        json!([{"op": "add", "path": format!("{at}/x")}]),
        "neither value nor valueFrom",
    );
    fails(
        json!([{"op": "add", "path": format!("{at}/x"), "value": 1, "valueFrom": {"variable": "size"}}]),
        "both",
    );
    fails(
        json!([{"op": "add", "path": format!("{at}/x"), "valueFrom": {}}]),
        "exactly one",
    );
    fails(
        json!([{"op": "add", "path": format!("{at}/x"), "valueFrom": {"variable": "no"}}]),
        "no value",
    );
    fails(
        json!([{"op": "replace", "path": format!("{at}/nope"), "value": 1}]),
        "cannot change",
    );
    fails(
        json!([{"op": "add", "path": format!("{at}/no/x"), "value": 1}]),
        "cannot change",
    );
}

/// The habits of API servers (`replace` adds, indexes may be negative) are mistakes in a class.
#[test]
fn a_path_has_to_lead_somewhere() {
    let at = "/spec/template/spec";
    let refused = |op: &str, path: &str| {
        let path = format!("{at}/{path}");
        let text = format!(
            "patch \"p\" cannot change {path} of MT t: operation '/0' failed at path '{path}': path is invalid"
        );
        let mut operation = json!({"op": op, "path": path});
        if op != "remove" {
            operation["value"] = "v".into();
        }
        fails(json!([operation]), &text);
    };
    for path in ["nope", "nope/x", "size/x"] {
        refused("replace", path);
        refused("remove", path);
    }
    for path in [
        "nope/x",
        "size/x",
        "files/x",
        "files/-1",
        "files/00",
        "files/a~1b",
        "files/-1/x",
    ] {
        refused("add", path);
    }
    refused("remove", "files/-1");
    check(
        json!([{"op": "add", "path": format!("{at}/a~01"), "value": "v"},
            {"op": "replace", "path": format!("{at}/a~01"), "value": "w"}]),
        json!({"size": "s", "files": ["a"], "a~1": "w"}),
    );
}

#[test]
fn a_tilde_stands_before_0_or_1() {
    let refused = |path: &str, offset: usize| {
        fails(
            json!([{"op": "add", "path": path, "value": 1}]),
            &format!(
                "{path:?} is no JSON pointer: json pointer failed to parse; \
                 the first token in the partial-pointer starting at offset {offset} is malformed"
            ),
        );
    };
    refused("/spec/a~", 5);
    refused("/spec/~0~1/b~2/c~", 10);
    refused("/metadata/~", 9);
}

// TO-121, TO-125, TO-126, TO-128, TO-131
#[test]
fn selectors_pick_kind_and_place() {
    let count = |matched: Value, place: Place, enabled: Option<&str>| {
        let mut list = json!([{"name": "p", "definitions": [{
            "selector": {"apiVersion": "infra/v1", "kind": "MT", "matchResources": matched},
            "jsonPatches": [{"op": "add", "path": "/spec/template/spec/hit", "value": true}],
        }]}]);
        if let Some(enabled) = enabled {
            list[0]["enabledIf"] = enabled.into();
        }
        let mut items = [item(place)];
        applied(&patches(list), &mut items).unwrap();
        items[0].template.pointer("/spec/template/spec/hit").is_some()
    };
    let worker = || Place::MachineDeployment {
        class: "linux-worker".to_owned(),
    };
    let names = |n: &str| json!({"machineDeploymentClass": {"names": [n]}});
    // The text is read as YAML.
    for (text, enabled) in [
        ("True", true),
        ("yes # always", true),
        ("\"true\"", false),
        ("{{ if false }}x{{ end }}", false),
    ] {
        assert_eq!(
            count(json!({"controlPlane": true}), Place::ControlPlane, Some(text)),
            enabled,
            "{text}"
        );
    }
    assert!(count(json!({"controlPlane": true}), Place::ControlPlane, None));
    assert!(!count(json!({"controlPlane": true}), worker(), None));
    assert!(count(
        json!({"infrastructureCluster": true}),
        Place::InfrastructureCluster,
        None
    ));
    assert!(count(names("linux-worker"), worker(), None));
    assert!(count(names("linux-*"), worker(), None));
    assert!(count(names("*-worker"), worker(), None));
    assert!(count(names("*"), worker(), None));
    assert!(!count(names("windows-*"), worker(), None));
    assert!(count(names("*"), worker(), Some("{{ if .proxy }}true{{ end }}")));
    assert!(!count(names("*"), worker(), Some("{{ if .nope }}true{{ end }}")));
}

// TO-118
#[test]
fn later_patches_see_earlier_ones() {
    let at = "/spec/template/spec/x";
    check(
        json!([{"op": "add", "path": at, "value": 1}, {"op": "replace", "path": at, "value": 2}]),
        json!({"size": "s", "files": ["a"], "x": 2}),
    );
}

// TO-135: labels and annotations are taken over, nothing else outside spec.template.spec.
#[test]
fn only_spec_template_and_metadata_come_back() {
    let mut items = [item(Place::ControlPlane)];
    let list = one(json!([
        {"op": "add", "path": "/spec/other", "value": 2},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "add", "path": "/spec/template/metadata", "value": {"annotations": {"c": "d"}, "name": "x"}},
    ]));
    applied(&list, &mut items).unwrap();
    let template = &items[0].template;
    assert_eq!(template["spec"]["other"], 1);
    assert_eq!(template["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        template["spec"]["template"]["metadata"],
        json!({"annotations": {"c": "d"}})
    );
}

/// The author of a class chooses how many patches there are, and that of a Cluster how many templates they are applied to.
#[test]
fn all_patches_share_one_budget() {
    let rounds = "{{$l := until 1000}}{{range $l}}{{range $l}}{{end}}{{end}}true";
    let selector = json!({"apiVersion": "infra/v1", "kind": "MT", "matchResources": {"controlPlane": true}});
    let patch = |n: usize, condition: &str| {
        json!({"name": format!("p{n}"), "enabledIf": condition, "definitions": [{"selector": selector, "jsonPatches": [
            {"op": "add", "path": "/spec/template/spec/size", "valueFrom": {"template": "{{ .tag }}"}},
        ]}]})
    };
    let run = |list: Vec<Value>, items: usize| {
        let mut items = vec![item(Place::ControlPlane); items];
        let patches = patches(list.into());
        applied(&patches, &mut items)
    };
    let error = run((0..100).map(|n| patch(n, rounds)).collect(), 10).unwrap_err();
    assert!(error.field.ends_with(".enabledIf"), "{error}");
    assert!(
        error.message.starts_with("patches cost too much to render: patch \"p"),
        "{error}"
    );
    assert_eq!(
        run((0..100).map(|n| patch(n, "{{ if .tag }}true{{ end }}")).collect(), 20),
        Ok(())
    );
}

#[test]
fn a_template_whose_yaml_grows_by_aliases_is_refused() {
    let levels: Vec<String> = (1..10)
        .map(|n| format!("l{n}: &l{n} [{}]\n", vec![format!("*l{}", n - 1); 9].join(", ")))
        .collect();
    let template = format!("l0: &l0 [x]\n{}", levels.concat());
    fails(
        json!([{"op": "add", "path": "/spec/template/spec/size", "valueFrom": {"template": template}}]),
        "gives no valid YAML",
    );
}
