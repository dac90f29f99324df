//! What the controller knows when it decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass_api::core::v1beta2::Cluster;
use windlass_api_kubeadm::bootstrap::{BootstrapTokenDiscovery, ClusterConfiguration, ExternalEtcd, KubeadmConfig};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{ObjectKey, Seen, Value, key_of};
use windlass_kubeadm::SecretReference;
use windlass_pki::{KeyMaterial, Purpose};

use super::MANAGER;
use super::desired;
use super::owner::ConfigOwner;
use super::token::Token;

/// Everything that was read. What only some situations need is read when the plan asks for it, and absent before.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) config: Arc<KubeadmConfig>,
    /// The Machine or MachinePool that the data is for.
    pub(super) owner: Seen<ConfigOwner>,
    pub(super) cluster: Seen<Arc<Cluster>>,
    /// The Secret with the name of the config.
    pub(super) data_secret: Seen<Arc<Secret>>,
    pub(super) lock: Option<Seen<Lock>>,
    pub(super) material: Option<Material>,
    /// Whether the workload cluster can be reached.
    pub(super) connection: Option<Workload<()>>,
    /// End of the token in the spec.
    pub(super) token_expires: Option<Workload<Seen<Timestamp>>>,
    /// Who set the pins in the spec; not found when they are not those of the stored object any more.
    pub(super) pins_set_by: Option<Seen<SetBy>>,
    /// A token to use if one is needed, so that the decision itself draws no random numbers.
    pub(super) fresh_token: Token,
    pub(super) token_ttl: SignedDuration,
}

impl Observed {
    /// The key of the Cluster, when it is there.
    pub(super) fn cluster_key(&self) -> Option<ObjectKey> {
        Some(key_of(&self.cluster.found()?.metadata))
    }

    /// Whether the owner is being deleted.
    pub(super) fn is_owner_leaving(&self) -> bool {
        self.owner.found().is_some_and(ConfigOwner::is_leaving)
    }
}

/// What bootstrap data is made from, besides the objects themselves.
#[derive(Clone, Debug)]
pub(super) struct Material {
    /// The certificate Secrets that this machine's data needs.
    pub(super) certificates: BTreeMap<Purpose, Seen<KeyMaterial>>,
    /// The stage of their rotation, if they are being rotated; for workers their own.
    pub(super) rotation: Option<String>,
    /// Keys of Secrets that files and users refer to, as far as they exist.
    pub(super) references: References,
    /// Version of the control plane object; only read for files that are templates.
    pub(super) control_plane_version: Seen<String>,
}

/// Contents from Secrets. `Debug` names the keys only.
#[derive(Clone, Default)]
pub(super) struct References(pub(super) BTreeMap<SecretReference, Vec<u8>>);

impl std::fmt::Debug for References {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The initialized Clusters whose init lock is gone, by uid. No Machine takes the lock of such a Cluster again, so a config at rest does not
/// look for it.
#[derive(Debug, Default)]
pub(crate) struct ReleasedLocks(Mutex<HashMap<ObjectKey, String>>);

impl ReleasedLocks {
    /// Whether the lock of a Cluster is known to be gone.
    pub(super) fn has(&self, cluster: &Cluster) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        is_initialized(cluster) && all.get(&key_of(&cluster.metadata)) == cluster.metadata.uid.as_ref()
    }

    /// Remembers what was found. `exists` says which Clusters there are still.
    pub(super) fn found(&self, cluster: &Cluster, lock: &Seen<Lock>, exists: impl Fn(&ObjectKey) -> bool) {
        let (Seen::NotFound, true, Some(uid)) = (lock, is_initialized(cluster), &cluster.metadata.uid) else {
            return;
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|key, _| exists(key));
        all.insert(key_of(&cluster.metadata), uid.clone());
    }
}

/// The lock that lets one machine of a cluster run `kubeadm init`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    /// Name of the Machine that holds it.
    pub(super) machine: String,
    /// Whether that Machine still exists.
    pub(super) holder_exists: bool,
    pub(super) uid: String,
}

