//! All reads. What only some situations need is read when the plan asks for it, and a read that fails is data.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass_api::core::v1beta2::{Cluster, Machine, MachinePool};
use windlass_api::kind::ApiKind as _;
use windlass_api_kubeadm::bootstrap::{KubeadmConfig, KubeadmConfigSpec};
use windlass_api_kubeadm::values::CONTENT_FORMAT_TEMPLATE;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::owner::owner_of_kind;
use windlass_controller_runtime::{ApiClient, Cx, GroupKind, ObjectKey, Seen, gvk_of, key_of};
use windlass_kubeadm::referenced_secrets;
use windlass_pki::rotation::{ROTATION_STAGE, ROTATION_WORKERS, worker_stage};
use windlass_pki::{KeyMaterial, Purpose};

use crate::workload::WorkloadClusters;

use super::desired;
use super::observed::{
    Lock, Material, Observed, References, ReleasedLocks, SetBy, declared_version, lock, needed_certificates,
    pins_set_by, spec_pins, spec_token,
};
use super::owner::ConfigOwner;
use super::question::Question;
use super::token::{self, Token};

/// Reads what every situation needs.
pub(super) fn observe(
    cx: &Cx,
    token_ttl: SignedDuration,
    released: &ReleasedLocks,
    config: Arc<KubeadmConfig>,
) -> Observed {
    let namespace = config.metadata.namespace.clone().unwrap_or_default();
    let owner: Seen<_> = owner(cx, &config, &namespace).into();
    let cluster: Seen<_> = owner
        .found()
        .and_then(|owner| {
            cx.cache::<Cluster>()
                .get(&ObjectKey::new(&namespace, owner.cluster_name()))
        })
        .into();
    let released = cluster.found().is_some_and(|cluster| released.has(cluster));
    let name = config.metadata.name.clone().unwrap_or_default();
    Observed {
        data_secret: cx.cache::<Secret>().get(&ObjectKey::new(&namespace, name)).into(),
        config,
        owner,
        cluster,
        lock: released.then_some(Seen::NotFound),
        material: None,
        connection: None,
        token_expires: None,
        pins_set_by: None,
        fresh_token: Token::random(),
        token_ttl,
    }
}

/// Reads what the plan asked for.
pub(super) async fn answer(
    cx: &Cx,
    clusters: &dyn WorkloadClusters,
    released: &ReleasedLocks,
    mut seen: Observed,
    question: Question,
) -> Observed {
    let (Some(owner), Some(cluster)) = (seen.owner.found(), seen.cluster.found()) else {
        return seen;
    };
    let key = key_of(&cluster.metadata);
    if question.material {
        let spec = seen.config.spec.clone().unwrap_or_default();
        let (certificates, rotation) = read_certificates(cx, &seen.config, owner.is_control_plane(), &key);
        seen.material = Some(Material {
            certificates,
            rotation,
            references: read_references(cx, &spec, &key.namespace),
            control_plane_version: control_plane_version(cx, &spec, cluster, &key.namespace).await,
        });
    }
    if question.lock {
        let lock = read_lock(cx, &key).await;
        released.found(cluster, &lock, |key| cx.cache::<Cluster>().get(key).is_some());
        seen.lock = Some(lock);
    }
    if question.connection {
        seen.connection = Some(clusters.workload(&key).map(|_| ()));
    }
    if question.token {
        let expires = token_expires(clusters.workload(&key), &seen.config).await;
        seen.connection = Some(expires.clone().map(|_| ()));
        seen.token_expires = Some(expires);
    }
    if question.pins {
        seen.pins_set_by = Some(read_pins_set_by(cx, &seen.config).await);
    }
    seen
}

/// The Machine or MachinePool that this config is for. The owner reference says so; before the owner's controller has written it, the
/// owner's own reference does, so that nothing waits for that write.
fn owner(cx: &Cx, config: &KubeadmConfig, namespace: &str) -> Option<ConfigOwner> {
    let name = config.metadata.name.as_deref().unwrap_or_default();
    let machine = |name: &str| {
        let machine = cx.cache::<Machine>().get(&ObjectKey::new(namespace, name))?;
        Some((machine.metadata.uid.clone(), ConfigOwner::Machine(machine)))
    };
    let pool = |name: &str| {
        let pool = cx.cache::<MachinePool>().get(&ObjectKey::new(namespace, name))?;
        Some((pool.metadata.uid.clone(), ConfigOwner::Pool(pool)))
    };
    let named = |kind: &str| owner_of_kind(&config.metadata, Machine::GROUP, kind);
    if let Some(owner) = named(Machine::KIND) {
        let (uid, machine) = machine(&owner.name)?;
        return (uid.as_ref() == Some(&owner.uid)).then_some(machine);
    }
    if let Some(owner) = named(MachinePool::KIND) {
        let (uid, pool) = pool(&owner.name)?;
        return (uid.as_ref() == Some(&owner.uid)).then_some(pool);
    }
    let refers = |owner: &ConfigOwner| {
        let reference = owner.config_ref();
        reference
            .is_some_and(|to| to.name == name && to.kind == KubeadmConfig::KIND && to.api_group == KubeadmConfig::GROUP)
    };
    let found = [machine(name), pool(name)].into_iter().flatten();
    found.map(|(_, owner)| owner).find(refers)
}

