//! Brings the copy of a Cluster to the state that finished rollouts and deletions leave: what controllers and providers would report.

use serde_json::{Value, json};
use windlass_api::annotations::PAUSED;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachinePool, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_contract::ContractVersion;
use windlass_controller_runtime::{GroupKind, ObjectKey, key_of};

use crate::error::PreviewError;
use crate::names::text;
use crate::phase::is_going;
use crate::shadow::{Shadow, Written};

/// Settles a Cluster. True if that has changed something.
pub(crate) async fn settle(shadow: &Shadow, key: &ObjectKey, written: &[Written]) -> Result<bool, PreviewError> {
    let mut has_moved = false;
    for one in written {
        let last = written
            .iter()
            .rfind(|other| other.id == one.id)
            .and_then(|last| last.after.as_ref());
        if let Some(going) = last.filter(|after| is_going(after)) {
            remove(shadow, going).await?;
            has_moved = true;
        }
    }
    let Some(cluster) = shadow.cx().cache::<Cluster>().get(key) else {
        return Ok(has_moved);
    };
    if let Some(reference) = &cluster.spec.control_plane_ref {
        let kind = GroupKind::new(reference.api_group.as_str(), reference.kind.as_str());
        has_moved |= control_plane(
            shadow,
            &kind,
            &ObjectKey::new(key.namespace.as_str(), reference.name.as_str()),
        )
        .await?;
    }
    let cx = shadow.cx();
    for deployment in cx.cache::<MachineDeployment>().by_cluster(&key.namespace, &key.name) {
        has_moved |= machines(shadow, &deployment).await?;
    }
    for pool in cx.cache::<MachinePool>().by_cluster(&key.namespace, &key.name) {
        let version = pool.spec.template.spec.version.clone().unwrap_or_default();
        let nodes = pool.status.iter().flat_map(|status| &status.versions);
        if nodes.clone().all(|one| one.version == version) {
            continue;
        }
        let count: i32 = nodes.filter_map(|one| one.replicas).sum();
        if let Some(mut object) = shadow.own("MachinePool", &key_of(&pool.metadata)).await {
            object["status"]["versions"] = json!([{"version": version, "replicas": count}]);
            shadow.put(object).await?;
            has_moved = true;
        }
    }
    Ok(has_moved)
}

/// An object that is gone, with the MachineSets and Machines of a MachineDeployment.
async fn remove(shadow: &Shadow, object: &Value) -> Result<(), PreviewError> {
    if text(object, "/kind") == "MachineDeployment" {
        let cx = shadow.cx();
        for set in cx.cache::<MachineSet>().by_owner(text(object, "/metadata/uid")) {
            let uid = set.metadata.uid.clone().unwrap_or_default();
            for machine in cx.cache::<Machine>().by_owner(&uid) {
                if let Some(machine) = shadow.own("Machine", &key_of(&machine.metadata)).await {
                    shadow.remove(&machine).await?;
                }
            }
            if let Some(set) = shadow.own("MachineSet", &key_of(&set.metadata)).await {
                shadow.remove(&set).await?;
            }
        }
    }
    shadow.remove(object).await
}

/// The status of a control plane at rest.
async fn control_plane(shadow: &Shadow, kind: &GroupKind, key: &ObjectKey) -> Result<bool, PreviewError> {
    let Ok(cache) = shadow.cx().dynamic(kind).await else {
        return Ok(false);
    };
    let Some(mut object) = shadow.named(&kind.group, &kind.kind, &key.namespace, &key.name).await else {
        return Ok(false);
    };
    if object["metadata"]["annotations"].get(PAUSED).is_some() {
        return Ok(false);
    }
    let before = object.clone();
    let version = object["spec"]["version"].clone();
    let replicas = object["spec"]["replicas"].clone();
    let generation = object["metadata"]["generation"].clone();
    let status = &mut object["status"];
    if !version.is_null() {
        status["version"] = version.clone();
        if let Some(versions) = status.get_mut("versions") {
            *versions = json!([{"version": version, "replicas": replicas}]);
        }
    }
    if !generation.is_null() {
        status["observedGeneration"] = generation;
    }
    if !replicas.is_null() {
        let counters: &[&str] = match cache.contract() {
            ContractVersion::V1Beta1 => &["replicas", "updatedReplicas", "readyReplicas"],
            ContractVersion::V1Beta2 => &["replicas", "upToDateReplicas", "readyReplicas", "availableReplicas"],
        };
        for counter in counters {
            status[*counter] = replicas.clone();
        }
        if cache.contract() == ContractVersion::V1Beta1 {
            status["unavailableReplicas"] = 0.into();
        }
    }
    let is_same = without_generation(&object) == without_generation(&before);
    if object != before {
        shadow.put(object).await?;
    }
    Ok(!is_same)
}

/// Nothing follows from the generation alone.
fn without_generation(object: &Value) -> Value {
    let mut status = object["status"].clone();
    if let Some(status) = status.as_object_mut() {
        status.remove("observedGeneration");
    }
    status
}

/// The versions of the Machines of a MachineDeployment whose rollout goes on by itself.
async fn machines(shadow: &Shadow, deployment: &MachineDeployment) -> Result<bool, PreviewError> {
    let strategy = deployment
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.strategy.as_ref());
    let waits = strategy.is_some_and(|strategy| strategy.type_ == "OnDelete")
        || deployment.spec.paused == Some(true)
        || deployment.metadata.annotation(PAUSED).is_some();
    let (Some(version), false) = (&deployment.spec.template.spec.version, waits) else {
        return Ok(false);
    };
    let cx = shadow.cx();
    let mut has_moved = false;
    for set in cx
        .cache::<MachineSet>()
        .by_owner(deployment.metadata.uid.as_deref().unwrap_or_default())
    {
        for machine in cx
            .cache::<Machine>()
            .by_owner(set.metadata.uid.as_deref().unwrap_or_default())
        {
            if machine.spec.version.as_ref() == Some(version) {
                continue;
            }
            if let Some(mut object) = shadow.own("Machine", &key_of(&machine.metadata)).await {
                object["spec"]["version"] = version.as_str().into();
                shadow.put(object).await?;
                has_moved = true;
            }
        }
    }
    Ok(has_moved)
}
