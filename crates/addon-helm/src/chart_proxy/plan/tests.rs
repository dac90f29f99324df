//! What is planned for which state of affairs.

#![allow(clippy::needless_pass_by_value, reason = "objects are made where they are passed")]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chart_proxy::testing::{World, merge};

/// Each action in a word, with its Cluster.
fn words(plan: &Plan) -> Vec<String> {
    let word = |action: &Action| match action {
        Action::Create(release) => format!("create {}", release.spec.cluster_name()),
        Action::Patch { cluster, .. } => format!("patch {cluster}"),
        Action::Delete { release, .. } => format!("delete {}", release.spec.cluster_name()),
        Action::RemoveFinalizer => "release".to_owned(),
    };
    plan.actions.iter().map(word).collect()
}

fn check(world: &World, expect: &[&str]) -> Plan {
    let plan = world.plan();
    assert_eq!(words(&plan), expect, "{plan:?}");
    plan
}

/// A world where everything that was wanted is installed.
fn settled(n_clusters: usize) -> World {
    let mut world = World::new(n_clusters);
    settle(&mut world);
    world
}

fn settle(world: &mut World) {
    for _ in 0..50 {
        world.settle();
        let plan = world.plan();
        if plan.actions.is_empty() {
            return;
        }
        world.apply(&plan);
    }
    panic!("it does not come to rest: {:?}", world.plan());
}

// AD-083, AD-066; T1, T2
#[test]
fn every_chosen_cluster_gets_one() {
    check(&World::new(0), &[]);
    let mut world = World::new(2);
    world.cluster("other", json!({"metadata": {"labels": {"cni": "cilium"}}}));
    // AD-106: one whose API server does not answer yet gets its HelmReleaseProxy at once.
    world.cluster("c1", json!({"status": null}));
    let plan = check(&world, &["create c0", "create c1"]);
    world.apply(&plan);
    check(&world, &[]);
}

// AD-084; T4, T5, T6
#[test]
fn only_what_has_changed_is_written() {
    let mut world = settled(3);
    check(&world, &[]);
    world.values("c1", "a: 2\n");
    check(&world, &["patch c1"]);
    world.proxy(json!({"spec": {"version": "1.2.3"}}));
    check(&world, &["patch c0", "patch c1", "patch c2"]);
    settle(&mut world);
    check(&world, &[]);
}

// AD-085, AD-105, AD-054; T9
#[test]
fn what_is_no_longer_chosen_goes() {
    let mut world = settled(2);
    world.cluster("c0", json!({"metadata": {"labels": {"cni": null}}}));
    let plan = check(&world, &["delete c0"]);
    assert_eq!(plan.leaving, ["c0"]);
    world.apply(&plan);
    assert_eq!(check(&world, &[]).leaving, ["c0"]);
    // On again before it is gone: it goes first, and comes again.
    world.cluster("c0", json!({"metadata": {"labels": {"cni": "calico"}}}));
    assert_eq!(check(&world, &[]).reinstalling, ["c0"]);
    world.settle();
    check(&world, &["create c0"]);
}

// AD-053: a selector that cannot be read changes nothing.
#[test]
fn nothing_goes_because_of_a_bad_selector() {
    let mut world = settled(2);
    let bad = json!({"matchExpressions": [{"key": "cni", "operator": "Near"}]});
    world.proxy(json!({"spec": {"clusterSelector": bad}}));
    world.cluster("c0", json!({"metadata": {"labels": {"cni": null}}}));
    let plan = check(&world, &[]);
    assert_eq!(
        (plan.failures[0].reason, plan.failures.len()),
        (reasons::CLUSTER_SELECTION_FAILED, 1)
    );
    assert!(
        plan.failures[0]
            .message
            .contains("spec.clusterSelector.matchExpressions[0].operator"),
        "{plan:?}"
    );
}

// AD-086, AD-126; T14
#[test]
fn one_cluster_without_values_keeps_no_other_waiting() {
    let mut world = World::new(3);
    world.fail("c1", "line 1: nothing", false);
    let plan = check(&world, &["create c0", "create c2"]);
    let expect = Failure {
        cluster: Some("c1".to_owned()),
        reason: reasons::VALUE_PARSING_FAILED,
        message: "line 1: nothing".to_owned(),
        may_pass: false,
    };
    assert_eq!(plan.failures, [expect]);
    // What is installed keeps its last good values.
    let mut world = settled(2);
    world.fail("c0", "line 1: nothing", true);
    world.values("c1", "b: 1\n");
    check(&world, &["patch c1"]);
}

