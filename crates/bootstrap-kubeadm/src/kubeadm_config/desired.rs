//! The objects that this controller writes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use windlass_api::core::v1beta2::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::{labels, owner};
use windlass_api_kubeadm::bootstrap::{BootstrapTokenDiscovery, KubeadmConfig};
use windlass_controller_runtime::owner::owner_ref;
use windlass_kubeadm::BootstrapData;
use windlass_pki::purpose;
use windlass_pki::rotation::AUTHORITIES;

/// Key in the lock's ConfigMap.
const LOCK_KEY: &str = "lock-information";

/// Name of the ConfigMap that is the init lock of a cluster.
pub(super) fn lock_name(cluster: &str) -> String {
    format!("{cluster}-lock")
}

/// The init lock, held by a Machine.
pub(super) fn lock(cluster: &Cluster, machine: &str) -> Value {
    let meta = &cluster.metadata;
    let name = meta.name.as_deref().unwrap_or_default();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": lock_name(name),
            "namespace": meta.namespace,
            "labels": {labels::CLUSTER_NAME: name},
            "ownerReferences": [{
                "apiVersion": Cluster::API_VERSION,
                "kind": Cluster::KIND,
                "name": name,
                "uid": meta.uid,
            }],
        },
        "data": {LOCK_KEY: json!({"machineName": machine}).to_string()},
    })
}

/// The Machine that holds a lock.
pub(super) fn lock_holder(data: &BTreeMap<String, String>) -> Option<String> {
    let information: Value = serde_json::from_str(data.get(LOCK_KEY)?).ok()?;
    Some(information.get("machineName")?.as_str()?.to_owned())
}

/// What a KubeadmConfig adds to its own spec when it makes a cluster.
pub(super) fn control_plane_endpoint(config: &KubeadmConfig, endpoint: &str) -> Value {
    with_spec(
        config,
        &json!({"clusterConfiguration": {"controlPlaneEndpoint": endpoint}}),
    )
}

/// What a KubeadmConfig adds to its own spec when it joins. All of it, always: a field that is left out would be taken away.
pub(super) fn bootstrap_token_discovery(config: &KubeadmConfig, discovery: &BootstrapTokenDiscovery) -> Value {
    with_spec(
        config,
        &json!({"joinConfiguration": {"discovery": {"bootstrapToken": discovery}}}),
    )
}

fn with_spec(config: &KubeadmConfig, spec: &Value) -> Value {
    json!({
        "apiVersion": KubeadmConfig::API_VERSION,
        "kind": KubeadmConfig::KIND,
        "metadata": {
            "name": config.metadata.name,
            "namespace": config.metadata.namespace,
            // An object of the same name that came after this one is not meant.
            "uid": config.metadata.uid,
        },
        "spec": spec,
    })
}

/// A reference by which a KubeadmConfig controls a Secret.
pub(super) fn controller(config: &KubeadmConfig) -> OwnerReference {
    OwnerReference {
        controller: Some(true),
        ..owner_ref(config)
    }
}

/// The data Secret. `mark` tells of which authorities it was made, while these are rotated.
pub(super) fn data_secret(config: &KubeadmConfig, cluster: &str, data: &BootstrapData, mark: Option<String>) -> Value {
    let content = BTreeMap::from([
        (purpose::VALUE, data.value.clone().into_bytes()),
        ("format", data.format.as_bytes().to_vec()),
    ]);
    let mut secret = purpose::secret(
        config.metadata.namespace.as_deref().unwrap_or_default(),
        config.metadata.name.as_deref().unwrap_or_default(),
        cluster,
        &json!(controller(config)),
        &content,
    );
    if let Some(mark) = mark {
        secret["metadata"]["annotations"] = json!({ AUTHORITIES: mark });
    }
    secret
}

/// Whose a Secret is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// This KubeadmConfig controls it.
    Ours,
    /// It has no controller, or its controller was a KubeadmConfig of this name that is no more (restored objects have new uids).
    Adoptable,
    /// Something else controls it.
    Foreign(String),
}

/// The owners of a Secret with this config as its controller, when they have to change: a reference that is lost, or that carries an
/// old uid or version, lets the garbage collector delete the data of a machine that has not booted. The error is another controller.
pub(super) fn renewed_owners(secret: &Secret, config: &KubeadmConfig) -> Result<Option<Vec<OwnerReference>>, String> {
    if let Ownership::Foreign(owner) = owned_by(secret, config) {
        return Err(owner);
    }
    let wanted = controller(config);
    let mut owners = secret.metadata.owner_references.clone().unwrap_or_default();
    let is_current = |owner: &OwnerReference| {
        owner.uid == wanted.uid && owner.api_version == wanted.api_version && owner.controller == wanted.controller
    };
    let mut named = owners.iter().filter(|owner| owner::is_same(owner, &wanted));
    if named.next().is_some_and(is_current) && named.next().is_none() {
        return Ok(None);
    }
    owners.retain(|owner| !owner::is_same(owner, &wanted));
    owners.push(wanted);
    Ok(Some(owners))
}

/// Whose a Secret is.
pub(super) fn owned_by(secret: &Secret, config: &KubeadmConfig) -> Ownership {
    let Some(owner) = owner::controller_of(&secret.metadata) else {
        return Ownership::Adoptable;
    };
    if Some(&owner.uid) == config.metadata.uid.as_ref() {
        Ownership::Ours
    } else if owner::is_same(owner, &controller(config)) {
        Ownership::Adoptable
    } else {
        Ownership::Foreign(format!("{} {}", owner.kind, owner.name))
    }
}