async fn read_lock(cx: &Cx, cluster: &ObjectKey) -> Seen<Lock> {
    let key = ObjectKey::new(&cluster.namespace, desired::lock_name(&cluster.name));
    let map = match cx.read::<ConfigMap>(&key).await {
        Seen::Found(map) => map,
        Seen::NotFound => return Seen::NotFound,
        Seen::Failed(why) => return Seen::Failed(why),
    };
    lock(&key, map, |machine| {
        let holder = ObjectKey::new(&cluster.namespace, machine);
        cx.cache::<Machine>().get(&holder).is_some()
    })
}

/// When the token in the spec ends.
async fn token_expires(client: Workload<kube::Client>, config: &KubeadmConfig) -> Workload<Seen<Timestamp>> {
    let client = match client {
        Workload::Up(client) => client,
        Workload::Down(outage) => return Workload::Down(outage),
        Workload::NotTried(why) => return Workload::NotTried(why),
    };
    let Some(token) = spec_token(config) else {
        return Workload::NotTried("the spec has no bootstrap token".to_owned());
    };
    let key = ObjectKey::new(token::NAMESPACE, token.secret_name());
    let secret: Seen<Secret> = ApiClient::from(&client).get::<Secret>(&key).await.into();
    Workload::Up(secret.map(|secret| {
        let expiration = secret.data.as_ref().and_then(token::read_expiration);
        // A token without a readable end is treated as one that has ended.
        expiration.unwrap_or(Timestamp::UNIX_EPOCH)
    }))
}

/// Who set the pins in the spec. Caches leave out managed fields.
async fn read_pins_set_by(cx: &Cx, config: &KubeadmConfig) -> Seen<SetBy> {
    let key = key_of(&config.metadata);
    let stored = match cx.read_value(&gvk_of::<KubeadmConfig>(), &key).await {
        Seen::Found(stored) => stored,
        Seen::NotFound => return Seen::NotFound,
        Seen::Failed(why) => return Seen::Failed(why),
    };
    let pins = &stored["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["caCertHashes"];
    // Pins that were changed after the cache was read are not those that were seen. Their event brings the next look.
    let is_same =
        stored["metadata"]["uid"].as_str() == config.metadata.uid.as_deref() && *pins == json!(spec_pins(config));
    is_same.then(|| pins_set_by(&stored)).into()
}

fn read_certificates(
    cx: &Cx,
    config: &KubeadmConfig,
    control_plane: bool,
    cluster: &ObjectKey,
) -> (BTreeMap<Purpose, Seen<KeyMaterial>>, Option<String>) {
    let secrets = cx.cache::<Secret>();
    let mut rotation = None;
    let certificates = needed_certificates(config, control_plane)
        .into_iter()
        .map(|purpose| {
            let name = purpose.secret_name(&cluster.name);
            let material = match secrets.get(&ObjectKey::new(&cluster.namespace, name.as_str())) {
                None => Seen::NotFound,
                Some(secret) => {
                    let annotations = secret.metadata.annotations.as_ref();
                    let stage = annotations.and_then(|all| all.get(ROTATION_STAGE));
                    let workers = annotations.and_then(|all| all.get(ROTATION_WORKERS));
                    let workers = workers.filter(|_| !control_plane).map(String::as_str);
                    rotation = rotation
                        .take()
                        .or_else(|| stage.map(|stage| worker_stage(stage, workers)));
                    let data = secret.data.as_ref();
                    let read = KeyMaterial::read(&name, |key| Some(data?.get(key)?.0.as_slice()));
                    read.map_or_else(|error| Seen::Failed(error.to_string()), Seen::Found)
                }
            };
            (purpose, material)
        })
        .collect();
    (certificates, rotation)
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
async fn control_plane_version(cx: &Cx, spec: &KubeadmConfigSpec, cluster: &Cluster, namespace: &str) -> Seen<String> {
    let template = |format: &Option<String>| format.as_deref() == Some(CONTENT_FORMAT_TEMPLATE);
    let reference = cluster.spec.control_plane_ref.as_ref();
    let (Some(reference), true) = (reference, spec.files.iter().any(|file| template(&file.content_format))) else {
        return Seen::NotFound;
    };
    let kind = GroupKind::new(&reference.api_group, &reference.kind);
    let key = ObjectKey::new(namespace, &reference.name);
    let object = cx.dynamic_get(&kind, &key).await;
    declared_version(&reference.kind, &key, object.map(|object| object.value().clone()))
}
