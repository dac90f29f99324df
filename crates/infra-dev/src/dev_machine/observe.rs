//! Everything the DevMachine controller reads, as plain data. The only file of this controller that reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use windlass_api::core::{Cluster, Machine};
use windlass_api::meta::MetaExt as _;
use windlass_api::{annotations, labels};
use windlass_api_ext::conditions as types;
use windlass_api_ext::infrastructure::{DevCluster, DevMachine};
use windlass_controller_runtime::{Cx, ObjectKey, ReconcileError};
use windlass_pki::purpose::VALUE;
use windlass_pki::{KeyMaterial, Purpose};

use super::bootstrap::Files;
use crate::backend::{Authorities, Authority, Cloud, Trouble, VmState};

/// What was read.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The DevMachine.
    pub(crate) machine: Arc<DevMachine>,
    /// The Machine that owns it.
    pub(crate) owner: Option<Arc<Machine>>,
    /// The Cluster of the Machine.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// What the simulated cloud has of it.
    pub(crate) vm: Option<VmState>,
    /// What is wrong with it in the simulated cloud.
    pub(crate) troubles: BTreeSet<Trouble>,
    /// Whether the simulated API server of the workload cluster answers.
    pub(crate) api_server_up: bool,
    /// Whether the workload cluster has a load balancer, of this provider or of another system.
    pub(crate) balanced: bool,
    /// The DevCluster, to say what is missing there.
    pub(crate) infrastructure: Option<Arc<DevCluster>>,
    /// The authorities of the cluster that the machine comes with, or why they cannot be used, once the plan has asked for them.
    pub(crate) authorities: Option<Result<Authorities, ReconcileError>>,
    /// The public keys of authorities that kubeadm accepts on the machine, once the plan has asked for them.
    pub(crate) pins: Option<Vec<String>>,
    /// Whether the bootstrap data names an etcd that runs elsewhere.
    pub(crate) external_etcd: bool,
    /// Whether the bootstrap data prepares kubeadm's `admin.conf`.
    pub(crate) prepared: bool,
    /// The machines of the cluster that had joined before this process started, where this one is the first to be back.
    pub(crate) others: BTreeSet<String>,
}

/// What the plan may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The authorities of the cluster and the pins: a control plane machine finds them in its bootstrap data.
    Authorities,
    /// The pins only.
    Pins,
}

impl Observed {
    /// Whether the DevMachine is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    /// Whether the machine belongs to the control plane.
    pub(crate) fn is_control_plane(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| is_control_plane(owner))
    }

    /// The name of the machine and its Node: the Machine's.
    pub(crate) fn name(&self) -> &str {
        let owner = self.owner.as_ref().and_then(|owner| owner.metadata.name.as_deref());
        owner.or(self.machine.metadata.name.as_deref()).unwrap_or_default()
    }

    /// The Cluster's key.
    pub(crate) fn cluster_key(&self) -> Option<ObjectKey> {
        let namespace = self.machine.metadata.namespace.as_deref()?;
        let label = self
            .machine
            .metadata
            .labels
            .as_ref()
            .and_then(|all| all.get(labels::CLUSTER_NAME));
        let name = self.owner.as_ref().map(|owner| &owner.spec.cluster_name).or(label)?;
        Some(ObjectKey::new(namespace, name))
    }
}

fn is_control_plane(machine: &Machine) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.is_some_and(|all| all.contains_key(labels::CONTROL_PLANE))
}

/// The Machine that owns a DevMachine.
fn owner_of(cx: &Cx, machine: &DevMachine) -> Option<Arc<Machine>> {
    let mut owners = machine.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == "Machine")?;
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    cx.cache::<Machine>().get(&ObjectKey::new(namespace, &owner.name))
}

/// Whether a condition was true when the object was last written: what ran before this process started runs on.
pub(super) fn was_up(machine: &DevMachine, type_: &str) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|status| windlass_conditions::is_true(&status.conditions, type_))
}

/// Whether kubeadm ran on the machine before this process started.
pub(super) fn has_joined(machine: &DevMachine, is_control_plane: bool) -> bool {
    let last = if is_control_plane {
        types::API_SERVER_PROVISIONED
    } else {
        types::NODE_PROVISIONED
    };
    was_up(machine, last)
}

