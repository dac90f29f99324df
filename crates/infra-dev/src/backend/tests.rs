//! What the cloud does by privileges, and whose the address of a cluster is.

mod certificates;
mod returning;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::json;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, PrivateKey};

use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn now() -> Timestamp {
    Timestamp::now()
}

fn new_authority(name: &str) -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::self_signed(&CaRequest::new(name), key, now()).unwrap()
}

/// The authorities of clusters whose certificates do not matter.
static AUTHORITIES: LazyLock<Authorities> = LazyLock::new(|| {
    let authority = |name: &str| Arc::new(Authority::alone(new_authority(name)));
    Authorities {
        cluster: authority("kubernetes"),
        etcd: Some(authority("etcd-ca")),
    }
});

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint {
        host: address.ip().to_string(),
        port: address.port(),
    }
}

fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], windlass_envtest::reserved_port().unwrap()))
}

async fn start(cloud: &Cloud, cluster: &ObjectKey, name: &str, at: SocketAddr) -> Result<(), CloudError> {
    start_version(cloud, cluster, (name, "v1.35.0", Before::Nothing), at).await
}

async fn start_version(
    cloud: &Cloud,
    cluster: &ObjectKey,
    (name, version, before): (&str, &str, Before),
    at: SocketAddr,
) -> Result<(), CloudError> {
    start_among(cloud, cluster, (name, version, before), at, &[]).await
}

/// Starts a control plane machine where others were there before.
async fn start_among(
    cloud: &Cloud,
    cluster: &ObjectKey,
    (name, version, before): (&str, &str, Before),
    at: SocketAddr,
    others: &[&str],
) -> Result<(), CloudError> {
    cloud.start_vm(cluster, name, now()).await?;
    let endpoint = endpoint(at);
    let member = Member {
        name,
        version,
        before,
        endpoint: &endpoint,
        since: Timestamp::UNIX_EPOCH,
        authorities: &AUTHORITIES,
        pins: &[],
        external_etcd: false,
        prepared: false,
        others: &others.iter().map(|name| (*name).to_owned()).collect(),
    };
    cloud.start_control_plane(cluster, &member, now()).await
}

async fn answers(address: SocketAddr) -> bool {
    tokio::net::TcpStream::connect(address).await.is_ok()
}

