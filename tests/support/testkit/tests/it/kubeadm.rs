//! What kubeadm needs of the controllers: a configuration that it can read, and bootstrap data that stays.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_meta::ObjectKey;
use windlass_testkit::{ByHand, Env, NAMESPACE};

/// A cluster with another `kubeadmConfigSpec`.
async fn apply(env: &Env, cluster: &ByHand, kubeadm: Option<Value>) {
    for mut object in cluster.objects() {
        if object["kind"] == "KubeadmControlPlane" {
            object["spec"].as_object_mut().unwrap().remove("kubeadmConfigSpec");
            if let Some(kubeadm) = &kubeadm {
                object["spec"]["kubeadmConfigSpec"] = kubeadm.clone();
            }
        }
        env.apply(&object).await;
    }
}

/// kubeadm's configuration as it is stored in the workload cluster.
async fn configuration(env: &Env, cluster: &ByHand) -> Value {
    let client = super::life::workload(env, cluster.shape()).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let map = maps.get("kubeadm-config").await.unwrap();
    serde_saphyr::from_str(&map.data.unwrap()["ClusterConfiguration"]).unwrap()
}

#[tokio::test]
async fn a_control_plane_without_kubeadm_settings_runs_and_keeps_its_data() {
    let env = Env::start().await;
    let plain = ByHand::new("plain", 1, 1).managed().version("v1.36.0");
    apply(&env, &plain, None).await;
    let files = ByHand::new("files", 1, 0).managed().version("v1.30.0");
    apply(
        &env,
        &files,
        Some(json!({ "files": [{ "path": "/a", "content": "b" }] })),
    )
    .await;
    plain.shape().wait_running(&env).await;
    files.shape().wait_running(&env).await;

    // A Secret whose owners are lost is taken back, also after its Machine has joined.
    for machine in env.list::<Machine>().await {
        let name = machine.metadata.name.unwrap();
        let owners = |secret: &Secret| secret.metadata.owner_references.clone().unwrap_or_default();
        let key = ObjectKey::new(NAMESPACE, &name);
        let before = owners(&env.wait_for::<Secret>(&key, "there", |_| true).await);
        let lost = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
        let secrets = env.api::<Secret>();
        secrets.patch(&name, &PatchParams::default(), &lost).await.unwrap();
        env.wait_for::<Secret>(&key, "owned again", |secret| owners(secret) == before)
            .await;
    }
    env.stop().await;
}

#[tokio::test]
async fn an_upgrade_writes_the_configuration_in_the_format_of_the_new_kubeadm() {
    let env = Env::start().await;
    let arguments = |name: &str| json!({ "apiServer": { "extraArgs": [{ "name": name, "value": "1" }] } });
    let old = ByHand::new("up", 1, 0).managed().version("v1.30.0");
    apply(&env, &old, Some(json!({ "clusterConfiguration": arguments("old") }))).await;
    old.shape().wait_running(&env).await;
    assert_eq!(configuration(&env, &old).await["apiVersion"], "kubeadm.k8s.io/v1beta3");

    // Joins read the configuration: each of these versions would refuse that of the other one.
    let new = old.version("v1.31.0");
    apply(&env, &new, Some(json!({ "clusterConfiguration": arguments("new") }))).await;
    new.shape().wait_running(&env).await;
    let stored = configuration(&env, &new).await;
    assert_eq!(stored["apiVersion"], "kubeadm.k8s.io/v1beta4");
    assert_eq!(stored["kubernetesVersion"], "v1.31.0");
    assert_eq!(
        stored["apiServer"],
        json!({ "extraArgs": [{ "name": "new", "value": "1" }] })
    );
    assert_eq!(stored["clusterName"], "up");
    env.stop().await;
}
