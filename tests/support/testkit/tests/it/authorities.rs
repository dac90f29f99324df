//! A cluster's authorities are rotated while it runs: its servers and kubelets really check certificates.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_meta::ObjectKey;
use windlass_pki::rotation::blocks;
use windlass_testkit::{ByHand, Env, wait};

use super::life::workload;

const AUTHORITIES: [&str; 4] = ["ca", "etcd", "proxy", "sa"];

/// Annotates the control plane.
async fn annotate(env: &Env, cluster: &ByHand, annotations: Value) {
    let name = control_plane(cluster).name;
    let patch = json!({ "metadata": { "annotations": annotations } });
    env.merge("KubeadmControlPlane", &name, &patch).await;
}

fn control_plane(cluster: &ByHand) -> ObjectKey {
    let key = cluster.key();
    ObjectKey::new(key.namespace.as_str(), format!("{}-control-plane", key.name))
}

/// Waits until the rotation says so. On the way no Node that was ready stops to be so before its Machine is deleted.
async fn wait_until(env: &Env, cluster: &ByHand, reason: &str) {
    let key = control_plane(cluster);
    let planes = env.api::<KubeadmControlPlane>();
    let mut joined = BTreeSet::new();
    let mut looks = wait::looks();
    let done = tokio::time::timeout(3 * wait::TIMEOUT, async {
        loop {
            for machine in env.list::<Machine>().await {
                let conditions = machine.status.iter().flat_map(|status| &status.conditions);
                let ready = conditions.into_iter().find(|condition| condition.type_ == "NodeReady");
                let name = machine.metadata.name.clone().unwrap_or_default();
                let (Some(ready), true) = (ready, machine.metadata.deletion_timestamp.is_none()) else {
                    continue;
                };
                if ready.status == "True" {
                    joined.insert(name);
                } else {
                    // Without a connection from here, nothing is known of the Node.
                    let is_known = ready.reason != "ConnectionDown" && ready.reason != "InspectionFailed";
                    assert!(!is_known || !joined.contains(&name), "{name}: {ready:?}");
                }
            }
            let plane = planes.get(&key.name).await.unwrap();
            let conditions = plane.status.iter().flat_map(|status| &status.conditions);
            let rotating = conditions
                .clone()
                .find(|condition| condition.type_ == "RotatingAuthorities");
            if rotating.is_some_and(|condition| condition.reason == reason) {
                return;
            }
            looks.tick().await;
        }
    });
    if done.await.is_err() {
        let plane = planes.get(&key.name).await.unwrap();
        panic!("the rotation is never {reason}: {:#?}", plane.status);
    }
}

async fn secret(env: &Env, cluster: &ByHand, suffix: &str) -> Secret {
    let name = format!("{}-{suffix}", cluster.name());
    env.api::<Secret>().get(&name).await.unwrap()
}

fn text(secret: &Secret, key: &str) -> String {
    let value = secret.data.as_ref().unwrap().get(key);
    value
        .map(|value| String::from_utf8(value.0.clone()).unwrap())
        .unwrap_or_default()
}

async fn machines(env: &Env) -> BTreeSet<String> {
    let machines = env.list::<Machine>().await.into_iter();
    machines.filter_map(|machine| machine.metadata.name).collect()
}

/// What aggregated API servers trust, as real API servers tell them: their own authorities, and all that were there before.
const EXTENSIONS: &str = "extension-apiserver-authentication";
const EXTENSION_KEYS: [(&str, &str); 2] = [("client-ca-file", "ca"), ("requestheader-client-ca-file", "proxy")];

fn extensions(client: kube::Client) -> Api<ConfigMap> {
    Api::namespaced(client, "kube-system")
}

/// An authority of a user, for clients of their own.
const FOREIGN: &str = "-----BEGIN CERTIFICATE-----\nZm9yZWlnbg==\n-----END CERTIFICATE-----\n";

async fn tell_extensions(env: &Env, cluster: &ByHand) {
    let mut data = BTreeMap::new();
    for (key, suffix) in EXTENSION_KEYS {
        let both = text(&secret(env, cluster, suffix).await, "tls.crt");
        assert_eq!(blocks(&both).unwrap().len(), 2, "{suffix}");
        data.insert(key, format!("{FOREIGN}{both}"));
    }
    let map = json!({ "metadata": { "name": EXTENSIONS }, "data": data });
    let map = serde_json::from_value(map).unwrap();
    let client = workload(env, cluster.shape()).await;
    // The simulated machines come back after the restart.
    let mut looks = wait::looks();
    let back = tokio::time::timeout(wait::TIMEOUT, async {
        while !answers(&client).await {
            looks.tick().await;
        }
    });
    back.await.expect("the cluster answers again");
    extensions(client).create(&PostParams::default(), &map).await.unwrap();
}

/// Whether the workload cluster answers a client.
async fn answers(client: &kube::Client) -> bool {
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.list(&ListParams::default()).await.is_ok()
}