/// The lock in a ConfigMap. `exists` tells whether there is a Machine of a name.
pub(super) fn lock(key: &ObjectKey, map: ConfigMap, exists: impl FnOnce(&str) -> bool) -> Seen<Lock> {
    let Some(machine) = map.data.as_ref().and_then(desired::lock_holder) else {
        return Seen::Failed(format!(
            "ConfigMap {key} does not name the Machine that holds it; delete the ConfigMap if no Machine initializes the cluster"
        ));
    };
    Seen::Found(Lock {
        holder_exists: exists(&machine),
        machine,
        uid: map.metadata.uid.unwrap_or_default(),
    })
}

/// The version that a control plane object declares; none when its kind has no such field. Data is made once, so an object that is not there
/// yet is waited for: a template without the version would be rendered for good.
pub(super) fn declared_version(kind: &str, key: &ObjectKey, object: Seen<Value>) -> Seen<String> {
    match object {
        Seen::Found(object) => {
            let version = object.pointer("/spec/version").and_then(Value::as_str);
            version.filter(|version| !version.is_empty()).map(str::to_owned).into()
        }
        Seen::NotFound => Seen::Failed(format!("{kind} {key} does not exist")),
        Seen::Failed(why) => Seen::Failed(format!("{kind} {key}: {why}")),
    }
}

/// What a KubeadmConfig is to do at present, as far as its own object, its owner and its Cluster tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Situation {
    /// It, or its owner, is going away.
    Deleting,
    /// Something it depends on is not there yet, or could not be read.
    Unknown(String),
    /// Its Machine has a data Secret that the status has forgotten (after a restore).
    Recover(String),
    /// The data was made. `joined` says whether the machines have become nodes.
    Done { joined: bool },
    /// The infrastructure of the cluster is not there. Until it is, users can bring their own authorities.
    WaitInfrastructure,
    /// Another machine makes the cluster.
    WaitControlPlane,
    /// This machine may make the cluster.
    Init,
    /// This machine joins.
    Join { control_plane: bool },
}

/// Reads the situation off the objects.
pub(super) fn situation(config: &KubeadmConfig, owner: &Seen<ConfigOwner>, cluster: &Seen<Arc<Cluster>>) -> Situation {
    if config.metadata.deletion_timestamp.is_some() {
        return Situation::Deleting;
    }
    let owner = match owner {
        Seen::Found(owner) => owner,
        Seen::NotFound => {
            return Situation::Unknown("no Machine or MachinePool refers to this KubeadmConfig yet".to_owned());
        }
        Seen::Failed(why) => return Situation::Unknown(format!("the owner could not be read: {why}")),
    };
    let cluster = match cluster {
        Seen::Found(cluster) => cluster,
        Seen::NotFound => {
            let name = owner.cluster_name();
            return Situation::Unknown(format!("Cluster {name} does not exist yet"));
        }
        Seen::Failed(why) => return Situation::Unknown(format!("the Cluster could not be read: {why}")),
    };
    let status = config.status.clone().unwrap_or_default();
    let created = status.initialization.and_then(|init| init.data_secret_created) == Some(true);
    if created && status.data_secret_name.is_some() {
        return Situation::Done {
            joined: owner.has_joined(),
        };
    }
    if let Some(name) = owner.data_secret_name() {
        return Situation::Recover(name.to_owned());
    }
    if owner.is_leaving() {
        return Situation::Deleting;
    }
    let control_plane = owner.is_control_plane();
    let first = control_plane && is_init_config(config) && !is_initialized(cluster);
    if !is_provisioned(cluster) {
        Situation::WaitInfrastructure
    } else if first {
        Situation::Init
    } else if is_initialized(cluster) {
        Situation::Join { control_plane }
    } else {
        Situation::WaitControlPlane
    }
}

/// Whether its machine can make a cluster: kubeadm has defaults for all settings, so that only a spec that describes nothing but how to
/// join cannot.
pub(super) fn is_init_config(config: &KubeadmConfig) -> bool {
    config.spec.as_ref().is_none_or(|spec| {
        let inits = spec.cluster_configuration.is_some() || spec.init_configuration.is_some();
        inits || spec.join_configuration.is_none()
    })
}

pub(super) fn is_provisioned(cluster: &Cluster) -> bool {
    initialization(cluster).infrastructure_provisioned == Some(true)
}