// AD-126: a template that cannot be read is reported also without a Cluster, and once.
#[test]
fn a_bad_template_installs_nothing_and_uninstalls_nothing() {
    let mut world = settled(2);
    world.template = Some("line 1: unclosed".to_owned());
    world.cluster("new", json!({}));
    let plan = check(&world, &[]);
    assert_eq!(
        (plan.failures.len(), plan.failures[0].reason),
        (1, reasons::VALUE_PARSING_FAILED)
    );
    world.cluster("c0", json!({"metadata": {"labels": {"cni": null}}}));
    check(&world, &["delete c0"]);
}

// AD-114: nothing is installed from a bad repository, whether a webhook has seen it or not; what was installed stays.
#[test]
fn what_admission_would_refuse_is_not_acted_on() {
    let mut world = settled(1);
    world.proxy(json!({"spec": {"repoURL": "file:///charts"}}));
    world.values.insert("c0".to_owned(), Values::NotNeeded);
    let plan = check(&world, &[]);
    assert_eq!(plan.failures[0].reason, reasons::HELM_RELEASE_PROXY_CREATION_FAILED);
    assert!(
        plan.failures[0].message.starts_with("spec.repoURL: Invalid value"),
        "{plan:?}"
    );
}

// AD-068: more than one for a Cluster is an error that changes nothing.
#[test]
fn two_for_one_cluster_are_left_alone() {
    let mut world = settled(2);
    world.double("c0", "by-hand");
    world.proxy(json!({"spec": {"version": "2.0.0"}}));
    let plan = check(&world, &["patch c1"]);
    assert_eq!(plan.failures[0].cluster.as_deref(), Some("c0"));
    assert!(
        plan.failures[0]
            .message
            .contains("delete all but one of by-hand, tigera-operator-c0-"),
        "{plan:?}"
    );
    // Once one of them goes, the other one is it.
    let release = world.releases.get_mut("by-hand").unwrap();
    release["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    check(&world, &["patch c0", "patch c1"]);
}

// AD-090, AD-084; T8
#[test]
fn another_release_comes_when_the_old_one_is_gone() {
    let mut world = settled(1);
    world.proxy(json!({"spec": {"namespace": "kube-system"}}));
    let plan = check(&world, &["delete c0"]);
    assert_eq!(plan.reinstalling, ["c0"]);
    world.apply(&plan);
    assert_eq!(check(&world, &[]).reinstalling, ["c0"]);
    world.settle();
    let plan = check(&world, &["create c0"]);
    let Action::Create(release) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(release.spec.namespace.as_deref(), Some("kube-system"));
}

// AD-048, AD-066; T11
#[test]
fn what_is_changed_or_deleted_by_hand_comes_back() {
    let mut world = settled(1);
    world.releases_of("c0", json!({"spec": {"values": "mine: 1\n", "version": "9.9.9"}}));
    check(&world, &["patch c0"]);
    let mut world = settled(1);
    world.releases_of("c0", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(check(&world, &[]).reinstalling, ["c0"]);
    world.settle();
    check(&world, &["create c0"]);
}

// AD-137: labels come back.
#[test]
fn labels_come_back() {
    let mut world = settled(1);
    world.releases_of(
        "c0",
        json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": null}}}),
    );
    let plan = check(&world, &["patch c0"]);
    let Action::Patch { patch, .. } = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert!(patch.get("spec").is_none(), "{patch}");
}

// AD-092
#[test]
fn nothing_happens_for_a_paused_cluster() {
    let mut world = settled(2);
    for (name, change) in [
        ("c0", json!({"spec": {"paused": true}})),
        (
            "c1",
            json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}),
        ),
    ] {
        world.cluster(name, change);
    }
    world.cluster("new", json!({"spec": {"paused": true}}));
    world.proxy(json!({"spec": {"version": "2.0.0"}}));
    assert_eq!(check(&world, &[]).held, ["new"]);
    world.cluster("c0", json!({"metadata": {"labels": {"cni": null}}}));
    assert_eq!(check(&world, &[]).held, ["c0", "new"]);
    world.proxy(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(check(&world, &[]).held, ["c0", "c1"]);
    for name in ["c0", "c1", "new"] {
        world.cluster(
            name,
            json!({"spec": {"paused": null}, "metadata": {"annotations": null}}),
        );
    }
    check(&world, &["delete c0", "delete c1"]);
}

// AD-045; T12
#[test]
fn a_cluster_that_goes_is_left_alone_until_it_is_gone() {
    let mut world = settled(1);
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.cluster("c0", going.clone());
    world.cluster("new", going);
    world.proxy(json!({"spec": {"version": "2.0.0"}}));
    check(&world, &[]);
    world.clusters.clear();
    check(&world, &["delete c0"]);
}

// Features 470 and 481
#[test]
fn what_was_installed_once_stays_as_it_is() {
    let mut world = World::new(1);
    world.proxy(json!({"spec": {"reconcileStrategy": "InstallOnce"}}));
    settle(&mut world);
    // Until it is installed it follows.
    world.values("c0", "b: 2\n");
    check(&world, &["patch c0"]);
    settle(&mut world);
    let installed = "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
    world.releases_of("c0", json!({"metadata": {"annotations": {installed: "true"}}}));
    world.values("c0", "c: 3\n");
    check(&world, &[]);
    world.proxy(json!({"spec": {"namespace": "elsewhere"}}));
    check(&world, &[]);
    world.cluster("c0", json!({"metadata": {"labels": {"cni": null}}}));
    assert_eq!(check(&world, &[]), Plan::default());
    // There is nothing left that it could be on.
    see_cluster(&mut world);
    world.clusters.clear();
    check(&world, &["delete c0"]);
    let mut world = settled(1);
    world.proxy(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"reconcileStrategy": "InstallOnce"}}));
    check(&world, &["delete c0"]);
}

