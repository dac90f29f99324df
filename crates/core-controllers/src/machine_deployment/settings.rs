//! What a MachineDeployment says, with what it leaves unsaid filled in.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass_api::core::{MachineDeployment, MachineDeploymentRollingUpdate};
use windlass_api::meta::MetaExt as _;
use windlass_meta::label_or_hash;

use crate::machine_set::default_replicas;
use crate::shared::keys::labels;
use crate::shared::numbers::{Round, resolve, written};

/// How old Machines are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// A few at a time.
    RollingUpdate,
    /// When the user deletes them.
    OnDelete,
}

pub(crate) fn replicas(deployment: &MachineDeployment) -> i32 {
    let written = deployment.spec.replicas;
    written.unwrap_or_else(|| default_replicas(&deployment.metadata, None))
}

pub(crate) fn strategy(deployment: &MachineDeployment) -> Strategy {
    let strategy = deployment
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.strategy.as_ref());
    match strategy.map(|strategy| strategy.type_.as_str()) {
        Some("OnDelete") => Strategy::OnDelete,
        _ => Strategy::RollingUpdate,
    }
}

fn rolling(deployment: &MachineDeployment) -> Option<&MachineDeploymentRollingUpdate> {
    let rollout = deployment.spec.rollout.as_ref()?;
    rollout.strategy.as_ref()?.rolling_update.as_ref()
}

/// Machines allowed above the replicas, and available ones allowed to be missing.
pub(crate) fn limits(deployment: &MachineDeployment) -> (i32, i32) {
    if strategy(deployment) == Strategy::OnDelete {
        return (0, 0);
    }
    let total = replicas(deployment);
    let rolling = rolling(deployment);
    let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
    let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let surge = surge
        .map_or(Some(1), |value| resolve(value, total, Round::Up))
        .unwrap_or(1)
        .max(0);
    let unavailable = unavailable.map_or(Some(0), |value| resolve(value, total, Round::Down));
    let unavailable = unavailable.unwrap_or(0).clamp(0, total.max(0));
    // Both zero would never move.
    if surge == 0 && unavailable == 0 {
        (0, 1)
    } else {
        (surge, unavailable)
    }
}

/// Whether a user allows neither a Machine more nor one less: none could be replaced. Percentages that come to zero are another matter.
pub(crate) fn immovable(deployment: &MachineDeployment) -> Option<String> {
    let rolling = rolling(deployment).filter(|_| strategy(deployment) == Strategy::RollingUpdate)?;
    let none = Some(&IntOrString::Int(0));
    (rolling.max_surge.as_ref() == none && rolling.max_unavailable.as_ref() == none).then(|| {
        "spec.rollout.strategy.rollingUpdate.maxSurge and maxUnavailable are both 0: set one of them to 1 or more"
            .to_owned()
    })
}

/// `maxUnavailable` as the user wrote it.
pub(crate) fn max_unavailable_text(deployment: &MachineDeployment) -> String {
    let value = rolling(deployment).and_then(|rolling| rolling.max_unavailable.as_ref());
    written(value.unwrap_or(&IntOrString::Int(0)))
}

fn selector_is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// The label that tells Machines apart when the user gave no selector, and the Cluster's.
fn mandatory_labels(deployment: &MachineDeployment) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    all.insert(labels::CLUSTER_NAME.to_owned(), deployment.spec.cluster_name.clone());
    if selector_is_empty(&deployment.spec.selector) {
        let value = label_or_hash(deployment.metadata.name());
        all.insert(labels::MACHINE_DEPLOYMENT_NAME.to_owned(), value);
    }
    all
}

/// The selector of the deployment's sets and Machines.
pub(crate) fn selector(deployment: &MachineDeployment) -> LabelSelector {
    let mut selector = deployment.spec.selector.clone();
    let wanted = selector.match_labels.get_or_insert_default();
    wanted.extend(mandatory_labels(deployment));
    selector
}

/// The labels of the deployment's Machines.
pub(crate) fn template_labels(deployment: &MachineDeployment) -> BTreeMap<String, String> {
    let template = deployment.spec.template.metadata.as_ref();
    let mut all = template.map(|meta| meta.labels.clone()).unwrap_or_default();
    all.extend(mandatory_labels(deployment));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(strategy: &str) -> MachineDeployment {
        serde_json::from_str(&format!(
            r#"{{"metadata":{{"name":"md","namespace":"ns"}},"spec":{{"clusterName":"c","replicas":10,"selector":{{}},
                "rollout":{{"strategy":{strategy}}},
                "template":{{"spec":{{"clusterName":"c","bootstrap":{{}},
                    "infrastructureRef":{{"apiGroup":"g","kind":"K","name":"n"}}}}}}}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        let percent = r#"{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"15%","maxUnavailable":"15%"}}"#;
        assert_eq!(limits(&deployment(percent)), (2, 1));
    }

    #[test]
    fn limits_have_defaults_that_can_move() {
        assert_eq!(limits(&deployment(r#"{"type":"RollingUpdate"}"#)), (1, 0));
        let stuck = r#"{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"0%","maxUnavailable":"5%"}}"#;
        assert_eq!(limits(&deployment(stuck)), (0, 1));
        assert_eq!(limits(&deployment(r#"{"type":"OnDelete"}"#)), (0, 0));
    }

    #[test]
    fn without_a_selector_the_name_selects() {
        let deployment = deployment(r#"{"type":"RollingUpdate"}"#);
        let want = [
            ("cluster.x-k8s.io/cluster-name", "c"),
            ("cluster.x-k8s.io/deployment-name", "md"),
        ];
        let want = want.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(selector(&deployment).match_labels, Some(want));
        assert_eq!(
            template_labels(&deployment),
            selector(&deployment).match_labels.unwrap()
        );
    }
}