/// Reads everything but what only some plans need.
pub(crate) fn observe(cx: &Cx, cloud: &Cloud, machine: Arc<DevMachine>) -> Observed {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let owner = owner_of(cx, &machine);
    let cluster = owner.as_ref().and_then(|owner| {
        cx.cache::<Cluster>()
            .get(&ObjectKey::new(&namespace, &owner.spec.cluster_name))
    });
    let mut seen = Observed {
        machine,
        owner,
        cluster,
        vm: None,
        troubles: BTreeSet::new(),
        api_server_up: false,
        balanced: false,
        infrastructure: None,
        authorities: None,
        pins: None,
        external_etcd: false,
        prepared: false,
        others: BTreeSet::new(),
    };
    let reference = seen
        .cluster
        .as_ref()
        .and_then(|cluster| cluster.spec.infrastructure_ref.as_ref());
    if let Some(reference) = reference.filter(|reference| reference.kind == "DevCluster") {
        seen.infrastructure = cx
            .cache::<DevCluster>()
            .get(&ObjectKey::new(&namespace, &reference.name));
    }
    if let Some(key) = seen.cluster_key() {
        seen.vm = cloud.vm(&key, seen.name());
        seen.troubles = cloud.troubles(&key, seen.name());
        seen.api_server_up = cloud.is_up(&key);
        seen.balanced = cloud.load_balancer(&key).is_some();
    }
    seen
}

/// Reads what the plan asked for.
pub(crate) fn answer(cx: &Cx, mut seen: Observed, question: Question) -> Observed {
    let files = files(cx, &seen);
    seen.pins = Some(files.pins());
    seen.external_etcd = files.external_etcd();
    seen.prepared = files.prepare_kubeconfigs();
    if let (Question::Authorities, Some(cluster)) = (question, seen.cluster_key()) {
        seen.authorities = Some(authorities(cx, &cluster, &files));
        if !seen.api_server_up {
            seen.others = joined(cx, &cluster);
        }
    }
    seen
}

/// The machines of a cluster whose Nodes were registered and that come back, by the names of their Nodes. The reconcile of a paused machine waits.
fn joined(cx: &Cx, cluster: &ObjectKey) -> BTreeSet<String> {
    let machines = cx.cache::<DevMachine>().by_cluster(&cluster.namespace, &cluster.name);
    let comes_back = |machine: &DevMachine| {
        let meta = &machine.metadata;
        meta.deletion_timestamp.is_none() && meta.annotation(annotations::PAUSED).is_none()
    };
    let found = machines.into_iter().filter(|machine| comes_back(machine));
    let found = found.filter_map(|machine| {
        let owner = owner_of(cx, &machine)?;
        has_joined(&machine, is_control_plane(&owner)).then(|| owner.metadata.name.clone())?
    });
    found.collect()
}

/// The files in the bootstrap data of the machine.
fn files(cx: &Cx, seen: &Observed) -> Files {
    let owner = seen.owner.as_ref();
    let name = owner.and_then(|owner| owner.spec.bootstrap.data_secret_name.as_deref());
    let namespace = seen.machine.metadata.namespace.as_deref().unwrap_or_default();
    let secret = name.and_then(|name| cx.cache::<Secret>().get(&ObjectKey::new(namespace, name)));
    let data = secret.as_ref().and_then(|secret| secret.data.as_ref()?.get(VALUE));
    let text = data.and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    text.map(Files::of).unwrap_or_default()
}

fn authorities(cx: &Cx, cluster: &ObjectKey, files: &Files) -> Result<Authorities, ReconcileError> {
    let authority = |purpose: Purpose| {
        let Some((certificates, key)) = files.authority(purpose) else {
            return authority(cx, cluster, purpose);
        };
        let authority = Authority::from_pem(certificates, key).map(Arc::new);
        authority.map(Some).map_err(|error| {
            let message = format!(
                "the authority in the bootstrap data of the machine ({}): {error}",
                purpose.suffix()
            );
            ReconcileError::new("BootstrapDataMalformed", message)
        })
    };
    // In the order in which kubeadm needs them.
    let own = authority(Purpose::ClusterCa)?.ok_or_else(|| {
        let message = format!(
            "Secret {} has no tls.key",
            Purpose::ClusterCa.secret_name(&cluster.name)
        );
        ReconcileError::new("SecretMalformed", message)
    })?;
    let etcd = if files.external_etcd() {
        None
    } else {
        authority(Purpose::EtcdCa)?
    };
    Ok(Authorities { cluster: own, etcd })
}

/// The authority in a Secret of the cluster, for machines that come without; none in a Secret without a key.
fn authority(cx: &Cx, cluster: &ObjectKey, purpose: Purpose) -> Result<Option<Arc<Authority>>, ReconcileError> {
    let name = purpose.secret_name(&cluster.name);
    let found = cx.cache::<Secret>().get(&ObjectKey::new(&cluster.namespace, &name));
    let secret = found.ok_or_else(|| {
        let message = format!(
            "Secret {}/{name} does not exist; the simulated API server needs it to start",
            cluster.namespace
        );
        ReconcileError::new("SecretNotFound", message)
    })?;
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    KeyMaterial::read(&name, |key| data.get(key).map(|bytes| bytes.0.as_slice()))
        .and_then(|material| {
            let has_key = !material.key.is_empty();
            has_key
                .then(|| Authority::from_pem(&material.crt, &material.key))
                .transpose()
        })
        .map(|authority| authority.map(Arc::new))
        .map_err(|error| ReconcileError::new("SecretMalformed", error.to_string()))
}
