//! Which Pods of a Node have to go before its machine may: pure classification, and the words for what is still there.
//!
//! Pods of an existing DaemonSet and mirror Pods stay; `cluster.x-k8s.io/drain: skip` and `wait-completed` on a Pod decide
//! before anything else; whatever else runs is evicted.

use windlass_api::k8s::Pod;
use windlass_api::owner;

/// The annotation that the kubelet puts on the API object of a static Pod.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The label by which a Pod says how draining treats it.
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";
/// How many Pods a message names before it counts the rest.
const NAMED: usize = 3;

/// What draining does with the Pods of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draining {
    /// To evict now, as (namespace, name).
    pub(crate) evict: Vec<(String, String)>,
    /// Asked to go, still there.
    pub(crate) terminating: Vec<String>,
    /// To be waited for until they complete.
    pub(crate) completing: Vec<String>,
}

impl Draining {
    /// Whether nothing is left that has to go.
    pub(crate) fn is_done(&self) -> bool {
        self.evict.is_empty() && self.terminating.is_empty() && self.completing.is_empty()
    }

    /// What is still there, for the Deleting condition.
    pub(crate) fn message(&self) -> String {
        let evicting: Vec<String> = self
            .evict
            .iter()
            .map(|(namespace, name)| format!("{namespace}/{name}"))
            .collect();
        [
            (
                "deletionTimestamp set, but still not removed from the Node",
                &self.terminating,
            ),
            ("waiting for completion", &self.completing),
            ("eviction requested", &evicting),
        ]
        .into_iter()
        .filter(|(_, pods)| !pods.is_empty())
        .map(|(what, pods)| format!("* {}: {what}", named(pods)))
        .collect::<Vec<_>>()
        .join("\n")
    }
}

fn named(pods: &[String]) -> String {
    let noun = if pods.len() == 1 { "Pod" } else { "Pods" };
    format!("{noun} {}", windlass_conditions::listed(pods, NAMED))
}

/// Sorts the Pods on a Node. `unreachable` says that the kubelet does not answer: Pods already asked to go are not waited for.
pub(crate) fn classify(pods: &[Pod], unreachable: bool) -> Draining {
    let mut draining = Draining::default();
    for pod in pods {
        let metadata = &pod.metadata;
        let labels = metadata.labels.as_ref();
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let name = metadata.name.clone().unwrap_or_default();
        let label = labels
            .and_then(|l| l.get(DRAIN_LABEL))
            .map(|value| value.to_lowercase());
        let completed = pod
            .status
            .as_ref()
            .and_then(|s| s.phase.as_deref())
            .is_some_and(|p| p == "Succeeded" || p == "Failed");
        let mirror = metadata.annotations.as_ref().is_some_and(|a| a.contains_key(MIRROR));
        if mirror || label.as_deref() == Some("skip") {
            continue;
        }
        if metadata.deletion_timestamp.is_some() {
            if !unreachable {
                draining.terminating.push(format!("{namespace}/{name}"));
            }
        } else if label.as_deref() == Some("wait-completed") {
            if !completed {
                draining.completing.push(format!("{namespace}/{name}"));
            }
        } else if completed || !is_daemon(pod) {
            draining.evict.push((namespace, name));
        }
    }
    draining
}

fn is_daemon(pod: &Pod) -> bool {
    owner::controller_of(&pod.metadata).is_some_and(|owner| owner.kind == "DaemonSet")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(json: serde_json::Value) -> Pod {
        serde_json::from_value(json).unwrap()
    }

    fn check(json: serde_json::Value, expect: &str) {
        let draining = classify(&[pod(json)], false);
        let got = if draining.is_done() {
            String::new()
        } else {
            draining.message()
        };
        assert_eq!(got, expect);
    }

    #[test]
    fn ordinary_pods_are_evicted_and_named() {
        check(
            serde_json::json!({"metadata": {"namespace": "a", "name": "p"}}),
            "* Pod a/p: eviction requested",
        );
    }

    #[test]
    fn daemons_mirrors_and_skipped_pods_stay() {
        for metadata in [
            serde_json::json!({"name": "p", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]}),
            serde_json::json!({"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}),
            serde_json::json!({"name": "p", "labels": {"cluster.x-k8s.io/drain": "Skip"}}),
        ] {
            check(serde_json::json!({"metadata": metadata}), "");
        }
    }

    #[test]
    fn a_terminating_pod_is_waited_for_unless_its_kubelet_is_silent() {
        let json = serde_json::json!({"metadata": {"namespace": "a", "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        check(
            json.clone(),
            "* Pod a/p: deletionTimestamp set, but still not removed from the Node",
        );
        assert!(classify(&[pod(json)], true).is_done());
    }

    #[test]
    fn long_lists_are_counted() {
        let draining = Draining {
            completing: ["a/1", "a/2", "a/3", "a/4", "a/5"].map(str::to_owned).to_vec(),
            ..Draining::default()
        };
        assert_eq!(
            draining.message(),
            "* Pods a/1, a/2, a/3, ... (2 more): waiting for completion"
        );
    }
}