/// Creates the cluster with authorities of its own: the RSA keys of tests come back in turn, and a new authority with the key of the old one
/// would be as good as that.
async fn apply(env: &Env, cluster: &ByHand) {
    for mut object in cluster.objects() {
        if object["kind"] == "KubeadmControlPlane" {
            object["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["encryptionAlgorithm"] = json!("ECDSA-P256");
        }
        env.apply(&object).await;
    }
}

async fn rotate(version: &str, control_plane: usize, workers: usize) {
    let mut env = Env::start().await;
    let cluster = ByHand::new("ca", control_plane, workers).managed().version(version);
    apply(&env, &cluster).await;
    cluster.wait_running(&env).await;
    let before = machines(&env).await;
    let mut old = Vec::new();
    for suffix in AUTHORITIES {
        old.push(secret(&env, &cluster, suffix).await);
    }
    let client = workload(&env, cluster.shape()).await;

    annotate(
        &env,
        &cluster,
        json!({ "windlass.dev/rotate-authorities": "one", "windlass.dev/token-lifetime": "1s" }),
    )
    .await;
    wait_until(&env, &cluster, "Prepared").await;
    let prepared = machines(&env).await;
    assert!(before.is_disjoint(&prepared), "{before:?} {prepared:?}");
    assert!(
        answers(&client).await,
        "kubeconfigs of before are good until the rotation is completed"
    );
    for (suffix, old) in AUTHORITIES.into_iter().zip(&old) {
        let both = secret(&env, &cluster, suffix).await;
        assert_eq!(blocks(&text(&both, "tls.crt")).unwrap().len(), 2);
        assert!(text(&both, "tls.crt").starts_with(&text(old, "tls.crt")));
        assert_eq!(text(&both, "tls.key"), text(old, "tls.key"));
    }
    let handed_out = workload(&env, cluster.shape()).await;
    assert!(answers(&handed_out).await);

    // The managers restart on the way.
    env = env.restart().await;
    tell_extensions(&env, &cluster).await;
    annotate(&env, &cluster, json!({ "windlass.dev/complete-rotation": "one" })).await;
    wait_until(&env, &cluster, "NotRotating").await;
    cluster.wait_running(&env).await;
    assert!(prepared.is_disjoint(&machines(&env).await));
    for (suffix, old) in AUTHORITIES.into_iter().zip(&old) {
        let new = secret(&env, &cluster, suffix).await;
        assert_eq!(blocks(&text(&new, "tls.crt")).unwrap().len(), 1, "{suffix}");
        assert_ne!(text(&new, "tls.crt"), text(old, "tls.crt"), "{suffix}");
        assert_ne!(text(&new, "tls.key"), text(old, "tls.key"), "{suffix}");
        assert_eq!(text(&new, "next.key"), "", "{suffix}");
        assert_eq!(new.metadata.annotations, old.metadata.annotations, "{suffix}");
    }
    let told = extensions(handed_out.clone())
        .get(EXTENSIONS)
        .await
        .unwrap()
        .data
        .unwrap();
    for (key, suffix) in EXTENSION_KEYS {
        let new = text(&secret(&env, &cluster, suffix).await, "tls.crt");
        assert_eq!(told[key], format!("{FOREIGN}{new}"), "{key}");
    }
    // Who fetched a kubeconfig between the phases goes on, and the old authority is worth nothing any more.
    assert!(answers(&handed_out).await);
    assert!(answers(&workload(&env, cluster.shape()).await).await);
    assert!(!answers(&client).await);
    env.delete("Cluster", cluster.name()).await;
    env.wait_gone(cluster.name()).await;
    env.stop().await;
}

#[tokio::test]
async fn authorities_are_rotated_where_kubelets_use_their_own_api_server() {
    rotate("v1.36.0", 3, 2).await;
}

#[tokio::test]
async fn authorities_are_rotated_where_kubelets_use_any_api_server() {
    rotate("v1.30.0", 3, 1).await;
}

#[tokio::test]
async fn a_rotation_that_is_taken_back_leaves_the_authorities_as_they_were() {
    let env = Env::start().await;
    let cluster = ByHand::new("back", 1, 1).managed();
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let mut old = Vec::new();
    for suffix in AUTHORITIES {
        old.push(secret(&env, &cluster, suffix).await);
    }
    annotate(&env, &cluster, json!({ "windlass.dev/rotate-authorities": "one" })).await;
    wait_until(&env, &cluster, "Prepared").await;
    annotate(&env, &cluster, json!({ "windlass.dev/rotate-authorities": null })).await;
    for (suffix, old) in AUTHORITIES.into_iter().zip(&old) {
        let key = ObjectKey::new(cluster.key().namespace, format!("{}-{suffix}", cluster.name()));
        let is_back =
            |secret: &Secret| secret.data == old.data && secret.metadata.annotations == old.metadata.annotations;
        env.wait_for::<Secret>(&key, "it is as before", is_back).await;
    }
    assert!(answers(&workload(&env, cluster.shape()).await).await);
    env.stop().await;
}
