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
    /// Those that the Machine keeps there: the value of the annotation. None if its taints stay away from Nodes: then neither the annotation nor
    /// the taints that it lists change.
    pub(super) kept: Option<String>,
}

/// Computes the taints of a Node from those of its Machine, which have no effect without `of_machine`. The Node of a Machine of an
/// older revision has one more.
pub(super) fn wanted(node: &Node, of_machine: Option<&[MachineTaint]>, outdated: bool) -> Taints {
    let spec = node.spec.as_ref();
    let mut all = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
    all.retain(|taint| taint.key != UNINITIALIZED && (outdated || taint.key != OUTDATED));
    let kept = of_machine.map(|of_machine| propagate(node, of_machine, &mut all));
    if outdated && !all.iter().any(|taint| taint.key == OUTDATED) {
        all.push(Taint {
            key: OUTDATED.to_owned(),
            effect: "PreferNoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    Taints { all, kept }
}

/// Brings the taints of a Machine into those of its Node. Returns the value of the annotation.
fn propagate(node: &Node, of_machine: &[MachineTaint], all: &mut Vec<Taint>) -> String {
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
        put(all, taint);
    }
    let kept: BTreeSet<String> = of_machine
        .iter()
        .filter(|taint| is_kept(taint))
        .map(|taint| id(&taint.key, &taint.effect))
        .collect();
    kept.into_iter().collect::<Vec<_>>().join(",")
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
mod tests;
