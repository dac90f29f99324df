//! Reads everything the planner looks at.

mod convert;
mod rotation;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;
use windlass_api::core::v1beta2::{Cluster, Machine, MachinePool};
use windlass_api::labels;
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{
    ApiClient, Cx, GroupKind, ObjectKey, RuntimeError, Seen, StatusPace, Stored as _, key_of, owner,
};
use windlass_meta::SUFFIX_LENGTH;
use windlass_pki::Purpose;
use windlass_runtime_client::Extensions;

use crate::can_update;
use crate::facts::{self, Answers, Certificate, Control, CpMachine, Facts, Kubeconfig};
use crate::names::machine::{OWNER_REMEDIATED, UP_TO_DATE};
use crate::names::{CONTROL_PLANE_NAME_LABEL, readiness_gates};
use crate::question::Question;
use crate::workload::{WorkloadCluster, WorkloadClusters};

/// What was read: the facts, and the objects that writing needs.
pub struct Observed {
    /// The control plane.
    pub control_plane: Arc<KubeadmControlPlane>,
    /// What the planner looks at; absent when no Cluster is named yet.
    pub facts: Option<Facts>,
    /// Control plane Machines by name.
    pub machines: BTreeMap<String, Arc<Machine>>,
    /// Secrets by purpose.
    pub secrets: BTreeMap<Purpose, Arc<Secret>>,
    /// The connection to the workload cluster.
    pub connection: Option<Box<dyn WorkloadCluster>>,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// Reads. Total: what fails is data.
pub(crate) async fn observe(
    cx: &Cx,
    clusters: &dyn WorkloadClusters,
    pace: &StatusPace,
    control_plane: Arc<KubeadmControlPlane>,
) -> Observed {
    let mut seen = Observed {
        facts: None,
        machines: BTreeMap::new(),
        secrets: BTreeMap::new(),
        connection: None,
        control_plane,
    };
    let Some(cluster_key) = cluster_key(&seen.control_plane) else {
        return seen;
    };
    let cluster = cx.cache::<Cluster>().get(&cluster_key);
    let mut own = convert::control_plane(&seen.control_plane);
    // The label alone makes no second control plane for a Cluster that has another one.
    let is_named = cluster_owner(&seen.control_plane).is_some()
        || cluster
            .as_deref()
            .is_some_and(|cluster| convert::refers_to(cluster, &own.name));
    if !is_named && !own.deleting {
        return seen;
    }
    let (planes, workers): (Vec<_>, Vec<_>) = machines_of(cx, &cluster_key, &own.uid)
        .into_iter()
        .partition(|m| is_control_plane(&m.metadata, &own));
    let (others, ours): (Vec<_>, Vec<_>) = planes
        .into_iter()
        .partition(|m| matches!(convert::control(&m.metadata, &own), Control::Other | Control::Config));
    let mut machines = Vec::new();
    for machine in ours {
        machines.push(Arc::new(read_machine(cx, pace, &own, &machine).await));
        let name = machine.metadata.name.clone().unwrap_or_default();
        seen.machines.insert(name, machine);
    }
    machines.sort_by(|a: &Arc<CpMachine>, b| a.name.cmp(&b.name));
    let runs_etcd = convert::runs_etcd(&own, &machines);
    own.etcd_switched = own.managed_etcd != runs_etcd;
    own.managed_etcd = runs_etcd;
    let template_kind = GroupKind::new(own.template.group.as_str(), own.template.kind.as_str());
    let template_key = ObjectKey::new(own.namespace.as_str(), own.template.name.as_str());
    let template = cx.dynamic_get(&template_kind, &template_key).await;
    let certificates = certificates(cx, &mut seen, &cluster_key, &own);
    let kubeconfig = kubeconfig(cx, &mut seen, &cluster_key, &own);
    let of = (&seen.machines, workers.as_slice());
    let mut rotation = rotation::read(cx, &own, &cluster_key, (&certificates, &seen.secrets), of);
    let connection = clusters.workload(&cluster_key);
    if let (Some(rotation), Some(connection)) = (&mut rotation, connection.up()) {
        match rotation::joined(&**connection, seen.machines.values().chain(&workers)).await {
            Ok(joined) => (rotation.joined, rotation.unread) = (joined, None),
            Err(why) => rotation.unread = Some(why),
        }
    }
    let names = |machines: Vec<Arc<Machine>>| {
        let names = machines.iter().filter_map(|m| m.metadata.name.clone());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let workload = match connection {
        Workload::Up(connection) => {
            let reached = workload::read(&*connection, &own, &machines).await;
            seen.connection = Some(connection);
            Workload::Up(reached)
        }
        Workload::Down(outage) => Workload::Down(outage),
        Workload::NotTried(why) => Workload::NotTried(why),
    };
    seen.facts = Some(Facts {
        cluster: convert::cluster(cluster.as_deref(), &cluster_key.name, &own.name),
        control_plane: own,
        machines,
        unowned: names(others),
        workers: names(workers),
        pools: pools(cx, &cluster_key),
        template: template.map(|template| template.value().clone()),
        certificates,
        kubeconfig,
        rotation,
        workload,
        answers: Answers::default(),
        suffix: cx.names().suffix(SUFFIX_LENGTH),
    });
    seen
}

/// The names of the MachinePools of the Cluster.
fn pools(cx: &Cx, cluster: &ObjectKey) -> Vec<String> {
    let pools = cx.cache::<MachinePool>().by_cluster(&cluster.namespace, &cluster.name);
    let mut names: Vec<String> = pools.iter().filter_map(|pool| pool.metadata.name.clone()).collect();
    names.sort();
    names
}

/// Reads what the plan asked for.
pub(crate) async fn answer(cx: &Cx, extensions: &Extensions, mut seen: Observed, question: Question) -> Observed {
    let Some(facts) = &mut seen.facts else {
        return seen;
    };
    if let Some(machine) = question.in_place.and_then(|name| seen.machines.get(&name)) {
        facts.answers.in_place = Some(can_update::ask(cx, extensions, facts, machine).await);
    }
    if question.deleted {
        facts.answers.deleted = Some(deleted(cx, &seen.control_plane.metadata).await);
    }
    let Some(connection) = &seen.connection else {
        return seen;
    };
    let expiries = workload::expiries(&**connection, question.certificates).await;
    facts.answers.certificates.extend(expiries);
    if question.kube_proxy {
        facts.answers.kube_proxy = Some(read(&facts.cluster.name, connection.kube_proxy_image().await));
    }
    if question.core_dns {
        facts.answers.core_dns = Some(read(&facts.cluster.name, connection.core_dns().await));
    }
    if question.unfinished_core_dns {
        facts.answers.core_dns = Some(read(&facts.cluster.name, connection.unfinished_core_dns().await));
    }
    if question.core_dns_objects {
        let objects = connection.core_dns_objects().await;
        facts.answers.core_dns_objects = Some(read(&facts.cluster.name, objects));
    }
    if question.cluster_info {
        facts.answers.cluster_info = Some(Seen::from(connection.cluster_info().await));
    }
    if question.extension_authorities {
        facts.answers.extension_authorities = Some(Seen::from(connection.extension_authorities().await));
    }
    seen
}

/// Whether the control plane is deleted, or another one has its name, past the cache.
async fn deleted(cx: &Cx, known: &ObjectMeta) -> Result<bool, String> {
    let client = ApiClient::from(cx.client());
    let live = client.get::<KubeadmControlPlane>(&key_of(known)).await;
    let live = live.map_err(|error| error.to_string())?;
    Ok(live.is_none_or(|live| live.metadata.uid != known.uid || live.metadata.deletion_timestamp.is_some()))
}

/// What was read of an add-on. The plan's note has no reason, as that may differ from one attempt to the next.
fn read<T>(cluster: &str, found: Result<Option<T>, String>) -> Seen<T> {
    let found = Seen::from(found);
    if let Some(why) = found.failure() {
        tracing::debug!(cluster, reason = why, "failed to read an add-on of kubeadm");
    }
    found
}

/// The Cluster by owner reference, or by label while the reference is not set yet.
pub(crate) fn cluster_key(control_plane: &KubeadmControlPlane) -> Option<ObjectKey> {
    let meta = &control_plane.metadata;
    let label = || meta.labels.as_ref()?.get(labels::CLUSTER_NAME).cloned();
    let name = cluster_owner(control_plane).map(|o| o.name.clone()).or_else(label)?;
    Some(ObjectKey::new(meta.namespace.as_deref()?, name))
}

fn cluster_owner(control_plane: &KubeadmControlPlane) -> Option<&OwnerReference> {
    let mut owners = control_plane.metadata.owner_references.iter().flatten();
    owners.find(|o| o.kind == "Cluster" && o.api_version.starts_with("cluster.x-k8s.io/"))
}

/// The Machines with the label of the Cluster, and those of the control plane that lost it: their etcd members are still there.
fn machines_of(cx: &Cx, cluster: &ObjectKey, uid: &str) -> Vec<Arc<Machine>> {
    let cache = cx.cache::<Machine>();
    let mut machines = cache.by_cluster(&cluster.namespace, &cluster.name);
    let is_known = |machines: &[Arc<Machine>], one: &Machine| {
        let mut names = machines.iter().map(|m| m.metadata.name.as_ref());
        names.any(|name| name == one.metadata.name.as_ref())
    };
    for machine in cache.by_owner(uid) {
        if !is_known(&machines, &machine) {
            machines.push(machine);
        }
    }
    machines
}

/// Whether a Machine is one of a control plane: by its label or, if that was lost, by the name of the control plane or by its controller.
fn is_control_plane(metadata: &ObjectMeta, own: &facts::ControlPlane) -> bool {
    let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key));
    label(labels::CONTROL_PLANE).is_some()
        || label(CONTROL_PLANE_NAME_LABEL) == Some(&windlass_meta::label_or_hash(&own.name))
        || owner::controller_of(metadata).is_some_and(|controller| controller.uid == own.uid)
}

