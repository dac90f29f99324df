//! Owner references and finalizers are lost, as in the resilience tests of Cluster API.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_api::core::Cluster;
use windlass_testkit::rest::{Stored, differences};
use windlass_testkit::{ClusterOf, Env};

use super::{hosts, running};

/// What changes whenever an object is written.
const WRITTEN: &[&str] = &["metadata.resourceVersion"];

/// Takes a list of the metadata away from all objects of the cluster.
async fn take(env: &Env, before: &Stored, field: &str) {
    let patch = json!({"metadata": {field: []}});
    for (name, object) in before {
        if object["metadata"][field].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let (kind, name) = name.split_once(' ').unwrap();
        if kind == "Secret" {
            let secrets = env.api::<k8s_openapi::api::core::v1::Secret>();
            secrets
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .unwrap();
        } else {
            env.merge(kind, name, &patch).await;
        }
    }
}

/// Waits until nothing differs from what was there before.
async fn is_as_before(env: &Env, cluster: &ClusterOf, before: &Stored) {
    env.wait_for::<Cluster>(&cluster.key(), "going on", |cluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions
            .filter(|condition| condition.type_ == "Paused")
            .all(|condition| condition.status == "False")
    })
    .await;
    let mut looks = windlass_testkit::wait::looks();
    let begun = std::time::Instant::now();
    loop {
        looks.tick().await;
        let ignored = [WRITTEN, &["metadata.generation", "status.observedGeneration"]].concat();
        let now = env.all().await;
        let mut found = differences(before, &now, &ignored);
        // The pause is a transition of its own, and so is the time in which an owner does not know what is its own.
        let transitions = ["[Paused]", "observedGeneration", "lastTransitionTime"];
        found.retain(|line| !transitions.iter().any(|one| line.contains(one)));
        if found.is_empty() {
            return;
        }
        assert!(
            begun.elapsed() < windlass_testkit::wait::TIMEOUT,
            "not as before:\n{}",
            found.join("\n")
        );
    }
}

pub(super) async fn pause(env: &Env, cluster: &ClusterOf, paused: bool) {
    let patch = json!({"spec": {"paused": paused.then_some(true)}});
    env.merge("Cluster", &cluster.name, &patch).await;
    let expect = if paused { "True" } else { "False" };
    env.wait_for::<Cluster>(&cluster.key(), "paused or not", |cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "Paused" && condition.status == expect)
    })
    .await;
}

/// A list of the metadata is lost on all objects of a cluster while it is paused, and comes back.
async fn comes_back(field: &str) {
    let env = Env::start().await;
    let cluster = ClusterOf::new("bare", 1, 2);
    running(&env, &cluster).await;
    let (machines, before) = (hosts(&env).await, env.all().await);
    pause(&env, &cluster, true).await;
    take(&env, &before, field).await;
    pause(&env, &cluster, false).await;
    is_as_before(&env, &cluster, &before).await;
    assert_eq!(hosts(&env).await, machines, "nothing is replaced");
    env.rest().await;
    env.stop().await;
}

#[tokio::test]
async fn lost_owner_references_come_back() {
    comes_back("ownerReferences").await;
}

#[tokio::test]
async fn lost_finalizers_come_back() {
    comes_back("finalizers").await;
}
