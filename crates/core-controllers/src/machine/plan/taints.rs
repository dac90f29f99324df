//! The taints of a Machine's Node (`propagateMachineTaintsToNode` in Cluster API): those of `spec.taints`, and the two that belong to
//! Cluster API. All others stay as they are.
//!
//! An annotation of the Node lists the taints that its Machine keeps there, by key and effect. A taint that left `spec.taints` is removed
//! only if it is in this list. Its presence also says that the taints of the initialization were set.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Taint;
use windlass_api::annotations;
use windlass_api::core::MachineTaint;
use windlass_api::k8s::Node;
use windlass_api::values::{
    NODE_OUTDATED_REVISION_TAINT as OUTDATED, NODE_UNINITIALIZED_TAINT as UNINITIALIZED, TAINT_PROPAGATION_ALWAYS,
};

/// The taints that a Node should have.
pub(super) struct Taints {
    /// All of them, in the order of the Node.
    pub(super) all: Vec<Taint>,
    /// Those that the Machine keeps there: the value of the annotation.
    pub(super) kept: String,
}

/// Computes the taints of a Node from those of its Machine. The Node of a Machine of an older revision has one more.
pub(super) fn wanted(node: &Node, of_machine: &[MachineTaint], outdated: bool) -> Taints {
    let spec = node.spec.as_ref();
    let mut all = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
    all.retain(|taint| taint.key != UNINITIALIZED && (outdated || taint.key != OUTDATED));
    let annotations = node.metadata.annotations.as_ref();
    let before = annotations.and_then(|all| all.get(annotations::TAINTS_FROM_MACHINE));
    let of_machine: Vec<&MachineTaint> = of_machine.iter().filter(|taint| !is_reserved(&taint.key)).collect();
    let is_kept = |taint: &MachineTaint| taint.propagation == TAINT_PROPAGATION_ALWAYS;
    let named: BTreeSet<String> = of_machine.iter().map(|taint| id(&taint.key, &taint.effect)).collect();
    let lost: BTreeSet<&str> = before
        .into_iter()
        .flat_map(|list| list.split(','))
        .filter(|id| !named.contains(*id))
        .collect();
    all.retain(|taint| is_reserved(&taint.key) || !lost.contains(id(&taint.key, &taint.effect).as_str()));
    for taint in of_machine.iter().filter(|taint| is_kept(taint) || before.is_none()) {
        put(&mut all, taint);
    }
    if outdated && !all.iter().any(|taint| taint.key == OUTDATED) {
        all.push(Taint {
            key: OUTDATED.to_owned(),
            effect: "PreferNoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    let kept: BTreeSet<String> = of_machine
        .iter()
        .filter(|taint| is_kept(taint))
        .map(|taint| id(&taint.key, &taint.effect))
        .collect();
    Taints {
        all,
        kept: kept.into_iter().collect::<Vec<_>>().join(","),
    }
}

/// Key and effect tell taints of a Node apart.
fn id(key: &str, effect: &str) -> String {
    format!("{key}:{effect}")
}

/// Adds a taint, or gives the one with this key and effect its value.
fn put(all: &mut Vec<Taint>, taint: &MachineTaint) {
    let want = Taint {
        key: taint.key.clone(),
        effect: taint.effect.clone(),
        value: taint.value.clone(),
        time_added: None,
    };
    let same = |have: &&mut Taint| have.key == want.key && have.effect == want.effect;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    match all.iter_mut().find(same) {
        Some(have) if text(&have.value) == text(&want.value) => {}
        Some(have) => *have = want,
        None => all.push(want),
    }
}

/// Whether a taint belongs to Cluster API, kubelet or a cloud provider: admission of v1.14 refuses it in `spec.taints`.
fn is_reserved(key: &str) -> bool {
    let of_node = key.starts_with("node.kubernetes.io/") && key != "node.kubernetes.io/out-of-service";
    of_node
        || key.starts_with("node.cloudprovider.kubernetes.io/")
        || [UNINITIALIZED, OUTDATED, "node-role.kubernetes.io/master"].contains(&key)
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
mod tests {
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
        let wanted = wanted(node, &of_machine, false);
        assert_eq!(
            (texts(&wanted.all), wanted.kept.as_str()),
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
            texts(&wanted(&node(have, None), &[], true).all),
            [format!("{OUTDATED}=:PreferNoSchedule")]
        );
        let have = json!([{"key": OUTDATED, "effect": "PreferNoSchedule"}]);
        assert!(wanted(&node(have, None), &[], false).all.is_empty());
    }
}
