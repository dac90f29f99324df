//! All reads. What the situation does not need is not read, and a read that fails is data.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api::kind::ApiKind as _;
use windlass_api_kubeadm::bootstrap::{KubeadmConfig, KubeadmConfigSpec};
use windlass_api_kubeadm::values::CONTENT_FORMAT_TEMPLATE;
use windlass_kit::{ApiClient, Cx, GroupKind, ObjectKey, Seen};
use windlass_kubeadm::referenced_secrets;
use windlass_pki::{KeyMaterial, Purpose};

use crate::workload::WorkloadClusters;

use super::desired;
use super::observed::{
    Connection, Lock, Observed, References, Situation, is_control_plane, is_init_config, is_initialized, situation,
    spec_token, token_due,
};
use super::plan::needed_certificates;
use super::token::{self, Token};

/// Reads everything that the plan may need.
pub(super) async fn observe(
    cx: &Cx,
    clusters: &dyn WorkloadClusters,
    token_ttl: SignedDuration,
    config: Arc<KubeadmConfig>,
) -> Observed {
    let namespace = config.metadata.namespace.clone().unwrap_or_default();
    let machine: Seen<_> = owner(cx, &config, &namespace).into();
    let cluster: Seen<_> = machine
        .found()
        .and_then(|machine| {
            cx.cache::<Cluster>()
                .get(&ObjectKey::new(&namespace, &machine.spec.cluster_name))
        })
        .into();
    let situation = situation(&config, &machine, &cluster);
    let name = config.metadata.name.clone().unwrap_or_default();
    let mut seen = Observed {
        data_secret: cx.cache::<Secret>().get(&ObjectKey::new(&namespace, name)).into(),
        config,
        machine,
        cluster,
        certificates: BTreeMap::new(),
        references: References::default(),
        lock: Seen::NotFound,
        connection: Connection::NotAsked,
        token_expires: None,
        fresh_token: Token::random(),
        token_ttl,
        control_plane_version: None,
    };
    let (Some(machine), Some(cluster)) = (seen.machine.found().cloned(), seen.cluster.found().cloned()) else {
        return seen;
    };
    let cluster_key = ObjectKey::new(&namespace, cluster.metadata.name.as_deref().unwrap_or_default());
    let wants_lock = match &situation {
        Situation::Init | Situation::WaitInfrastructure { first: true } => true,
        Situation::Done { .. } => {
            is_control_plane(&machine) && is_init_config(&seen.config) && is_initialized(&cluster)
        }
        _ => false,
    };
    if wants_lock {
        seen.lock = read_lock(cx, &cluster_key).await;
    }
    let refresh = matches!(situation, Situation::Done { joined: false })
        && token_due(&seen.config, &seen.data_secret, token_ttl).is_some_and(|due| due <= cx.now());
    if refresh || matches!(situation, Situation::Join { .. }) {
        let expires = connect(clusters, &cluster_key, &mut seen, refresh).await;
        seen.token_expires = expires;
    }
    let rejoin = matches!(seen.token_expires, Some(Seen::NotFound));
    if rejoin
        || matches!(
            situation,
            Situation::Init | Situation::Join { .. } | Situation::WaitInfrastructure { first: true }
        )
    {
        seen.certificates = read_certificates(cx, &seen.config, is_control_plane(&machine), &cluster_key);
        let spec = seen.config.spec.clone().unwrap_or_default();
        seen.references = read_references(cx, &spec, &namespace);
        seen.control_plane_version = control_plane_version(cx, &spec, &cluster, &namespace).await;
    }
    seen
}

/// The Machine that this config is for. The owner reference says so; before the Machine's controller has written it, the
/// Machine's own reference does, so that nothing waits for that write.
fn owner(cx: &Cx, config: &KubeadmConfig, namespace: &str) -> Option<Arc<Machine>> {
    let machines = cx.cache::<Machine>();
    let name = config.metadata.name.as_deref().unwrap_or_default();
    if let Some(owner) = windlass_kit::owner::owner_of_kind(&config.metadata, Machine::GROUP, Machine::KIND) {
        let machine = machines.get(&ObjectKey::new(namespace, owner.name.as_str()))?;
        return (machine.metadata.uid.as_ref() == Some(&owner.uid)).then_some(machine);
    }
    let machine = machines.get(&ObjectKey::new(namespace, name))?;
    super::watches::config_of(&machine)
        .is_some_and(|key| key.name == name)
        .then_some(machine)
}

