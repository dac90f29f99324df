//! Cases for the taints of Nodes.

#![allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]

use serde_json::{Value, json};

use super::*;

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node(taints: Value, kept: Option<&str>) -> Node {
    let annotations = kept.map_or(json!({}), |kept| json!({ annotations::TAINTS_FROM_MACHINE: kept }));
    from(json!({"metadata": {"name": "n", "annotations": annotations}, "spec": {"taints": taints}}))
}

/// Taints as `key=value:effect`.
fn texts(all: &[Taint]) -> Vec<String> {
    let text = |taint: &Taint| {
        format!(
            "{}={}:{}",
            taint.key,
            taint.value.clone().unwrap_or_default(),
            taint.effect
        )
    };
    all.iter().map(text).collect()
}

fn check(node: &Node, of_machine: Value, all: &[&str], kept: &str) {
    let of_machine: Vec<MachineTaint> = from(of_machine);
    let wanted = wanted(node, Some(&of_machine), false);
    assert_eq!(
        (texts(&wanted.all), wanted.kept.as_deref().unwrap()),
        (all.iter().map(|&text| text.to_owned()).collect(), kept)
    );
}

fn always(key: &str, value: &str) -> Value {
    json!({"key": key, "value": value, "effect": "NoSchedule", "propagation": "Always"})
}

fn once(key: &str) -> Value {
    json!({"key": key, "effect": "NoExecute", "propagation": "OnInitialization"})
}

#[test]
fn the_first_pass_sets_all_and_later_ones_only_those_that_are_kept() {
    let taints = || json!([always("a", "1"), once("b")]);
    check(
        &node(json!([]), None),
        taints(),
        &["a=1:NoSchedule", "b=:NoExecute"],
        "a:NoSchedule",
    );
    check(
        &node(json!([]), Some("")),
        taints(),
        &["a=1:NoSchedule"],
        "a:NoSchedule",
    );
}

#[test]
fn a_kept_taint_gets_its_value_back_where_it_is() {
    let have = json!([
        {"key": "a", "value": "0", "effect": "NoSchedule"}, {"key": "a", "value": "0", "effect": "NoExecute"},
        {"key": "other", "effect": "NoSchedule"},
    ]);
    let all = ["a=1:NoSchedule", "a=0:NoExecute", "other=:NoSchedule"];
    check(
        &node(have, Some("a:NoSchedule")),
        json!([always("a", "1")]),
        &all,
        "a:NoSchedule",
    );
}

#[test]
fn only_what_the_machine_kept_there_is_removed() {
    let have = json!([
        {"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"},
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
    ]);
    let rest = ["b=:NoExecute", "node-role.kubernetes.io/control-plane=:NoSchedule"];
    check(&node(have.clone(), Some("a:NoSchedule")), json!([]), &rest, "");
    // One that is set at the initialization from now on is not removed.
    let all = [
        "a=:NoSchedule",
        "b=:NoExecute",
        "node-role.kubernetes.io/control-plane=:NoSchedule",
    ];
    check(
        &node(have, Some("a:NoSchedule,b:NoExecute")),
        json!([always("a", ""), once("b")]),
        &all,
        "a:NoSchedule",
    );
}

#[test]
fn reserved_taints_are_neither_set_nor_removed() {
    let have = || json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]);
    let all = ["node.kubernetes.io/unreachable=:NoExecute"];
    check(
        &node(have(), Some("node.kubernetes.io/unreachable:NoExecute")),
        json!([]),
        &all,
        "",
    );
    for key in [
        "node.kubernetes.io/x",
        "node.cloudprovider.kubernetes.io/x",
        UNINITIALIZED,
        OUTDATED,
        "node-role.kubernetes.io/master",
    ] {
        check(&node(have(), None), json!([always(key, "")]), &all, "");
    }
    let out = "node.kubernetes.io/out-of-service";
    check(
        &node(json!([]), None),
        json!([always(out, "")]),
        &[&format!("{out}=:NoSchedule")],
        &format!("{out}:NoSchedule"),
    );
}

#[test]
fn the_taints_of_cluster_api_come_and_go_by_key() {
    let have = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
    assert_eq!(
        texts(&wanted(&node(have, None), Some(&[]), true).all),
        [format!("{OUTDATED}=:PreferNoSchedule")]
    );
    let have = json!([{"key": OUTDATED, "effect": "PreferNoSchedule"}]);
    assert!(wanted(&node(have, None), Some(&[]), false).all.is_empty());
}

/// The feature gate MachineTaintPropagation is off.
#[test]
fn without_propagation_only_the_taints_of_cluster_api_change() {
    let mut have = node(
        json!([{"key": "mine", "effect": "NoSchedule"}, {"key": UNINITIALIZED, "effect": "NoSchedule"}]),
        None,
    );
    have.metadata.annotations = Some(std::collections::BTreeMap::from([(
        annotations::TAINTS_FROM_MACHINE.to_owned(),
        "mine:NoSchedule".to_owned(),
    )]));
    let wanted = wanted(&have, None, true);
    let keys: Vec<&str> = wanted.all.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!((keys.as_slice(), wanted.kept), (["mine", OUTDATED].as_slice(), None));
}