pub(super) fn is_initialized(cluster: &Cluster) -> bool {
    initialization(cluster).control_plane_initialized == Some(true)
}

fn initialization(cluster: &Cluster) -> windlass_api::core::v1beta2::ClusterInitializationStatus {
    cluster
        .status
        .as_ref()
        .and_then(|status| status.initialization.clone())
        .unwrap_or_default()
}

/// `host:port` of the control plane, once it is known.
pub(super) fn endpoint(cluster: &Cluster) -> Option<String> {
    let endpoint = cluster.spec.control_plane_endpoint.as_ref()?;
    let host = endpoint.host.as_deref().filter(|host| !host.is_empty())?;
    let port = endpoint.port.filter(|port| *port != 0)?;
    // An IPv6 address needs brackets before a port.
    Some(if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    })
}

/// The certificates that a machine's data is made from: all of them on control plane machines, the cluster's authority (for
/// its pin) on workers.
pub(super) fn needed_certificates(config: &KubeadmConfig, control_plane: bool) -> Vec<Purpose> {
    if !control_plane {
        return vec![Purpose::ClusterCa];
    }
    let mut purposes = Purpose::CONTROL_PLANE.to_vec();
    if external_etcd(config).is_some() {
        purposes.push(Purpose::ApiServerEtcdClient);
    }
    purposes
}

pub(super) fn cluster_configuration(config: &KubeadmConfig) -> Option<&ClusterConfiguration> {
    config.spec.as_ref()?.cluster_configuration.as_ref()
}

pub(super) fn external_etcd(config: &KubeadmConfig) -> Option<&ExternalEtcd> {
    cluster_configuration(config)?.etcd.as_ref()?.external.as_ref()
}

/// Whether there is no control plane object that makes the certificates.
pub(super) fn is_standalone(cluster: &Cluster) -> bool {
    cluster.spec.control_plane_ref.is_none()
}

/// When the token of a machine that has not joined is to be looked at, if it has one.
pub(super) fn token_due(
    config: &KubeadmConfig,
    data_secret: &Seen<Arc<Secret>>,
    ttl: SignedDuration,
) -> Option<Timestamp> {
    spec_token(config)?;
    // The Secret was made when the token was: until a third of its life is over there is nothing to look at.
    let created = data_secret.found()?.metadata.creation_timestamp.as_ref()?.0;
    created.checked_add(super::token::refresh_interval(ttl)).ok()
}

/// The bootstrap token in the spec.
pub(super) fn spec_token(config: &KubeadmConfig) -> Option<Token> {
    Token::parse(spec_discovery(config)?.token.as_deref()?)
}

/// The pins of the cluster's authority in the spec.
pub(super) fn spec_pins(config: &KubeadmConfig) -> &[String] {
    spec_discovery(config).map_or(&[], |discovery| &discovery.ca_cert_hashes)
}

fn spec_discovery(config: &KubeadmConfig) -> Option<&BootstrapTokenDiscovery> {
    let join = config.spec.as_ref()?.join_configuration.as_ref()?;
    join.discovery.as_ref()?.bootstrap_token.as_ref()
}

/// The field manager of the controllers of Cluster API, which are all programs named `manager`. They write by updates. Updates of another
/// program of this name look the same.
const CLASSIC: &str = "manager";

/// Who set a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetBy {
    /// This controller, or the one of Cluster API, and no other manager.
    Controller,
    /// Another field manager, alone or with this controller. So is a field without any manager.
    User,
}

/// Who set the pins in the spec of a stored KubeadmConfig.
pub(super) fn pins_set_by(object: &Value) -> SetBy {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut holders = entries
        .filter(|entry| entry["fieldsV1"].pointer(PINS_FIELD).is_some())
        .peekable();
    let is_controllers =
        |entry: &Value| entry["manager"] == MANAGER || (entry["manager"] == CLASSIC && entry["operation"] == "Update");
    if holders.peek().is_some() && holders.all(is_controllers) {
        SetBy::Controller
    } else {
        SetBy::User
    }
}

/// The pins among owned fields.
const PINS_FIELD: &str = "/f:spec/f:joinConfiguration/f:discovery/f:bootstrapToken/f:caCertHashes";