async fn read_machine(cx: &Cx, pace: &StatusPace, own: &facts::ControlPlane, machine: &Machine) -> CpMachine {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let config = match &machine.spec.bootstrap.config_ref {
        Some(reference) => {
            let key = ObjectKey::new(namespace, reference.name.as_str());
            let config = cx.cache::<KubeadmConfig>().get(&key);
            config.map(|config| config.to_json()).into()
        }
        None => Seen::Failed("spec.bootstrap.configRef is not set".to_owned()),
    };
    let infra = infra(cx, namespace, machine).await;
    let mut facts = convert::machine(own, machine, config, infra);
    let mut ours = readiness_gates(own.managed_etcd);
    ours.extend([UP_TO_DATE, OWNER_REMEDIATED]);
    let fresh = ours.iter().all(|kind| facts.condition(kind).is_none());
    facts.conditions_age = pace.elapsed(&key_of(&machine.metadata), fresh);
    facts
}

/// When an object was made.
fn created(meta: &ObjectMeta) -> Timestamp {
    meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |t| t.0)
}

/// The infrastructure machine of a Machine.
async fn infra(cx: &Cx, namespace: &str, machine: &Machine) -> Seen<Value> {
    let reference = &machine.spec.infrastructure_ref;
    let kind = GroupKind::new(reference.api_group.as_str(), reference.kind.as_str());
    match cx.dynamic(&kind).await {
        Ok(cache) => {
            let infra = cache.get(&ObjectKey::new(namespace, reference.name.as_str()));
            infra.map(|infra| infra.value().clone()).into()
        }
        // Objects go with the definition of their kind. A Machine that stays needs the definition again, so there it is a failure.
        Err(RuntimeError::UnknownKind { .. }) if machine.metadata.deletion_timestamp.is_some() => Seen::NotFound,
        Err(error) => Seen::Failed(error.to_string()),
    }
}

