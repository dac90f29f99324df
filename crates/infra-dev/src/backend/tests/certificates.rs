//! Who trusts whom in a cluster while its authorities are replaced.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::Request;
use windlass_etcd::proto::cluster_server::Cluster as _;
use windlass_etcd::proto::{MemberListRequest, MemberRemoveRequest};
use windlass_pki::{Certificate, LeafRequest};

use super::super::authority::Bundle;
use super::super::{cluster_info, tls};
use super::*;

/// A version with kubelets that talk to any API server, also on control plane machines.
const OLD: &str = "v1.30.0";
const NEW: &str = "v1.35.0";

/// Authorities of which the first signs, as a Secret has them during a rotation.
fn authority(all: &[&CertificateAuthority]) -> Arc<Authority> {
    Arc::new(Authority::from_pem(&pem(all), &all[0].key().to_pem()).unwrap())
}

fn pem(all: &[&CertificateAuthority]) -> String {
    all.iter().map(|authority| authority.certificate().to_pem()).collect()
}

fn bundle(all: &[&CertificateAuthority]) -> Bundle {
    Bundle::from_pem(&pem(all)).unwrap()
}

struct World {
    cloud: Cloud,
    key: ObjectKey,
    at: SocketAddr,
    version: &'static str,
    etcd: Arc<Authority>,
    before: Before,
    external_etcd: bool,
}

impl World {
    fn new(version: &'static str) -> Self {
        Self {
            cloud: Cloud::new(),
            key: key("c"),
            at: free(),
            version,
            etcd: authority(&[&new_authority("etcd")]),
            before: Before::Nothing,
            external_etcd: false,
        }
    }

    /// A world whose machines joined before this process started, so that kubeadm checks nothing.
    fn again(version: &'static str) -> Self {
        Self {
            before: Before::Joined,
            ..Self::new(version)
        }
    }

    async fn node(&self, name: &str, control_plane: bool, pins: &[String]) -> Result<(), CloudError> {
        let node = NodeSpec {
            name: name.to_owned(),
            provider_id: format!("in-memory://{name}"),
            version: self.version.to_owned(),
            control_plane,
            pins: pins.to_vec(),
            joined: false,
        };
        self.cloud.register_node(&self.key, &node, now()).await
    }

    async fn worker(&self, name: &str, pins: &[String]) -> Result<(), CloudError> {
        self.cloud.start_vm(&self.key, name, now()).await?;
        self.node(name, false, pins).await
    }

    /// A control plane machine whose number says how old it is among the others.
    async fn control_plane(
        &self,
        (name, age): (&str, i64),
        authorities: &Authorities,
        pins: &[String],
    ) -> Result<(), CloudError> {
        self.cloud.start_vm(&self.key, name, now()).await?;
        let endpoint = endpoint(self.at);
        let member = Member {
            name,
            version: self.version,
            before: self.before,
            endpoint: &endpoint,
            since: Timestamp::from_second(age).unwrap(),
            authorities,
            pins,
            external_etcd: self.external_etcd,
            prepared: true,
            others: &BTreeSet::new(),
        };
        self.cloud.start_control_plane(&self.key, &member, now()).await?;
        self.node(name, true, pins).await
    }

    /// [`Self::control_plane`], with authorities of the cluster of which the first signs.
    async fn signs(&self, name: &str, age: i64, all: &[&CertificateAuthority]) {
        let authorities = Authorities {
            cluster: authority(all),
            etcd: Some(Arc::clone(&self.etcd)),
        };
        self.control_plane((name, age), &authorities, &[]).await.unwrap();
    }

    /// Machines that join from now on find these authorities.
    async fn publish(&self, all: &[&CertificateAuthority]) {
        let map = cluster_info::config_map(&endpoint(self.at), &bundle(all));
        self.cloud.workload(&self.key).unwrap().put(&map).await.unwrap();
    }

    /// Removes a machine, with its etcd member first if it has one.
    async fn delete(&self, name: &str) {
        let etcd = self.cloud.workload(&self.key).unwrap().etcd().endpoint(name);
        if let Ok(members) = etcd.member_list(Request::new(MemberListRequest::default())).await {
            let members = members.into_inner().members;
            let id = members.iter().find(|member| member.name == name).unwrap().id;
            let removal = Request::new(MemberRemoveRequest { id });
            etcd.member_remove(removal).await.unwrap();
        }
        self.cloud.delete_vm(&self.key, name).await.unwrap();
    }