// EX-007, EX-073, EX-074
#[tokio::test]
async fn credentials_for_machines_are_refused_for_whole_clusters() {
    let cloud = Cloud::new().handle("capd", Privileges::MachinesOnly);
    let c = key("c");
    let error = cloud.create_load_balancer(&c, free()).await.unwrap_err();
    assert!(matches!(
        error,
        CloudError::Refused {
            call: Call::CreateLoadBalancer,
            ..
        }
    ));
    for word in ["CreateLoadBalancer", "default/c", "capd", "cluster.x-k8s.io/managed-by"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(
        cloud
            .create_load_balancer_on_free_port(&c, &BTreeSet::new())
            .await
            .is_err()
    );
    assert!(cloud.delete_load_balancer(&c).await.is_err());
    assert_eq!(cloud.load_balancer(&c), None);
    start(&cloud, &c, "m", free()).await.unwrap();
    cloud.delete_vm(&c, "m").await.unwrap();
    let count = |call: Call| {
        let key = CallKey {
            caller: "capd",
            cluster: c.clone(),
            call,
        };
        let count = cloud.calls().get(&key).copied().unwrap_or_default();
        (count.allowed, count.refused)
    };
    assert_eq!(count(Call::CreateLoadBalancer), (0, 2));
    assert_eq!(count(Call::DeleteLoadBalancer), (0, 1));
    for call in [
        Call::StartMachine,
        Call::RegisterMember,
        Call::DeregisterMember,
        Call::DeleteMachine,
    ] {
        assert_eq!(count(call), (1, 0), "{call:?}");
    }
}

// EX-059
#[tokio::test]
async fn without_a_load_balancer_machines_listen_where_the_endpoint_says_and_free_it_at_last() {
    let cloud = Cloud::new();
    let (c, at) = (key("c"), free());
    start(&cloud, &c, "a", at).await.unwrap();
    start(&cloud, &c, "b", at).await.unwrap();
    assert!(answers(at).await);
    cloud.delete_vm(&c, "a").await.unwrap();
    assert!(answers(at).await, "the other one goes on");
    cloud.delete_vm(&c, "b").await.unwrap();
    assert!(std::net::TcpListener::bind(at).is_ok(), "the address is free again");
    assert!(cloud.inner.sites.lock().is_empty(), "the cluster is forgotten");
}

// EX-062, EX-063
#[tokio::test]
async fn a_load_balancer_of_another_system_stays_after_the_last_machine() {
    let cloud = Cloud::new();
    let terraform = cloud.handle("terraform", Privileges::All);
    let machines = cloud.handle("capd", Privileges::MachinesOnly);
    let c = key("c");
    let at = terraform
        .create_load_balancer(&c, ([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    assert!(!answers(at).await, "no machine is behind it yet");
    start(&machines, &c, "m", ([10, 0, 0, 1], 1).into()).await.unwrap();
    assert!(answers(at).await);
    machines.delete_vm(&c, "m").await.unwrap();
    assert_eq!(cloud.load_balancer(&c), Some(at));
    assert!(!answers(at).await);
    assert!(Reserved::take(at).is_err(), "it keeps its port");
    assert!(cloud.create_load_balancer(&key("d"), at).await.is_err());
    start(&machines, &c, "n", at).await.unwrap();
    assert!(answers(at).await);
    terraform.delete_load_balancer(&c).await.unwrap();
    assert!(Reserved::take(at).is_ok());
}

// After a restart objects are reconciled in any order.
#[tokio::test]
async fn a_load_balancer_takes_over_the_address_on_which_machines_listen() {
    let cloud = Cloud::new();
    let (c, at) = (key("c"), free());
    start(&cloud, &c, "m", at).await.unwrap();
    assert_eq!(cloud.address(&c, Ipv4Addr::LOCALHOST), Some(at));
    assert_eq!(cloud.create_load_balancer(&c, at).await.unwrap(), at);
    assert_eq!(cloud.load_balancer(&c), Some(at));
    assert!(answers(at).await);
    cloud.delete_vm(&c, "m").await.unwrap();
    assert_eq!(cloud.load_balancer(&c), Some(at), "it is the load balancer's now");
}

#[tokio::test]
async fn an_address_that_is_in_use_is_refused_with_its_holder() {
    let cloud = Cloud::new();
    let at = cloud
        .create_load_balancer(&key("one"), ([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let error = start(&cloud, &key("two"), "m", at).await.unwrap_err().to_string();
    for word in [
        "spec.controlPlaneEndpoint of Cluster default/two",
        &at.to_string(),
        "cluster default/one has it",
    ] {
        assert!(error.contains(word), "{error}");
    }
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let error = start(&cloud, &key("two"), "m", taken).await.unwrap_err().to_string();
    assert!(
        error.contains("in use") && error.contains(&taken.to_string()),
        "{error}"
    );
    let error = start(&cloud, &key("two"), "m", ([10, 0, 0, 1], 6443).into())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no loopback address"), "{error}");
    drop(other);
    start(&cloud, &key("two"), "m", taken).await.unwrap();
}

#[tokio::test]
async fn a_free_port_is_one_that_no_cluster_no_other_program_and_no_object_has() {
    let cloud = Cloud::new();
    let create = async |name: &str, taken: &[u16]| {
        let taken = taken.iter().copied().collect();
        let made = cloud.create_load_balancer_on_free_port(&key(name), &taken).await;
        made.unwrap()
    };
    let one = create("one", &[]).await;
    assert!(one.ip() == Ipv4Addr::LOCALHOST && one.port() >= FIRST_PORT);
    assert!(Reserved::take(one).is_err(), "it is reserved");
    assert_eq!(create("one", &[one.port()]).await, one, "a cluster keeps what it has");
    let two = create("two", &[]).await;
    assert_ne!(two, one);
    cloud.delete_load_balancer(&key("two")).await.unwrap();
    assert!(create("three", &[two.port()]).await.port() > two.port());
    // A port that a program of another process has is passed over.
    let port = two.port();
    if let Ok(program) = std::net::TcpListener::bind(two) {
        assert_ne!(create("four", &[]).await.port(), port, "{program:?}");
    }
}

#[tokio::test]
async fn a_second_load_balancer_of_a_cluster_is_refused() {
    let cloud = Cloud::new();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let at = cloud.create_load_balancer(&key("c"), any).await.unwrap();
    assert_eq!(cloud.create_load_balancer(&key("c"), at).await.unwrap(), at);
    assert_eq!(cloud.create_load_balancer(&key("c"), any).await.unwrap(), at);
    let error = cloud.create_load_balancer(&key("c"), free()).await.unwrap_err();
    assert!(
        matches!(error, CloudError::Exists { address, .. } if address == at),
        "{error}"
    );
}

// EX-068: a layout that the provider itself never makes.
#[tokio::test]
async fn clusters_can_share_a_port_at_different_addresses() {
    let cloud = Cloud::new();
    let one = free();
    let two: SocketAddr = ([127, 0, 0, 2], one.port()).into();
    start(&cloud, &key("one"), "m", one).await.unwrap();
    start(&cloud, &key("two"), "m", two).await.unwrap();
    assert!(answers(one).await && answers(two).await);
    cloud.shutdown().await;
    assert!(Reserved::bind(one).is_ok() && Reserved::bind(two).is_ok());
}

#[tokio::test]
async fn kubeadm_joins_only_a_cluster_whose_configuration_it_can_read() {
    let (cloud, c, at) = (Cloud::new(), key("c"), free());
    let join =
        async |name: &str, version: &str, before: Before| start_version(&cloud, &c, (name, version, before), at).await;
    join("a", "v1.31.0", Before::Nothing).await.unwrap();
    let error = join("b", "v1.30.2", Before::Nothing).await.unwrap_err().to_string();
    assert!(error.contains("machine b") && error.contains("v1beta4"), "{error}");
    // Where kubeadm has run already, the format does not matter.
    join("b", "v1.30.2", Before::Joined).await.unwrap();
    join("c", "v1.36.0", Before::Nothing).await.unwrap();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "kubeadm-config", "namespace": "kube-system" },
        "data": { "ClusterConfiguration": "" },
    });
    cloud.workload(&c).unwrap().put(&map).await.unwrap();
    let error = join("d", "v1.36.0", Before::Nothing).await.unwrap_err().to_string();
    assert!(error.contains("kube-system/kubeadm-config"), "{error}");
    assert_eq!(
        cloud.machines(&c).into_values().collect::<Vec<_>>(),
        [true, true, true, false]
    );
    cloud.shutdown().await;
}

#[tokio::test]
async fn an_api_server_has_the_lowest_version_of_its_machines() {
    let (cloud, c, at) = (Cloud::new(), key("c"), free());
    let version = async || {
        let client = cloud.workload(&c).unwrap().client();
        client.apiserver_version().await.unwrap().git_version
    };
    start_version(&cloud, &c, ("a", "v1.35.10", Before::Nothing), at)
        .await
        .unwrap();
    assert_eq!(version().await, "v1.35.10");
    start_version(&cloud, &c, ("b", "v1.36.0", Before::Nothing), at)
        .await
        .unwrap();
    assert_eq!(version().await, "v1.35.10");
    start_version(&cloud, &c, ("c", "v1.35.9", Before::Joined), at)
        .await
        .unwrap();
    assert_eq!(version().await, "v1.35.9");
    for name in ["a", "c"] {
        cloud.delete_vm(&c, name).await.unwrap();
    }
    assert_eq!(version().await, "v1.36.0");
    cloud.shutdown().await;
}