fn certificates(cx: &Cx, seen: &mut Observed, cluster: &ObjectKey, own: &facts::ControlPlane) -> Vec<Certificate> {
    let mut purposes: Vec<(Purpose, bool)> = Purpose::CONTROL_PLANE
        .into_iter()
        .map(|purpose| (purpose, own.managed_etcd || purpose != Purpose::EtcdCa))
        .collect();
    if !own.managed_etcd {
        purposes.push((Purpose::ApiServerEtcdClient, false));
    }
    purposes
        .into_iter()
        .map(|(purpose, can_generate)| {
            let name = purpose.secret_name(&cluster.name);
            let key = ObjectKey::new(cluster.namespace.as_str(), name);
            let secret = match cx.cache::<Secret>().get(&key) {
                Some(secret) => {
                    let facts = convert::secret(&secret, own);
                    seen.secrets.insert(purpose, secret);
                    Seen::Found(facts)
                }
                None => Seen::NotFound,
            };
            Certificate {
                purpose,
                can_generate,
                secret,
            }
        })
        .collect()
}

fn kubeconfig(cx: &Cx, seen: &mut Observed, cluster: &ObjectKey, own: &facts::ControlPlane) -> Kubeconfig {
    let name = Purpose::Kubeconfig.secret_name(&cluster.name);
    let key = ObjectKey::new(cluster.namespace.as_str(), name);
    let Some(secret) = cx.cache::<Secret>().get(&key) else {
        return Kubeconfig::Missing;
    };
    let text = secret
        .data
        .as_ref()
        .and_then(|d| std::str::from_utf8(&d.get("value")?.0).ok());
    let certificate = text.and_then(|t| windlass_pki::Kubeconfig::client_certificate_of(t).ok());
    let server = text.and_then(|t| windlass_pki::Kubeconfig::server_of(t).ok());
    let facts = Kubeconfig::Found {
        secret: convert::secret(&secret, own),
        expires: certificate.map(|c| c.not_after()),
        server,
    };
    seen.secrets.insert(Purpose::Kubeconfig, secret);
    facts
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::Api;
    use kube::api::{DeleteParams, PostParams};
    use serde_json::json;
    use windlass_controller_runtime::Runtime;
    use windlass_testkit::Server;

    use super::*;

    #[tokio::test]
    async fn a_deletion_is_known_of_the_api_server() {
        let server = Server::without_admission().await;
        let kit = Runtime::builder(server.client("test")).build();
        let planes: Api<KubeadmControlPlane> = Api::namespaced(server.client("test"), "default");
        let template = json!({ "apiGroup": "infrastructure.example.io", "kind": "ATemplate", "name": "t" });
        let object = json!({
            "metadata": { "name": "cp", "namespace": "default", "finalizers": ["example.com/hold"] },
            "spec": {
                "version": "v1.35.0",
                "machineTemplate": { "spec": { "infrastructureRef": template } },
            },
        });
        let object: KubeadmControlPlane = serde_json::from_value(object).unwrap();
        let made = planes.create(&PostParams::default(), &object).await.unwrap();
        let is_deleted = async |known: &ObjectMeta| deleted(&kit.cx(), known).await;
        assert_eq!(is_deleted(&made.metadata).await, Ok(false));
        let mut other = made.metadata.clone();
        other.uid = Some("before".to_owned());
        assert_eq!(is_deleted(&other).await, Ok(true));
        other.name = Some("gone".to_owned());
        assert_eq!(is_deleted(&other).await, Ok(true));
        planes.delete("cp", &DeleteParams::default()).await.unwrap();
        assert_eq!(is_deleted(&made.metadata).await, Ok(true));
        kit.cx().tasks().stop();
    }

    #[tokio::test]
    async fn the_infrastructure_machine_of_a_deleting_machine_is_gone_with_the_definition_of_its_kind() {
        let server = Server::start().await;
        let kit = Runtime::builder(server.client("test")).build();
        let reference = json!({ "apiGroup": "infrastructure.example.io", "kind": "GoneMachine", "name": "m" });
        let machine = json!({
            "metadata": { "name": "m", "namespace": "default" },
            "spec": { "clusterName": "demo", "bootstrap": {}, "infrastructureRef": reference },
        });
        let mut machine: Machine = serde_json::from_value(machine).unwrap();
        let staying = infra(&kit.cx(), "default", &machine).await;
        assert!(staying.failure().unwrap().contains("GoneMachine"), "{staying:?}");
        machine.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        let going = infra(&kit.cx(), "default", &machine).await;
        kit.cx().tasks().stop();
        assert!(going.is_not_found(), "{going:?}");
    }
}
