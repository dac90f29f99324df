//! Machines that no MachineSet and no control plane has made: they belong to their Cluster.

use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};

use crate::env::{Env, api, cluster};

async fn machine(env: &Env, name: &str, labels: Value) {
    env.create::<Machine>(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "clusterName": "c", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name },
        },
    }))
    .await;
}

/// Waits until all Machines are labelled and owned by the Cluster alone.
async fn joined(env: &Env, count: usize) {
    let cluster = api::<Cluster>(&env.client).get("c").await.unwrap();
    env.until::<Machine>("that the Machines belong to their Cluster", |all| {
        let belongs = |machine: &Machine| {
            let metadata = serde_json::to_value(&machine.metadata).unwrap();
            metadata["labels"]["cluster.x-k8s.io/cluster-name"] == "c"
                && metadata["ownerReferences"]
                    == json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": cluster.metadata.uid}])
        };
        all.len() == count && all.iter().all(belongs)
    })
    .await;
}

#[tokio::test]
async fn machines_of_a_users_own_count_and_go_with_their_cluster() {
    let env = Env::empty().await;
    env.run_clusters_and_machines();
    machine(&env, "unlabelled", json!({})).await;
    machine(&env, "labelled", json!({"cluster.x-k8s.io/cluster-name": "c"})).await;
    machine(&env, "control", json!({"cluster.x-k8s.io/control-plane": ""})).await;
    joined(&env, 3).await;
    env.until::<Cluster>("the numbers", |all| {
        let status = all
            .iter()
            .find_map(|cluster| cluster.status.clone())
            .unwrap_or_default();
        let number = |part: Option<windlass_api::core::ClusterReplicasStatus>| part.and_then(|part| part.replicas);
        number(status.workers) == Some(2) && number(status.control_plane) == Some(1)
    })
    .await;
    let clusters: Api<Cluster> = api(&env.client);
    clusters.delete("c", &DeleteParams::default()).await.unwrap();
    env.until::<Cluster>("the end of the Cluster", <[Cluster]>::is_empty)
        .await;
    assert!(env.list::<Machine>().await.is_empty());
    assert_eq!(env.failures("cluster") + env.failures("machine"), 0);
}

#[tokio::test]
async fn a_machine_on_its_way_out_joins_its_cluster_as_well() {
    let env = Env::empty().await;
    machine(&env, "going", json!({})).await;
    let finalizer = json!({ "metadata": { "finalizers": ["example.com/hold", "machine.cluster.x-k8s.io"],
        "annotations": { "pre-terminate.delete.hook.machine.cluster.x-k8s.io/hold": "" } } });
    env.patch::<Machine>("going", finalizer).await;
    let machines: Api<Machine> = api(&env.client);
    machines.delete("going", &DeleteParams::default()).await.unwrap();
    env.run_clusters_and_machines();
    joined(&env, 1).await;
    let patch = json!({ "metadata": { "annotations": null, "finalizers": ["machine.cluster.x-k8s.io"] } });
    env.patch::<Machine>("going", patch).await;
    env.until::<Machine>("it is gone", <[Machine]>::is_empty).await;
    assert_eq!(env.failures("machine"), 0);
}

// A Machine may come before its Cluster: with the label at once, with the owner when there is one.
#[tokio::test]
async fn a_machine_may_come_before_its_cluster() {
    let env = Env::empty().await;
    let clusters: Api<Cluster> = api(&env.client);
    clusters.delete("c", &DeleteParams::default()).await.unwrap();
    env.run_clusters_and_machines();
    machine(&env, "early", json!({})).await;
    env.until::<Machine>("the label", |all| {
        let labels = all.iter().filter_map(|machine| machine.metadata.labels.as_ref());
        labels
            .into_iter()
            .any(|all| all.contains_key("cluster.x-k8s.io/cluster-name"))
    })
    .await;
    env.create::<Cluster>(cluster("c")).await;
    joined(&env, 1).await;
    env.rests().await;
}