    fn client(&self) -> kube::Client {
        self.cloud.workload(&self.key).unwrap().client()
    }

    /// The status of the condition Ready of a Node.
    async fn ready(&self, name: &str) -> String {
        let node = Api::<Node>::all(self.client()).get(name).await.unwrap();
        let conditions = node.status.unwrap().conditions.unwrap();
        let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
        ready.unwrap().status
    }

    /// The Nodes that are not ready.
    async fn cut_off(&self) -> Vec<String> {
        let nodes = Api::<Node>::all(self.client())
            .list(&ListParams::default())
            .await
            .unwrap();
        let mut cut_off = Vec::new();
        for node in nodes {
            let name = node.metadata.name.unwrap();
            if self.ready(&name).await != "True" {
                cut_off.push(name);
            }
        }
        cut_off
    }

    /// Whether the machine that answers next at the address accepts such a client, and shows a certificate that the client accepts.
    async fn answers_to(&self, client: Arc<rustls::ClientConfig>) -> bool {
        talks(TcpStream::connect(self.at).await.unwrap(), client, "127.0.0.1").await
    }

    /// The same for the etcd member of a machine.
    async fn etcd_answers_to(&self, machine: &str, client: Arc<rustls::ClientConfig>) -> bool {
        let pods = Api::<Pod>::namespaced(self.client(), "kube-system");
        let mut forward = pods.portforward(&format!("etcd-{machine}"), &[2379]).await.unwrap();
        talks(forward.take_stream(2379).unwrap(), client, "localhost").await
    }
}

/// Whether both sides of a connection accept each other. A server refuses clients after its own part of the handshake.
pub(super) async fn talks(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    client: Arc<rustls::ClientConfig>,
    host: &'static str,
) -> bool {
    let mut client = (*client).clone();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(client));
    let name = ServerName::try_from(host).unwrap();
    let Ok(mut stream) = connector.connect(name, stream).await else {
        return false;
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.is_ok() && stream.flush().await.is_ok() && stream.read_u8().await.is_ok()
}

/// A client that trusts some authorities and has no certificate.
pub(super) fn plain_client(trust: &Bundle) -> Arc<rustls::ClientConfig> {
    tls::client(Some(trust), None).unwrap()
}

/// A client that trusts some authorities, with a certificate of one if it has any.
fn client(trust: &[&CertificateAuthority], own: Option<&CertificateAuthority>) -> Arc<rustls::ClientConfig> {
    let request = LeafRequest::administrator();
    let own = own.map(|own| Authority::alone(own.clone()));
    let identity = own.as_ref().map(|own| (own, &request, now()));
    tls::client(Some(&bundle(trust)), identity).unwrap()
}

fn pin(authority: &CertificateAuthority) -> String {
    authority.certificate().public_key_pin()
}

/// kubeadm's `admin.conf` trusts the first certificate of the bundle alone, unless the machine prepares another.
#[tokio::test]
async fn a_machine_whose_administrator_does_not_trust_the_api_servers_of_before_fails_to_join() {
    let world = World::new(NEW);
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    world.signs("a", 1, &[&old, &new]).await;
    world.publish(&[&old, &new]).await;
    let both = Authorities {
        cluster: authority(&[&new, &old]),
        etcd: Some(Arc::clone(&world.etcd)),
    };
    world.cloud.start_vm(&world.key, "b", now()).await.unwrap();
    for prepared in [false, true] {
        let endpoint = endpoint(world.at);
        let member = Member {
            name: "b",
            version: world.version,
            before: Before::Nothing,
            endpoint: &endpoint,
            since: now(),
            authorities: &both,
            pins: &[pin(&old), pin(&new)],
            external_etcd: false,
            prepared,
            others: &BTreeSet::new(),
        };
        let joined = world.cloud.start_control_plane(&world.key, &member, now()).await;
        let said = joined.map_err(|error| error.to_string());
        let refused = said
            .as_ref()
            .is_err_and(|why| why.contains("list of etcd endpoints: API server of machine a"));
        assert_eq!((said.is_ok(), refused), (prepared, !prepared), "{said:?}");
    }
}