/// The Clusters of all objects are recorded to exist.
fn see_cluster(world: &mut World) {
    let key = "helmreleaseproxy.addons.cluster.x-k8s.io/cluster-seen";
    for release in world.releases.values_mut() {
        let uid = release["metadata"]["uid"].clone();
        merge(release, &json!({"metadata": {"annotations": {key: uid}}}));
    }
}

#[test]
fn what_was_restored_waits_for_its_cluster() {
    let mut world = settled(1);
    let cluster = world.clusters["c0"].clone();
    see_cluster(&mut world);
    let installed = "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
    let restored = json!({"metadata": {"uid": "another", "annotations": {installed: "true"}}});
    world.releases_of("c0", restored);
    world.clusters.clear();
    assert_eq!(check(&world, &[]).awaited, ["c0"]);
    world.clusters.insert("c0".to_owned(), cluster);
    assert_eq!(check(&world, &[]), Plan::default());
    // Nothing can be on a cluster for an object that was never acted on.
    world.releases_of("c0", json!({"metadata": {"annotations": null}}));
    world.clusters.clear();
    check(&world, &["delete c0"]);
}

// AD-091; T10
#[test]
fn a_chart_goes_when_all_its_releases_are_gone() {
    let mut world = settled(2);
    world.proxy(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let plan = check(&world, &["delete c0", "delete c1"]);
    assert_eq!(plan.leaving, ["c0", "c1"]);
    world.apply(&plan);
    check(&world, &[]);
    world.settle();
    check(&world, &["release"]);
}

// AD-165: what was moved away uninstalls nothing.
#[test]
fn a_chart_that_was_moved_leaves_its_releases() {
    let mut world = settled(1);
    let moved = json!({"clusterctl.cluster.x-k8s.io/delete-for-move": ""});
    world.proxy(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": moved}}));
    check(&world, &["release"]);
}

#[test]
fn clusters_take_turns_where_that_is_asked_for() {
    let mut world = World::new(5);
    world.proxy(
        json!({"spec": {"rollout": {"install": {"stepInit": 1, "stepIncrement": 1}, "upgrade": {"stepInit": "40%"}}}}),
    );
    let plan = check(&world, &["create c0"]);
    assert_eq!(plan.waiting, ["c1", "c2", "c3", "c4"]);
    world.apply(&plan);
    check(&world, &[]);
    world.settle();
    let plan = check(&world, &["create c1", "create c2"]);
    world.apply(&plan);
    settle(&mut world);
    assert_eq!(world.served().len(), 5);
    world.proxy(json!({"spec": {"version": "2.0.0"}}));
    let plan = check(&world, &["patch c0", "patch c1"]);
    world.apply(&plan);
    assert_eq!(check(&world, &[]).waiting, ["c2", "c3", "c4"]);
    world.settle();
    let plan = check(&world, &["patch c2", "patch c3"]);
    world.apply(&plan);
    settle(&mut world);
    assert_eq!(check(&world, &[]).waiting, Vec::<String>::new());
}

/// What may happen in a world.
#[derive(Clone, Debug)]
enum Event {
    Label(usize, bool),
    Pause(usize, bool),
    Delete(usize),
    Values(usize, u8),
    Fail(usize),
    Version(u8),
    Namespace(u8),
    Steps(bool),
    Settle,
    Reconcile,
    /// The process stops after so many writes.
    Crash(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let cluster = 0_usize..4;
    prop_oneof![
        (cluster.clone(), any::<bool>()).prop_map(|(n, on)| Event::Label(n, on)),
        (cluster.clone(), any::<bool>()).prop_map(|(n, on)| Event::Pause(n, on)),
        cluster.clone().prop_map(Event::Delete),
        (cluster.clone(), 0_u8..3).prop_map(|(n, v)| Event::Values(n, v)),
        cluster.prop_map(Event::Fail),
        (0_u8..3).prop_map(Event::Version),
        (0_u8..2).prop_map(Event::Namespace),
        any::<bool>().prop_map(Event::Steps),
        Just(Event::Settle),
        Just(Event::Reconcile),
        (0_usize..3).prop_map(Event::Crash),
    ]
}

fn happen(world: &mut World, event: Event) {
    let name = |n: usize| format!("c{n}");
    match event {
        Event::Label(n, on) => {
            let value = if on { json!("calico") } else { json!(null) };
            world.cluster(&name(n), json!({"metadata": {"labels": {"cni": value}}}));
        }
        Event::Pause(n, on) => world.cluster(&name(n), json!({"spec": {"paused": on}})),
        Event::Delete(n) => drop(world.clusters.remove(&name(n))),
        Event::Values(n, v) => world.values(&name(n), &format!("v: {v}\n")),
        Event::Fail(n) => world.fail(&name(n), "no", false),
        Event::Version(v) => world.proxy(json!({"spec": {"version": format!("1.0.{v}")}})),
        Event::Namespace(v) => world.proxy(json!({"spec": {"namespace": format!("n{v}")}})),
        Event::Steps(on) => {
            let steps = json!({"install": {"stepInit": 1}, "upgrade": {"stepInit": 1}});
            world.proxy(json!({"spec": {"rollout": if on { steps } else { json!(null) }}}));
        }
        Event::Settle => world.settle(),
        Event::Reconcile => {
            let plan = world.plan();
            world.apply(&plan);
        }
        Event::Crash(after) => {
            let mut plan = world.plan();
            plan.actions.truncate(after);
            world.apply(&plan);
        }
    }
}

proptest! {
    // AD-066, AD-084, AD-085, AD-089: whatever has happened, in the end every chosen Cluster has one and no other has any, and nothing more is
    // written; a process that stops between two writes is no exception.
    #[test]
    fn in_the_end_every_chosen_cluster_has_exactly_one(events in prop::collection::vec(event(), 0..25)) {
        let mut world = World::new(4);
        for event in events {
            happen(&mut world, event);
            let served = world.served();
            let mut once = served.clone();
            once.dedup();
            prop_assert_eq!(served, once, "two on one Cluster");
        }
        for n in 0..4 {
            if world.clusters.contains_key(&format!("c{n}")) {
                world.cluster(&format!("c{n}"), json!({"spec": {"paused": null}}));
            }
        }
        world.values.retain(|_, values| matches!(values, Values::Rendered(_)));
        settle(&mut world);
        let chosen: Vec<String> = world.seen().chosen.unwrap().into_keys().collect();
        prop_assert_eq!(world.served(), chosen);
        prop_assert_eq!(world.plan(), Plan::default());
    }

    // AD-089: what was applied needs nothing more.
    #[test]
    fn planning_again_after_applying_plans_nothing(events in prop::collection::vec(event(), 0..25)) {
        let mut world = World::new(4);
        for event in events {
            happen(&mut world, event);
        }
        // What takes turns goes on when those before are ready, which is not what this is about.
        world.proxy(json!({"spec": {"rollout": null}}));
        let first = world.plan();
        world.apply(&first);
        let again = world.plan();
        prop_assert!(again.actions.is_empty(), "{:?} after {:?}", again.actions, first.actions);
    }
}
