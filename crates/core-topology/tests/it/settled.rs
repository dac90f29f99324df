//! A settled topology reacts to a change of everything that it is computed from.

use serde_json::{Value, json};

use crate::env::{Env, condition, name};

/// Waits until a topology is settled: nothing was written for a while.
async fn settles(env: &Env) {
    env.reconciled("ReconcileSucceeded").await;
    env.quiet().await;
}

/// Another reconcile of what is settled writes nothing.
async fn is_left_alone(env: &Env) {
    let before = env.server.counters().writes();
    let touched = json!({"metadata": {"annotations": {"example.com/touched": before.to_string()}}});
    env.merge("VSphereClusterTemplate", "vsphere-prod-cluster-template", touched)
        .await;
    env.quiet().await;
    assert_eq!(
        env.server.counters().writes(),
        before + 1,
        "only the annotation is written"
    );
}

async fn the_only(env: &Env, kind: &str) -> Value {
    let mut all = env.generated(kind).await;
    assert_eq!(all.len(), 1, "{kind}");
    all.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_topology_reacts_to_a_change_of_every_kind_of_input() {
    let env = Env::start().await;
    env.apply_example().await;
    settles(&env).await;
    is_left_alone(&env).await;
    let control_plane = name(&the_only(&env, "KubeadmControlPlane").await).to_owned();
    let infrastructure = name(&the_only(&env, "VSphereCluster").await).to_owned();
    let worker = name(&env.deployment("microsoft-1").await).to_owned();

    // The class.
    let label = json!({"spec": {"controlPlane": {"metadata": {"labels": {"of-class": "new"}}}}});
    env.merge("ClusterClass", "mixed", label).await;
    let labelled = json!({"metadata": {"labels": {"of-class": "new"}}});
    env.becomes("KubeadmControlPlane", &control_plane, labelled.clone())
        .await;
    settles(&env).await;

    // A template of the class.
    let server = json!({"spec": {"template": {"spec": {"server": "other.example.com"}}}});
    env.merge("VSphereClusterTemplate", "vsphere-prod-cluster-template", server)
        .await;
    let changed = json!({"spec": {"server": "other.example.com"}});
    env.becomes("VSphereCluster", &infrastructure, changed.clone()).await;
    settles(&env).await;

    // The Cluster.
    let replicas = json!({"spec": {"topology": {"controlPlane": {"replicas": 5}}}});
    env.merge("Cluster", "foo", replicas).await;
    let five = json!({"spec": {"replicas": 5}});
    env.becomes("KubeadmControlPlane", &control_plane, five.clone()).await;
    settles(&env).await;

    // Generated objects: what a user changes is taken back.
    env.merge("VSphereCluster", &infrastructure, json!({"spec": {"server": "mine"}}))
        .await;
    env.becomes("VSphereCluster", &infrastructure, changed).await;
    settles(&env).await;
    env.merge("KubeadmControlPlane", &control_plane, json!({"spec": {"replicas": 1}}))
        .await;
    env.becomes("KubeadmControlPlane", &control_plane, five).await;
    settles(&env).await;
    env.merge(
        "KubeadmControlPlane",
        &control_plane,
        json!({"metadata": {"labels": {"of-class": "mine"}}}),
    )
    .await;
    env.becomes("KubeadmControlPlane", &control_plane, labelled).await;
    settles(&env).await;
    env.merge("MachineDeployment", &worker, json!({"spec": {"replicas": 7}}))
        .await;
    env.becomes("MachineDeployment", &worker, json!({"spec": {"replicas": 3}}))
        .await;
    settles(&env).await;
    env.delete("MachineHealthCheck", &worker).await;
    env.wait("the health check", async || {
        env.get("MachineHealthCheck", &worker).await
    })
    .await;
    settles(&env).await;
    let gone = env.deployment("microsoft-1").await["metadata"]["uid"].clone();
    env.delete("MachineDeployment", &worker).await;
    // No controller of MachineDeployments is here.
    env.merge("MachineDeployment", &worker, json!({"metadata": {"finalizers": null}}))
        .await;
    env.wait("another worker set", async || {
        let all = env.of_entry("MachineDeployment", "microsoft-1").await;
        (all.len() == 1 && all[0]["metadata"]["uid"] != gone).then_some(())
    })
    .await;
    settles(&env).await;

    // The status of the Cluster.
    let lost = json!({"conditions": []});
    env.status("Cluster", "foo", lost).await;
    env.reconciled("ReconcileSucceeded").await;
    settles(&env).await;

    is_left_alone(&env).await;

    // What cannot be read, or is gone.
    env.delete("VSphereClusterTemplate", "vsphere-prod-cluster-template")
        .await;
    let said = async || {
        let cluster = env.get("Cluster", "foo").await?;
        (condition(&cluster, "TopologyReconciled")?["status"] == "False").then_some(())
    };
    env.wait("the missing template", said).await;
    env.stop().await;
}
