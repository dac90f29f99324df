//! Cases for the sorting of Pods, and for the words.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-03-01T10:00:00Z";

mod by_rule;

fn sets(names: &[&str]) -> Seen<BTreeSet<ObjectKey>> {
    Seen::Found(names.iter().map(|name| ObjectKey::new("a", *name)).collect())
}

fn sorted(pods: Value, daemon_sets: &Seen<BTreeSet<ObjectKey>>, unreachable: bool) -> Result<Draining, String> {
    let pods: Vec<Pod> = serde_json::from_value(pods).unwrap();
    let now: Timestamp = NOW.parse().unwrap();
    let beside = Beside {
        daemon_sets,
        rules: &Rules::default(),
        namespaces: &Seen::NotFound,
        unreachable,
    };
    classify(&pods, &beside, &Moment::at(now))
}

fn check(pod: Value, expect: &[&str]) {
    let draining = sorted(json!([pod]), &sets(&["d"]), false).unwrap();
    assert_eq!(draining.lines(&Evictions::default()), expect);
    assert_eq!(draining.is_done(), expect.is_empty());
}

const TERMINATING: &str = "* Pod a/p: deletionTimestamp set, but still not removed from the Node";
const COMPLETING: &str = "* Pod a/p: waiting for completion";

fn of_daemon_set(name: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "u", "controller": true}])
}

fn pod(metadata: Value, phase: &str) -> Value {
    let mut pod = json!({"metadata": metadata, "status": {"phase": phase}});
    pod["metadata"]["namespace"] = json!("a");
    pod["metadata"]["name"] = json!("p");
    pod
}

#[test]
fn ordinary_pods_are_evicted() {
    for phase in ["Running", "Succeeded", "Failed"] {
        check(pod(json!({}), phase), &[TERMINATING]);
    }
}

#[test]
fn daemons_mirrors_and_skipped_pods_stay_also_while_they_end() {
    for mut metadata in [
        json!({"ownerReferences": of_daemon_set("d")}),
        json!({"annotations": {"kubernetes.io/config.mirror": "x"}}),
        json!({"labels": {"cluster.x-k8s.io/drain": "Skip"}}),
    ] {
        check(pod(metadata.clone(), "Running"), &[]);
        metadata["deletionTimestamp"] = json!(NOW);
        check(pod(metadata, "Running"), &[]);
    }
}

#[test]
fn pods_of_a_lost_daemon_set_and_finished_ones_are_evicted() {
    check(
        pod(json!({"ownerReferences": of_daemon_set("gone")}), "Running"),
        &[TERMINATING],
    );
    check(
        pod(json!({"ownerReferences": of_daemon_set("d")}), "Succeeded"),
        &[TERMINATING],
    );
    let unknown = Seen::Failed("timeout".to_owned());
    let daemon = pod(json!({"ownerReferences": of_daemon_set("d")}), "Running");
    assert!(sorted(json!([daemon]), &unknown, false).is_err());
}

#[test]
fn a_pod_that_asks_for_it_is_waited_for_until_it_completes() {
    for value in ["wait-completed", "WaitCompleted"] {
        let metadata = json!({"labels": {"cluster.x-k8s.io/drain": value}});
        check(pod(metadata.clone(), "Running"), &[COMPLETING]);
        check(pod(metadata, "Succeeded"), &[]);
    }
    // A DaemonSet decides before the label.
    let metadata =
        json!({"labels": {"cluster.x-k8s.io/drain": "wait-completed"}, "ownerReferences": of_daemon_set("d")});
    check(pod(metadata, "Running"), &[]);
}

#[test]
fn a_silent_kubelet_is_not_waited_for() {
    let sorted = |ended: &str| {
        let pod = pod(json!({"deletionTimestamp": ended}), "Running");
        sorted(json!([pod]), &sets(&[]), true).unwrap()
    };
    assert!(!sorted("2026-03-01T09:59:59Z").is_done());
    assert!(sorted("2026-03-01T09:59:58Z").is_done());
    assert_eq!(sorted(NOW).grace_period, Some(1));
}

#[test]
fn claims_of_pods_that_stay_are_kept() {
    let mut skipped = pod(json!({"labels": {"cluster.x-k8s.io/drain": "skip"}}), "Running");
    skipped["spec"] = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}]});
    let mut other = skipped.clone();
    other["metadata"]["labels"] = json!({});
    let draining = sorted(json!([skipped]), &sets(&[]), false).unwrap();
    assert_eq!(draining.kept_claims, [ObjectKey::new("a", "data")].into());
    let draining = sorted(json!([other]), &sets(&[]), false).unwrap();
    assert!(draining.kept_claims.is_empty());
}

#[test]
fn refusals_are_grouped_by_their_reason() {
    let names =
        |names: &[&str]| -> BTreeSet<ObjectKey> { names.iter().map(|name| ObjectKey::new("a", *name)).collect() };
    let refused = |code, message: &str, cause: (&str, &str)| {
        Err(RequestError::Refused {
            code,
            reason: String::new(),
            message: message.to_owned(),
            causes: vec![windlass_controller_runtime::Cause {
                reason: cause.0.to_owned(),
                message: cause.1.to_owned(),
            }],
        })
    };
    let draining = Draining {
        evict: names(&["1", "2", "3", "4", "5", "6"]),
        terminating: names(&["0"]),
        completing: names(&["7"]),
        ..Draining::default()
    };
    let mut evictions = Evictions::default();
    let budget = |name: &str| format!("The disruption budget {name} needs 20 healthy pods and has 20 currently");
    for pod in ["1", "2"] {
        let answer = refused(429, OVER_BUDGET.0, ("DisruptionBudget", &budget("web")));
        evictions.add(&ObjectKey::new("a", pod), answer);
    }
    evictions.add(
        &ObjectKey::new("a", "3"),
        refused(403, "it is being terminated", ("NamespaceTerminating", "x")),
    );
    evictions.add(&ObjectKey::new("a", "4"), refused(404, "not found", ("", "")));
    evictions.add(&ObjectKey::new("a", "5"), Ok(()));
    evictions.add(
        &ObjectKey::new("a", "6"),
        Err(RequestError::Transport("broken".to_owned())),
    );
    assert_eq!(
        draining.lines(&evictions),
        [
            "* Pods a/0, a/5: deletionTimestamp set, but still not removed from the Node",
            "* Pods a/1, a/2: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 20 healthy pods and has 20 currently",
            "* Pod a/3: failed to evict Pod, Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)",
            "* Pod a/6: failed to evict Pod, broken",
            "* Pod a/7: waiting for completion",
        ]
    );
}

#[test]
fn long_lists_are_counted() {
    let many = |count: usize| (0..count).map(|number| ObjectKey::new("a", number.to_string()));
    let draining = Draining {
        completing: many(5).collect(),
        evict: many(7).collect(),
        ..Draining::default()
    };
    let mut evictions = Evictions::default();
    for pod in many(7) {
        evictions.refuse(&pod, format!("reason {}", pod.name));
    }
    let lines = draining.lines(&evictions);
    assert_eq!(lines[0], "* Pod a/0: failed to evict Pod, reason 0");
    assert_eq!(
        &lines[5..],
        [
            "* 2 Pods with other issues",
            "* Pods a/0, a/1, a/2, ... (2 more): waiting for completion"
        ]
    );
}
