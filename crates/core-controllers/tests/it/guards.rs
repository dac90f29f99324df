//! Values that no admission has refused, and that would destroy something: nothing is changed, and a condition says what to do.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::Conditioned as _;

use crate::env::{Env, api, cluster, template};

/// A running deployment of two Machines, and another Cluster.
/// Where objects can be stored that admission refuses.
async fn running() -> Env {
    let env = Env::start_unadmitted().await;
    env.create::<Cluster>(cluster("other")).await;
    env.deployment(2).await;
    available(&env).await;
    env
}

async fn available(env: &Env) {
    env.until::<MachineDeployment>("both Machines are available", |all| {
        let is_settled = |md: &MachineDeployment| {
            let status = md.status.clone().unwrap_or_default();
            status.available_replicas == Some(2) && status.up_to_date_replicas == Some(2) && status.replicas == Some(2)
        };
        all.iter().all(is_settled)
    })
    .await;
}

/// Waits until a condition of the deployment contains this.
async fn says(env: &Env, type_: &str, words: &str) {
    env.until::<MachineDeployment>(words, |all| {
        let conditions = all.iter().flat_map(MachineDeployment::conditions);
        conditions
            .into_iter()
            .any(|have| have.type_ == type_ && have.message.contains(words))
    })
    .await;
}

/// The Machines with what must not change.
async fn machines(env: &Env) -> BTreeMap<String, (String, bool)> {
    let all = env.list::<Machine>().await;
    let facts = |machine: Machine| {
        let going = machine.metadata.deletion_timestamp.is_some();
        (machine.uid().unwrap_or_default(), (machine.spec.cluster_name, going))
    };
    all.into_iter().map(facts).collect()
}

/// Changes the deployment, checks that this is reported and changes no Machine, and takes the change back.
async fn check(change: Value, words: &str, back: Value) {
    let env = running().await;
    let before = machines(&env).await;
    env.patch::<MachineDeployment>("md", json!({ "spec": change })).await;
    says(&env, "ScalingUp", words).await;
    env.quiet().await;
    assert_eq!(machines(&env).await, before, "{words}");
    env.patch::<MachineDeployment>("md", json!({ "spec": back })).await;
    env.until::<MachineDeployment>("nothing is wrong any more", |all| {
        let mut conditions = all.iter().flat_map(MachineDeployment::conditions);
        !conditions.any(|have| have.message.contains(words))
    })
    .await;
    available(&env).await;
}

#[tokio::test]
async fn a_deployment_is_not_moved_to_another_cluster() {
    let to = |name: &str| json!({ "clusterName": name, "template": { "spec": { "clusterName": name } } });
    check(to("other"), "spec.clusterName other is not the Cluster c", to("c")).await;
}

#[tokio::test]
async fn a_rollout_without_a_machine_to_spare_does_not_begin() {
    let strategy =
        |surge: i32| json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge, "maxUnavailable": 0 } });
    let change = json!({ "rollout": { "strategy": strategy(0) }, "template": { "spec": { "version": "v1.36.0" } } });
    let words = "maxSurge and maxUnavailable are both 0";
    check(change, words, json!({ "rollout": { "strategy": strategy(1) } })).await;
}

#[tokio::test]
async fn what_is_no_template_is_not_cloned() {
    let env = Env::start().await;
    let mut template = template();
    template["spec"]["infrastructureRef"]["kind"] = json!("DevMachine");
    let machine: windlass_api_ext::infrastructure::DevMachine =
        serde_json::from_value(json!({ "metadata": { "name": "infra" }, "spec": { "backend": { "inMemory": {} } } }))
            .unwrap();
    let machines: kube::Api<windlass_api_ext::infrastructure::DevMachine> = api(&env.client);
    machines
        .create(&kube::api::PostParams::default(), &machine)
        .await
        .unwrap();
    env.create::<MachineDeployment>(json!({
        "metadata": { "name": "md" },
        "spec": { "clusterName": "c", "replicas": 1, "selector": { "matchLabels": { "role": "w" } }, "template": template },
    }))
    .await;
    says(&env, "ScalingUp", "DevMachine infra is no template").await;
    assert!(env.list::<Machine>().await.is_empty());
}

#[tokio::test]
async fn a_machine_is_not_moved_and_not_deleted_in_another_cluster() {
    let env = Env::unadmitted().await;
    env.run_clusters_and_machines();
    env.create::<Machine>(json!({
        "metadata": { "name": "m" },
        "spec": {
            "clusterName": "c", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m" },
        },
    }))
    .await;
    let labelled = |machine: &Machine| machine.labels().get("cluster.x-k8s.io/cluster-name").cloned();
    env.until::<Machine>("it belongs to its Cluster", |all| {
        all.iter()
            .all(|machine| labelled(machine).as_deref() == Some("c") && !machine.owner_references().is_empty())
    })
    .await;
    env.patch::<Machine>("m", json!({ "spec": { "clusterName": "other" } }))
        .await;
    let says = async |type_: &str| {
        env.until::<Machine>("it says what to do", |all| {
            let mut conditions = all.iter().flat_map(Machine::conditions);
            conditions.any(|have| have.type_ == type_ && have.message.contains("set it back to c"))
        })
        .await
    };
    let found = says("NodeReady").await;
    assert_eq!(labelled(&found[0]).as_deref(), Some("c"));
    api::<Machine>(&env.client)
        .delete("m", &DeleteParams::default())
        .await
        .unwrap();
    says("Deleting").await;
    env.patch::<Machine>("m", json!({ "spec": { "clusterName": "c" } }))
        .await;
    env.until::<Machine>("it goes", <[Machine]>::is_empty).await;
}