async fn read_lock(cx: &Cx, cluster: &ObjectKey) -> Seen<Lock> {
    let key = ObjectKey::new(&cluster.namespace, desired::lock_name(&cluster.name));
    cx.read::<ConfigMap>(&key).await.map(|map| {
        let machine = map.data.as_ref().and_then(desired::lock_holder).unwrap_or_default();
        let holder = cx.cache::<Machine>().get(&ObjectKey::new(&cluster.namespace, &machine));
        Lock {
            holder_exists: holder.is_some(),
            machine,
            uid: map.metadata.uid.unwrap_or_default(),
        }
    })
}

/// Asks for the connection, and for the end of the token where that matters.
async fn connect(
    clusters: &dyn WorkloadClusters,
    cluster: &ObjectKey,
    seen: &mut Observed,
    refresh: bool,
) -> Option<Seen<Timestamp>> {
    let client = match clusters.client(cluster) {
        Ok(client) => client,
        Err(error) => {
            seen.connection = Connection::NotConnected(error);
            return None;
        }
    };
    seen.connection = Connection::Connected;
    if !refresh {
        return None;
    }
    let token = spec_token(&seen.config)?;
    let key = ObjectKey::new(token::NAMESPACE, token.secret_name());
    Some(match ApiClient::from(&client).get::<Secret>(&key).await {
        Err(error) => Seen::Failed(error.to_string()),
        Ok(None) => Seen::NotFound,
        // A token without a readable end is treated as one that has ended.
        Ok(Some(secret)) => Seen::Found(
            secret
                .data
                .as_ref()
                .and_then(token::read_expiration)
                .unwrap_or(Timestamp::UNIX_EPOCH),
        ),
    })
}

fn read_certificates(
    cx: &Cx,
    config: &KubeadmConfig,
    control_plane: bool,
    cluster: &ObjectKey,
) -> BTreeMap<Purpose, Seen<KeyMaterial>> {
    let secrets = cx.cache::<Secret>();
    needed_certificates(config, control_plane)
        .into_iter()
        .map(|purpose| {
            let name = purpose.secret_name(&cluster.name);
            let material = match secrets.get(&ObjectKey::new(&cluster.namespace, name.as_str())) {
                None => Seen::NotFound,
                Some(secret) => {
                    let data = secret.data.as_ref();
                    let read = KeyMaterial::read(&name, |key| Some(data?.get(key)?.0.as_slice()));
                    read.map_or_else(|error| Seen::Failed(error.to_string()), Seen::Found)
                }
            };
            (purpose, material)
        })
        .collect()
}

fn read_references(cx: &Cx, spec: &KubeadmConfigSpec, namespace: &str) -> References {
    let secrets = cx.cache::<Secret>();
    let found = referenced_secrets(spec).into_iter().filter_map(|reference| {
        let secret = secrets.get(&ObjectKey::new(namespace, reference.name.as_str()))?;
        let value = secret.data.as_ref()?.get(&reference.key)?.0.clone();
        Some((reference, value))
    });
    References(found.collect())
}

/// The version of the control plane object, where a template asks for it.
async fn control_plane_version(
    cx: &Cx,
    spec: &KubeadmConfigSpec,
    cluster: &Cluster,
    namespace: &str,
) -> Option<String> {
    let template = |format: &Option<String>| format.as_deref() == Some(CONTENT_FORMAT_TEMPLATE);
    if !spec.files.iter().any(|file| template(&file.content_format)) {
        return None;
    }
    let reference = cluster.spec.control_plane_ref.as_ref()?;
    let kind = GroupKind::new(&reference.api_group, &reference.kind);
    let object = cx
        .dynamic_get(&kind, &ObjectKey::new(namespace, &reference.name))
        .await
        .into_found()?;
    let version = object.value().pointer("/spec/version")?.as_str()?;
    Some(version.to_owned())
}
