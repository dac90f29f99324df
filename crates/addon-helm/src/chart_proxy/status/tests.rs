//! One case for every reason of every condition.

#![allow(clippy::needless_pass_by_value, reason = "objects are made where they are passed")]

use serde_json::{Value, json};

use super::*;
use crate::chart_proxy::testing::World;

const AT: Timestamp = Timestamp::UNIX_EPOCH;

fn now(world: &World) -> HelmChartProxyStatus {
    let seen = world.seen();
    status(&seen, &world.plan(), &Done::default(), AT)
}

fn after(world: &World, failures: Vec<Failure>) -> HelmChartProxyStatus {
    let seen = world.seen();
    status(&seen, &world.plan(), &Done::from(failures), AT)
}

fn of<'a>(status: &'a HelmChartProxyStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = get(&status.conditions, type_).unwrap_or_else(|| panic!("no {type_} in {status:?}"));
    (&found.status, &found.reason, &found.message)
}

fn check_specs(world: &World, expect: (&str, &str, &str)) {
    let status = now(world);
    assert_eq!(of(&status, "HelmReleaseProxySpecsUpToDate"), expect);
    // AD-143: the whole is as bad as its parts, and its reason is that of the worst.
    if expect.0 == "False" {
        let ready = of(&status, "Ready");
        assert_eq!((ready.0, ready.1), ("False", expect.1));
    }
}

fn installed(n: usize) -> World {
    let mut world = World::new(n);
    let plan = world.plan();
    world.apply(&plan);
    world.settle();
    world
}

fn failed(cluster: Option<&str>, reason: &'static str, message: &str) -> Failure {
    Failure {
        cluster: cluster.map(str::to_owned),
        reason,
        message: message.to_owned(),
        may_pass: true,
    }
}

// T1, AD-064, AD-143
#[test]
fn without_clusters_all_is_well() {
    let status = now(&World::new(0));
    assert_eq!(serde_json::to_value(&status).unwrap()["matchingClusters"], json!([]));
    assert_eq!(of(&status, "HelmReleaseProxySpecsUpToDate"), ("True", "UpToDate", ""));
    assert_eq!(of(&status, "HelmReleaseProxiesReady"), ("True", "Ready", ""));
    assert_eq!(of(&status, "Ready"), ("True", "Ready", ""));
    assert!(get(&status.conditions, "HelmReleaseProxiesRolloutCompleted").is_none());
    assert_eq!(status.observed_generation, Some(1));
}

