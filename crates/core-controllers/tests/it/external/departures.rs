//! Infrastructure that goes: its maker deletes it, holds it or replaces it.

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::Cluster;

use super::provider::{TERRA, condition, endpoint, is_only_adopted, phase, provisioned, says};
use crate::env::{Env, api};

// CL-103: the external side takes its object away first, brings it back, and the Cluster takes nothing ill.
#[tokio::test]
async fn an_object_that_its_maker_deletes_is_not_made_again() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.ready(&env, "infra", true).await;
    TERRA.refer(&env, "d", "infra").await;
    phase(&env, "d", "Provisioned").await;
    TERRA.api(&env).delete("infra", &DeleteParams::default()).await.unwrap();
    let gone = "TerraCluster has been deleted while the cluster still exists";
    let cluster = says(&env, "d", "InfrastructureReady", gone).await;
    assert_eq!(condition(&cluster, "InfrastructureReady")["reason"], "ObjectDeleted");
    env.quiet().await;
    let cluster = phase(&env, "d", "Provisioned").await;
    assert!(provisioned(&cluster));
    assert!(
        TERRA
            .api(&env)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(TERRA.writes(&env), 1);

    TERRA.create(&env, "infra", endpoint("10.0.0.7"), json!([])).await;
    TERRA.adopted(&env, "infra", "d").await;
    let waits = "TerraCluster infra: status.initialization.provisioned is false";
    let cluster = says(&env, "d", "InfrastructureReady", waits).await;
    assert!(provisioned(&cluster));
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");

    // And once more, while the Cluster itself is being deleted.
    TERRA.api(&env).delete("infra", &DeleteParams::default()).await.unwrap();
    says(&env, "d", "InfrastructureReady", gone).await;
    let clusters: Api<Cluster> = api(&env.client);
    clusters.delete("d", &DeleteParams::default()).await.unwrap();
    env.until::<Cluster>("the end of the Cluster", |all| {
        all.iter().all(|cluster| cluster.metadata.name.as_deref() != Some("d"))
    })
    .await;
    assert_eq!(env.failures("cluster"), 0);
}

// EX-050, EX-063, EX-085: a finalizer of the external side holds the Cluster, which names it.
#[tokio::test]
async fn a_foreign_finalizer_holds_the_cluster_and_is_named() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    let finalizers = json!(["terra.example.org/teardown", "a.example.org/audit"]);
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), finalizers).await;
    TERRA.refer(&env, "d", "infra").await;
    TERRA.adopted(&env, "infra", "d").await;
    let clusters: Api<Cluster> = api(&env.client);
    clusters.delete("d", &DeleteParams::default()).await.unwrap();
    let waits = "Waiting for TerraCluster infra to be deleted, it is held by";
    let both = format!("{waits} finalizers a.example.org/audit, terra.example.org/teardown");
    let cluster = says(&env, "d", "Deleting", &both).await;
    assert_eq!(
        condition(&cluster, "Deleting")["reason"],
        "WaitingForInfrastructureDeletion"
    );
    env.rests().await;
    let free = |left: Value| json!({"metadata": {"finalizers": left}});
    let params = PatchParams::default();
    let one = free(json!(["terra.example.org/teardown"]));
    TERRA
        .api(&env)
        .patch("infra", &params, &Patch::Merge(&one))
        .await
        .unwrap();
    says(
        &env,
        "d",
        "Deleting",
        &format!("{waits} finalizer terra.example.org/teardown"),
    )
    .await;
    let none = free(Value::Null);
    TERRA
        .api(&env)
        .patch("infra", &params, &Patch::Merge(&none))
        .await
        .unwrap();
    env.until::<Cluster>("the end of the Cluster", |all| {
        all.iter().all(|cluster| cluster.metadata.name.as_deref() != Some("d"))
    })
    .await;
    let deletes = env.server.counters().snapshot();
    let asked: u64 = deletes
        .iter()
        .filter(|(key, _)| key.resource == "terraclusters" && key.subresource.is_empty() && key.verb == "delete")
        .map(|(_, count)| count)
        .sum();
    assert_eq!(asked, 1, "it is asked to go once");
}

// EX-032, CL-080: a tool that replaces its object as a whole loses the owner; the Cluster puts it back, once for each time.
#[tokio::test]
async fn a_replaced_object_is_adopted_again() {
    let env = Env::empty().await;
    env.define(TERRA.definition()).await;
    env.run_cluster_controller();
    TERRA.create(&env, "infra", endpoint("10.0.0.1"), json!([])).await;
    TERRA.refer(&env, "d", "infra").await;
    TERRA.adopted(&env, "infra", "d").await;
    for round in 2..5 {
        let mut object = TERRA.api(&env).get("infra").await.unwrap();
        object.metadata.owner_references = None;
        object.metadata.labels = None;
        object.metadata.managed_fields = None;
        TERRA
            .api(&env)
            .replace("infra", &PostParams::default(), &object)
            .await
            .unwrap();
        TERRA.adopted(&env, "infra", "d").await;
        env.quiet().await;
        let applied: u64 = env
            .server
            .counters()
            .snapshot()
            .iter()
            .filter(|(key, _)| key.resource == "terraclusters" && key.subresource.is_empty() && key.verb == "apply")
            .map(|(_, count)| count)
            .sum();
        assert_eq!(applied, round);
    }
    is_only_adopted(&TERRA.get(&env, "infra").await, "d");
}
