//! Control planes whose etcd runs elsewhere, from creation to deletion.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use windlass_api::core::{Cluster, Machine};
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_infra_dev::EtcdState;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_testkit::{ByHand, Env};

use crate::life::workload;

/// Where the user's certificate for etcd is on machines.
const CLIENT: &str = "/etc/kubernetes/pki/apiserver-etcd-client";

/// The user's authority of etcd, of which only the certificate is here, and the certificate of API servers for it.
async fn make_secrets(env: &Env, cluster: &str) -> BTreeMap<String, BTreeMap<String, ByteString>> {
    let now = jiff::Timestamp::now();
    let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let authority = CertificateAuthority::self_signed(&CaRequest::new("etcd-elsewhere"), key(), now).unwrap();
    let client = key();
    let request = LeafRequest::client("kube-apiserver-etcd-client", "system:masters");
    let certificate = authority.issue(&request, &client, now).unwrap();
    let bytes = |text: String| ByteString(text.into_bytes());
    let made = BTreeMap::from([
        (
            format!("{cluster}-etcd"),
            BTreeMap::from([("tls.crt".to_owned(), bytes(authority.certificate().to_pem()))]),
        ),
        (
            format!("{cluster}-apiserver-etcd-client"),
            BTreeMap::from([
                ("tls.crt".to_owned(), bytes(certificate.to_pem())),
                ("tls.key".to_owned(), bytes(client.to_pem())),
            ]),
        ),
    ]);
    for (name, data) in &made {
        let object = json!({
            "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
            // A Secret of Cluster API's own type would become the control plane's.
            "type": "Opaque",
            "data": data,
        });
        let secret: Secret = serde_json::from_value(object).unwrap();
        let secrets: Api<Secret> = env.api();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    made
}

async fn apply(env: &Env, cluster: &ByHand) {
    for mut object in cluster.objects() {
        if object["kind"] == "KubeadmControlPlane" {
            object["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"] = json!({ "external": {
                "endpoints": ["https://etcd-0.example.com:2379", "https://etcd-1.example.com:2379"],
                "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
                "certFile": format!("{CLIENT}.crt"),
                "keyFile": format!("{CLIENT}.key"),
            } });
        }
        env.apply(&object).await;
    }
}

/// No condition is of etcd.
fn are_without_etcd(conditions: &[Condition], of: &str) {
    for condition in conditions {
        assert!(!condition.type_.contains("Etcd"), "{of}: {condition:?}");
    }
    assert!(!conditions.is_empty(), "{of}");
}

/// The cluster runs as it should, and nothing of etcd is here.
async fn is_settled(env: &Env, cluster: &ByHand) {
    cluster.wait_running(env).await;
    let machines = env.list::<Machine>().await;
    for machine in &machines {
        let name = machine.metadata.name.as_deref().unwrap();
        let conditions = machine.status.clone().unwrap_or_default().conditions;
        are_without_etcd(&conditions, name);
        let healthy = |kind: &str| conditions.iter().any(|c| c.type_ == kind && c.status == "True");
        assert!(healthy("APIServerPodHealthy"), "{name}: {conditions:?}");
        let data = env.api::<Secret>().get(name).await.unwrap().data.unwrap();
        let data = String::from_utf8(data["value"].0.clone()).unwrap();
        for path in [
            format!("{CLIENT}.crt"),
            format!("{CLIENT}.key"),
            "/etc/kubernetes/pki/etcd/ca.crt".to_owned(),
        ] {
            assert!(data.contains(&format!("path: {path}\n")), "{name} has no {path}");
        }
        assert!(!data.contains("etcd/ca.key"), "{name}");
    }
    let plane = env.list::<KubeadmControlPlane>().await.remove(0);
    are_without_etcd(&plane.status.unwrap_or_default().conditions, "the control plane");
    assert_eq!(env.cloud().etcd(&cluster.key()), Some(EtcdState::default()));
    let pods: Api<Pod> = Api::namespaced(workload(env, cluster.shape()).await, "kube-system");
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    let of = |component: &str| {
        let names = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
        names.filter(|name| name.starts_with(component)).count()
    };
    assert_eq!((of("etcd-"), of("kube-apiserver-")), (0, machines.len()));
}

/// What the user has brought is as it was.
async fn are_kept(env: &Env, made: &BTreeMap<String, BTreeMap<String, ByteString>>) {
    for (name, data) in made {
        let secret = env.api::<Secret>().get(name).await.unwrap();
        assert_eq!(secret.data.as_ref(), Some(data), "{name}");
        assert_eq!(secret.metadata.owner_references, None, "{name}");
    }
}

#[tokio::test]
async fn a_control_plane_with_etcd_elsewhere_is_made_scaled_upgraded_and_deleted() {
    let env = Env::start().await;
    let made = make_secrets(&env, "elsewhere").await;
    // An even number of Machines needs no quorum among them.
    let two = ByHand::new("elsewhere", 2, 0).managed();
    apply(&env, &two).await;
    is_settled(&env, &two).await;

    let four = two.clone().control_plane(4);
    apply(&env, &four).await;
    is_settled(&env, &four).await;
    apply(&env, &two).await;
    is_settled(&env, &two).await;

    // The machines that come back have only joined: that etcd is elsewhere, they know by the files that they came with.
    let env = env.restart().await;
    is_settled(&env, &two).await;
    let before: Vec<Option<String>> = names(&env).await;
    let upgraded = two.version("v1.36.0");
    apply(&env, &upgraded).await;
    is_settled(&env, &upgraded).await;
    let after = names(&env).await;
    assert!(before.iter().all(|name| !after.contains(name)), "{before:?} {after:?}");
    are_kept(&env, &made).await;

    env.delete("Cluster", "elsewhere").await;
    env.wait_all::<Cluster>("none", <[Cluster]>::is_empty).await;
    are_kept(&env, &made).await;
    for name in made.keys() {
        let secrets: Api<Secret> = env.api();
        secrets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    env.wait_gone("elsewhere").await;
    env.stop().await;
}

async fn names(env: &Env) -> Vec<Option<String>> {
    let machines = env.list::<Machine>().await.into_iter();
    machines.map(|machine| machine.metadata.name).collect()
}