// AD-063, AD-064: by name, those that go or are paused included.
#[test]
fn the_chosen_clusters_are_named_in_order() {
    let mut world = World::new(3);
    world.cluster("c1", json!({"spec": {"paused": true}}));
    world.cluster("c0", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let matching = now(&world).matching_clusters.unwrap();
    let names: Vec<&str> = matching.iter().filter_map(|one| one.name.as_deref()).collect();
    assert_eq!(names, ["c0", "c1", "c2"]);
    let first = serde_json::to_value(&matching[0]).unwrap();
    assert_eq!(
        first,
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c0", "namespace": "ns"})
    );
}

// T3, AD-062: each condition is complete, and of the generation that it is about.
#[test]
fn all_is_ready_when_all_releases_are() {
    let status = now(&installed(2));
    let conditions = serde_json::to_value(&status.conditions).unwrap();
    assert_eq!(conditions.as_array().map(Vec::len), Some(3));
    for condition in conditions.as_array().into_iter().flatten() {
        for field in ["type", "status", "reason", "lastTransitionTime"] {
            assert!(
                condition[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field}: {condition}"
            );
        }
        assert_eq!(
            (&condition["message"], &condition["observedGeneration"]),
            (&json!(""), &json!(1))
        );
    }
    assert_eq!(of(&status, "HelmReleaseProxySpecsUpToDate"), ("True", "UpToDate", ""));
    assert_eq!(of(&status, "HelmReleaseProxiesReady"), ("True", "Ready", ""));
    assert_eq!(of(&status, "Ready"), ("True", "Ready", ""));
}

// AD-144: nothing is ready that was computed from what was before.
#[test]
fn what_was_just_written_is_not_ready() {
    let mut world = World::new(1);
    let line = "* Cluster c0: its HelmReleaseProxy has not been acted on yet";
    check_specs(&world, ("False", "HelmReleaseProxySpecsUpdating", line));
    assert_eq!(
        of(&now(&world), "HelmReleaseProxiesReady"),
        ("Unknown", "ReadyUnknown", line)
    );
    let plan = world.plan();
    world.apply(&plan);
    check_specs(&world, ("False", "HelmReleaseProxySpecsUpdating", line));
    world.settle();
    world.values("c0", "b: 2\n");
    // It was ready a moment ago.
    check_specs(&world, ("False", "HelmReleaseProxySpecsUpdating", line));
    assert_eq!(
        of(&now(&world), "HelmReleaseProxiesReady"),
        ("Unknown", "ReadyUnknown", line)
    );
    let plan = world.plan();
    world.apply(&plan);
    check_specs(&world, ("False", "HelmReleaseProxySpecsUpdating", line));
}

// AD-053: what was chosen before stays named.
#[test]
fn a_selector_that_cannot_be_read_is_reported() {
    let mut world = installed(1);
    let matching = now(&world).matching_clusters;
    world.proxy(json!({"status": {"matchingClusters": matching}}));
    let bad = json!({"matchExpressions": [{"key": "cni", "operator": "Near"}]});
    world.proxy(json!({"spec": {"clusterSelector": bad}}));
    let field = "spec.clusterSelector.matchExpressions[0].operator";
    let message = format!("* {field}: Invalid value: \"Near\": expected In, NotIn, Exists or DoesNotExist");
    check_specs(&world, ("False", "ClusterSelectionFailed", &message));
    assert_eq!(now(&world).matching_clusters, matching);
}

// AD-126, AD-086: the Clusters are named, and so is what is wrong.
#[test]
fn values_that_cannot_be_computed_are_reported() {
    let mut world = installed(3);
    world.fail("c1", "valuesTemplate line 1: .Cluster.spec.x is not set", false);
    let message = "* Cluster c1: valuesTemplate line 1: .Cluster.spec.x is not set";
    check_specs(&world, ("False", "ValueParsingFailed", message));
    assert_eq!(of(&now(&world), "HelmReleaseProxiesReady"), ("True", "Ready", ""));
    world.template = Some("valuesTemplate line 2: unclosed action".to_owned());
    check_specs(
        &world,
        (
            "False",
            "ValueParsingFailed",
            "* valuesTemplate line 2: unclosed action",
        ),
    );
}

// AD-086: one message for all Clusters that it concerns. The numbers of names and messages are limited.
#[test]
fn messages_are_bounded() {
    let mut world = World::new(200);
    for n in 0..200 {
        world.fail(&format!("c{n}"), "no", false);
    }
    check_specs(
        &world,
        (
            "False",
            "ValueParsingFailed",
            "* Clusters c0, c1, c10, c100, c101, ... (195 more): no",
        ),
    );
    for n in 0..200 {
        world.fail(&format!("c{n}"), &format!("no {n}"), false);
    }
    let status = now(&world);
    let (_, _, message) = of(&status, "HelmReleaseProxySpecsUpToDate");
    assert_eq!(message.lines().count(), 9);
    assert!(message.ends_with("And 192 more messages"), "{message}");
}

#[test]
fn writes_that_failed_are_reported() {
    let world = World::new(2);
    let check = |failures: Vec<Failure>, reason: &str, message: &str| {
        let status = after(&world, failures);
        let (is, because, what) = of(&status, "HelmReleaseProxySpecsUpToDate");
        assert_eq!((is, because), ("False", reason));
        assert_eq!(what.lines().next(), Some(message), "{what}");
    };
    let creation = failed(Some("c1"), reasons::HELM_RELEASE_PROXY_CREATION_FAILED, "refused");
    check(
        vec![creation.clone()],
        "HelmReleaseProxyCreationFailed",
        "* Cluster c1: refused",
    );
    let deletion = failed(Some("c0"), reasons::HELM_RELEASE_PROXY_DELETION_FAILED, "busy");
    check(
        vec![creation, deletion],
        "HelmReleaseProxyDeletionFailed",
        "* Cluster c0: busy",
    );
}

// AD-090
#[test]
fn a_reinstallation_is_reported() {
    let mut world = installed(2);
    world.proxy(json!({"spec": {"namespace": "kube-system"}}));
    let message = "* Clusters c0, c1: its release is uninstalled, to be installed again";
    check_specs(&world, ("False", "HelmReleaseProxyReinstalling", message));
    let plan = world.plan();
    world.apply(&plan);
    check_specs(&world, ("False", "HelmReleaseProxyReinstalling", message));
}

#[test]
fn releases_that_go_and_that_are_held_are_reported() {
    let mut world = installed(1);
    world.cluster("c0", json!({"metadata": {"labels": {"cni": null}}}));
    check_specs(
        &world,
        (
            "False",
            "HelmReleaseProxySpecsUpdating",
            "* Cluster c0: its release is uninstalled",
        ),
    );
    world.cluster("c0", json!({"spec": {"paused": true}}));
    check_specs(
        &world,
        (
            "False",
            "HelmReleaseProxySpecsUpdating",
            "* Cluster c0: nothing happens while it is paused",
        ),
    );
    world.cluster("c0", json!({"spec": {"paused": false}}));
    world.proxy(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    check_specs(
        &world,
        ("False", "Deleting", "* Cluster c0: its release is uninstalled"),
    );
}

/// A release that is not ready, with one of its two conditions in this state.
fn broken(type_: &str, reason: &str, message: &str) -> Value {
    let condition = |type_: &str, status: &str, reason: &str, message: &str| json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let other = if type_ == "ClusterAvailable" {
        "HelmReleaseReady"
    } else {
        "ClusterAvailable"
    };
    json!({"status": {"conditions": [
        condition(type_, "False", reason, message),
        condition(other, "True", "Fine", ""),
        condition("Ready", "False", "NotReady", "* something: else"),
    ]}})
}

// AD-143: the words of every release reach the HelmChartProxy, with the reason and its Cluster.
#[test]
fn every_reason_of_a_release_is_reported_with_its_cluster() {
    for (type_, reason) in [
        ("HelmReleaseReady", reasons::PREPARING_TO_HELM_INSTALL),
        ("HelmReleaseReady", reasons::HELM_RELEASE_PENDING),
        ("HelmReleaseReady", reasons::HELM_INSTALL_OR_UPGRADE_FAILED),
        ("HelmReleaseReady", reasons::HELM_RELEASE_GET_FAILED),
        ("HelmReleaseReady", reasons::HELM_RELEASE_DELETION_FAILED),
        ("HelmReleaseReady", reasons::HELM_RELEASE_DELETED),
        ("HelmReleaseReady", reasons::GET_CREDENTIALS_FAILED),
        ("HelmReleaseReady", reasons::GET_CA_CERTIFICATE_FAILED),
        ("ClusterAvailable", reasons::GET_CLUSTER_FAILED),
        ("ClusterAvailable", reasons::GET_KUBECONFIG_FAILED),
    ] {
        let mut world = installed(2);
        world.releases_of("c1", broken(type_, reason, "it says why"));
        let status = now(&world);
        let line = format!("* Cluster c1: {reason}: it says why");
        assert_eq!(
            of(&status, "HelmReleaseProxiesReady"),
            ("False", "NotReady", line.as_str())
        );
        assert_eq!(of(&status, "Ready").0, "False");
        assert_eq!(of(&status, "HelmReleaseProxySpecsUpToDate").0, "True");
    }
    // Without a message the reason alone is reported.
    let mut world = installed(1);
    world.releases_of("c0", broken("HelmReleaseReady", "HelmReleasePending", ""));
    assert_eq!(
        of(&now(&world), "HelmReleaseProxiesReady").2,
        "* Cluster c0: HelmReleasePending"
    );
}

#[test]
fn a_rollout_is_reported() {
    let mut world = World::new(3);
    world.proxy(json!({"spec": {"rollout": {"install": {"stepInit": 1}}}}));
    let status = now(&world);
    let message = "2 Clusters wait until those before are ready: c1, c2";
    let expect = ("False", "HelmReleaseProxiesRolloutNotComplete", message);
    assert_eq!(of(&status, "HelmReleaseProxiesRolloutCompleted"), expect);
    let mut world = installed(3);
    world.proxy(json!({"spec": {"rollout": {"install": {"stepInit": 1}}}}));
    let expect = ("True", "HelmReleaseProxiesRolloutCompleted", "");
    assert_eq!(of(&now(&world), "HelmReleaseProxiesRolloutCompleted"), expect);
}

// AD-064: the same state gives the same status, times included.
#[test]
fn a_second_look_changes_nothing() {
    let mut world = installed(2);
    let first = now(&world);
    world.proxy(json!({"status": first}));
    let seen = world.seen();
    let later = Timestamp::from_second(1_000).unwrap();
    assert_eq!(status(&seen, &world.plan(), &Done::default(), later), first);
}
