//! MachinePools whose cluster gets another authority: what their machines boot with goes with it.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::MachinePool;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_bootstrap_kubeadm::TokenTtl;
use windlass_meta::Clock as _;
use windlass_pki::{Certificate, KeyAlgorithm, KeyMaterial, PrivateKey, Purpose};

use crate::world::{World, create, resource, writes};

/// A MachinePool and its config, in which a user may have set pins.
async fn pool(world: &World, name: &str, pins: &[String]) {
    let client = world.client();
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "demo" });
    let pool = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": { "name": name, "labels": labels },
        "spec": { "clusterName": "demo", "replicas": 1, "template": { "spec": {
            "clusterName": "demo", "version": "v1.35.0",
            "bootstrap": { "configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name,
            } },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": name,
            },
        } } },
    });
    create::<MachinePool>(&client, pool).await;
    let pool = resource::<MachinePool>(&client).get(name).await.unwrap();
    let mut config = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
        "metadata": { "name": name, "labels": labels, "ownerReferences": [{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": name, "uid": pool.metadata.uid,
        }] },
        "spec": { "joinConfiguration": { "nodeRegistration": { "criSocket": "unix:///run/c.sock" } } },
    });
    if !pins.is_empty() {
        config["spec"]["joinConfiguration"]["discovery"] = json!({ "bootstrapToken": { "caCertHashes": pins } });
    }
    create::<KubeadmConfig>(&client, config).await;
    world
        .until::<KubeadmConfig>(name, "ready", |config| config["status"]["dataSecretName"] == name)
        .await;
}

/// Waits for the pins in a spec, and returns the rest of what machines find their cluster by.
async fn pinned(world: &World, name: &str, pins: &[String]) -> Value {
    let discovery = |config: &Value| config["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"].clone();
    // The status is written last.
    let is_complete = |config: &Value| config["status"]["observedGeneration"] == config["metadata"]["generation"];
    let is_pinned = |config: &Value| discovery(config)["caCertHashes"] == json!(pins) && is_complete(config);
    let config = world.until::<KubeadmConfig>(name, "pinned", is_pinned).await;
    let mut discovery = discovery(&config);
    discovery["caCertHashes"].take();
    discovery
}

/// What machines boot with.
async fn data(world: &World, name: &str) -> String {
    let secret = resource::<Secret>(&world.client()).get(name).await.unwrap();
    let secret: Secret = secret.try_parse().unwrap();
    String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap()
}

async fn patch<K>(world: &World, name: &str, patch: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api = resource::<K>(&world.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

fn pin(authority: &KeyMaterial) -> String {
    Certificate::from_pem(&authority.crt).unwrap().public_key_pin()
}

#[tokio::test]
async fn the_pins_of_a_pool_follow_the_authority_and_those_of_a_user_stay() {
    let world = World::start(TokenTtl::default()).await;
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let next = KeyMaterial::generate(Purpose::ClusterCa, key, 3650, world.clock.now()).unwrap();
    let (old, new) = (pin(&world.ca), pin(&next));
    pool(&world, "ours", &[]).await;
    pool(&world, "users", std::slice::from_ref(&old)).await;
    let ready = |config: &Value| config["status"]["dataSecretName"] == "m";
    world.until::<KubeadmConfig>("m", "ready", ready).await;
    let before = pinned(&world, "ours", std::slice::from_ref(&old)).await;
    let kept = (data(&world, "users").await, data(&world, "m").await);
    assert!(data(&world, "ours").await.contains(&old));

    let both = KeyMaterial {
        crt: format!("{}{}", world.ca.crt, next.crt),
        key: world.ca.key.clone(),
    };
    for (authority, pins) in [(&both, vec![old.clone(), new.clone()]), (&next, vec![new.clone()])] {
        let secret = Purpose::ClusterCa.secret("default", "demo", &Value::Null, &authority.data());
        patch::<Secret>(&world, "demo-ca", json!({ "data": secret["data"] })).await;
        // No time passes: the Secret is what wakes. The same token goes on.
        assert_eq!(pinned(&world, "ours", &pins).await, before);
        let text = data(&world, "ours").await;
        for pin in [&old, &new] {
            assert_eq!(text.contains(pin), pins.contains(pin), "{pins:?} {text}");
        }
        // That is all, also at the next look.
        world.rests().await;
        let written = writes(&world.management);
        for name in ["ours", "users", "m"] {
            patch::<KubeadmConfig>(
                &world,
                name,
                json!({ "metadata": { "annotations": { "look": pins.join(" ") } } }),
            )
            .await;
        }
        world.rests().await;
        assert_eq!(writes(&world.management), written);
    }
    pinned(&world, "users", &[old]).await;
    assert_eq!((data(&world, "users").await, data(&world, "m").await), kept);
}