#[tokio::test]
async fn clients_of_the_address_reach_the_machines_in_turn() {
    let world = World::new(NEW);
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    world.signs("a", 1, &[&old, &new]).await;
    world.signs("b", 2, &[&new, &old]).await;
    for (trust, expect) in [(&old, [true, false]), (&new, [true, false]), (&old, [true, false])] {
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(world.answers_to(client(&[trust], None)).await);
        }
        // It does not matter which machine is the next.
        assert!(
            seen == [expect, expect].concat() || seen == [!expect[0], !expect[1], !expect[0], !expect[1]],
            "{seen:?}"
        );
    }
    for own in [&old, &new] {
        for _ in 0..2 {
            assert!(world.answers_to(client(&[&old, &new], Some(own))).await);
        }
    }
    let stranger = new_authority("kubernetes");
    assert!(!world.answers_to(client(&[&old, &new], Some(&stranger))).await);
    // A machine that is off has no turn.
    let off = world.cloud.trouble(&world.key, "a", Trouble::Dead);
    off.await.unwrap();
    for _ in 0..2 {
        assert!(world.answers_to(client(&[&new], None)).await);
    }
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn a_machine_with_another_signer_is_refused_by_kubelets_that_do_not_trust_it() {
    let world = World::again(NEW);
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    world.signs("a", 1, &[&old]).await;
    world.worker("before", &[]).await.unwrap();
    world.publish(&[&old, &new]).await;
    world.worker("between", &[]).await.unwrap();
    world.signs("b", 2, &[&new, &old]).await;
    assert_eq!(world.ready("before").await, "Unknown");
    assert_eq!(
        world.ready("a").await,
        "False",
        "it talks to its own API server, and is not reached by the other one"
    );
    assert_eq!(world.cut_off().await, ["a", "before"]);
    // What else is wrong with a machine stays, and what is wrong with its connections, too.
    let (cloud, key) = (&world.cloud, &world.key);
    cloud.trouble(key, "before", Trouble::NotReady).await.unwrap();
    assert_eq!(world.ready("before").await, "Unknown");
    cloud.trouble(key, "between", Trouble::NotReady).await.unwrap();
    cloud.recover(key, "before").await.unwrap();
    assert_eq!(world.ready("before").await, "Unknown");
    world.delete("b").await;
    assert_eq!(world.cut_off().await, ["between"]);
    cloud.recover(key, "between").await.unwrap();
    assert!(world.cut_off().await.is_empty());
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn a_machine_that_does_not_trust_the_signer_of_before_refuses_its_kubelets() {
    let world = World::again(NEW);
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    world.signs("a", 1, &[&old, &new]).await;
    world.worker("w", &[]).await.unwrap();
    world.signs("b", 2, &[&new]).await;
    // They trust both, but the authority that signed for them is not trusted by the new machine.
    assert_eq!(world.cut_off().await, ["b", "w"]);
    assert_eq!(world.ready("w").await, "Unknown");
    // A machine that is off refuses none, until it runs again.
    world.cloud.trouble(&world.key, "b", Trouble::Dead).await.unwrap();
    assert_eq!(world.ready("w").await, "True");
    world.cloud.recover(&world.key, "b").await.unwrap();
    assert_eq!(world.cut_off().await, ["b", "w"]);
    world.cloud.shutdown().await;
}

/// A cluster of three control plane machines and two workers.
async fn fleet(world: World, old: &CertificateAuthority) -> World {
    for (number, name) in (0..).zip(["cp-0-0", "cp-0-1", "cp-0-2"]) {
        world.signs(name, number, &[old]).await;
    }
    for name in ["w-0-0", "w-0-1"] {
        world.worker(name, &[pin(old)]).await.unwrap();
    }
    world
}

/// Replaces the control plane machines one after another. Returns the Nodes that were cut off meanwhile.
async fn replace(world: &World, stage: i64, all: &[&CertificateAuthority]) -> Vec<String> {
    let mut cut_off = Vec::new();
    for number in 0..3 {
        world
            .signs(&format!("cp-{stage}-{number}"), 10 * stage + number, all)
            .await;
        cut_off.extend(world.cut_off().await);
        world.delete(&format!("cp-{}-{number}", stage - 1)).await;
        cut_off.extend(world.cut_off().await);
    }
    cut_off.sort();
    cut_off.dedup();
    cut_off
}

async fn replace_workers(world: &World, stage: i64, pins: &[String]) -> Vec<String> {
    let mut cut_off = Vec::new();
    for number in 0..2 {
        world.worker(&format!("w-{stage}-{number}"), pins).await.unwrap();
        world.delete(&format!("w-{}-{number}", stage - 1)).await;
        cut_off.extend(world.cut_off().await);
    }
    cut_off
}

/// The stages of a rotation in their order. Returns the Nodes that were cut off in each.
async fn rotate(world: &World, old: &CertificateAuthority, new: &CertificateAuthority) -> [Vec<String>; 3] {
    let pins = [pin(old), pin(new)];
    world.publish(&[old, new]).await;
    let mut first = replace(world, 1, &[old, new]).await;
    first.extend(replace_workers(world, 1, &pins).await);
    world.publish(&[new, old]).await;
    let mut second = replace(world, 2, &[new, old]).await;
    second.extend(replace_workers(world, 2, &pins).await);
    world.publish(&[new]).await;
    let third = replace(world, 3, &[new]).await;
    [first, second, third]
}

#[tokio::test]
async fn the_stages_of_a_rotation_in_order_keep_all_nodes_ready() {
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    let world = fleet(World::new(NEW), &old).await;
    assert_eq!(rotate(&world, &old, &new).await, [const { Vec::<String>::new() }; 3]);
    assert!(!world.answers_to(client(&[&old], None)).await);
    assert!(!world.answers_to(client(&[&new], Some(&old))).await);
    assert!(world.answers_to(client(&[&new], Some(&new))).await);
    let error = world.worker("late", &[pin(&old)]).await.unwrap_err().to_string();
    assert!(error.contains("are pinned"), "{error}");
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn a_kubelet_that_talks_to_all_api_servers_is_cut_off_if_the_signer_of_before_signed_for_it() {
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    let world = fleet(World::new(OLD), &old).await;
    let [first, second, third] = rotate(&world, &old, &new).await;
    assert!(first.is_empty() && second.is_empty(), "{first:?} {second:?}");
    // The machines of the second stage registered while one of the first was still the oldest.
    assert_eq!(third, ["cp-2-0", "cp-2-1", "cp-2-2"]);
    assert!(world.cut_off().await.is_empty());
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn a_rotation_without_its_first_stage_cuts_nodes_off() {
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    let world = fleet(World::again(NEW), &old).await;
    world.publish(&[&new, &old]).await;
    let cut_off = replace(&world, 1, &[&new, &old]).await;
    assert_eq!(cut_off, ["cp-0-0", "cp-0-1", "cp-0-2", "w-0-0", "w-0-1"]);
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn a_machine_joins_only_a_cluster_with_a_pinned_authority() {
    let world = World::new(NEW);
    let (old, new, stranger) = (
        new_authority("kubernetes"),
        new_authority("kubernetes"),
        new_authority("x"),
    );
    world.signs("a", 1, &[&old]).await;
    let error = world.worker("w", &[pin(&new)]).await.unwrap_err();
    assert!(
        matches!(&error, CloudError::Kubeadm { machine, .. } if machine == "w"),
        "{error}"
    );
    let text = error.to_string();
    for word in [
        "cluster CA found in cluster-info ConfigMap is invalid",
        "none of the public keys",
        &pin(&old),
    ] {
        assert!(text.contains(word), "{text}");
    }
    world.worker("w", &[pin(&new), pin(&old)]).await.unwrap();
    let authorities = Authorities {
        cluster: authority(&[&old]),
        etcd: Some(Arc::clone(&world.etcd)),
    };
    let joins = world.control_plane(("b", 2), &authorities, &[pin(&new)]).await;
    assert!(joins.unwrap_err().to_string().contains("are pinned"));
    assert_eq!(world.cloud.etcd(&world.key).unwrap().members.len(), 1);
    // What is published has to be true: an API server shows a certificate of it.
    world.publish(&[&stranger]).await;
    let error = world.worker("v", &[pin(&stranger)]).await.unwrap_err().to_string();
    assert!(
        error.contains("API server of machine a") && error.contains("invalid peer certificate"),
        "{error}"
    );
    let (how, broken) = (
        PatchParams::default(),
        Patch::Merge(json!({ "data": { "kubeconfig": "clusters: []" } })),
    );
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(world.client(), "kube-public");
    maps.patch("cluster-info", &how, &broken).await.unwrap();
    let error = world.worker("v", &[]).await.unwrap_err().to_string();
    assert!(error.contains("certificate-authority-data"), "{error}");
    // kubeadm does not run again where it ran before.
    let node = NodeSpec {
        name: "v".to_owned(),
        provider_id: String::new(),
        version: NEW.to_owned(),
        control_plane: false,
        pins: vec![pin(&stranger)],
        joined: true,
    };
    world.cloud.register_node(&world.key, &node, now()).await.unwrap();
    assert_eq!(world.ready("v").await, "True");
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn etcd_demands_its_own_authority() {
    let mut world = World::new(NEW);
    let (cluster, old, new) = (
        new_authority("kubernetes"),
        new_authority("etcd"),
        new_authority("etcd"),
    );
    world.etcd = authority(&[&old, &new]);
    world.signs("a", 1, &[&cluster]).await;
    world.etcd = authority(&[&new, &old]);
    world.signs("b", 2, &[&cluster]).await;
    for (machine, signer) in [("a", &old), ("b", &new)] {
        for own in [&old, &new] {
            assert!(world.etcd_answers_to(machine, client(&[signer], Some(own))).await);
        }
        assert!(!world.etcd_answers_to(machine, client(&[signer], Some(&cluster))).await);
        assert!(!world.etcd_answers_to(machine, client(&[signer], None)).await);
        assert!(!world.etcd_answers_to(machine, client(&[&cluster], Some(signer))).await);
    }
    // A member that the others do not trust is not added.
    let stranger = Authorities {
        cluster: authority(&[&cluster]),
        etcd: Some(authority(&[&new_authority("etcd")])),
    };
    let error = world
        .control_plane(("c", 3), &stranger, &[])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("check-etcd") && error.contains("invalid peer certificate"),
        "{error}"
    );
    assert_eq!(world.cloud.etcd(&world.key).unwrap().members.len(), 2);
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn kubeadm_leaves_all_authorities_of_the_first_machine_for_those_that_join() {
    let world = World::new(NEW);
    let (old, new) = (new_authority("kubernetes"), new_authority("kubernetes"));
    world.signs("a", 1, &[&old, &new]).await;
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(world.client(), "kube-public");
    let text = maps.get("cluster-info").await.unwrap().data.unwrap()["kubeconfig"].clone();
    assert!(text.contains(&format!("server: https://{}\n", world.at)), "{text}");
    assert_eq!(cluster_info::authorities(&text).unwrap(), bundle(&[&old, &new]));
    assert_eq!(Certificate::all_from_pem(&pem(&[&old, &new])).unwrap().len(), 2);
    world.cloud.shutdown().await;
}

#[tokio::test]
async fn only_where_etcd_is_elsewhere_a_machine_needs_no_key_for_it() {
    let own = new_authority("own");
    let authorities = Authorities {
        cluster: authority(&[&own]),
        etcd: None,
    };
    let is_refused = |joined: Result<(), CloudError>| {
        let error = joined.unwrap_err().to_string();
        assert!(error.contains("no key of the authority of etcd"), "{error}");
    };
    let mut world = World::new("v1.35.0");
    is_refused(world.control_plane(("a", 1), &authorities, &[]).await);
    assert!(world.cloud.etcd(&world.key).is_none(), "no cluster was made");
    world.signs("a", 1, &[&own]).await;
    is_refused(world.control_plane(("b", 2), &authorities, &[pin(&own)]).await);

    world.key = key("elsewhere");
    world.at = free();
    world.external_etcd = true;
    world.control_plane(("a", 1), &authorities, &[]).await.unwrap();
    world.external_etcd = false;
    // The others find out of the cluster.
    world.control_plane(("b", 2), &authorities, &[pin(&own)]).await.unwrap();
    assert_eq!(world.cloud.etcd(&world.key), Some(EtcdState::default()));

    let mut again = World::again("v1.35.0");
    again.key = key("again");
    again.control_plane(("b", 2), &authorities, &[]).await.unwrap();
    assert_eq!(again.cloud.etcd(&again.key), Some(EtcdState::default()));
}
