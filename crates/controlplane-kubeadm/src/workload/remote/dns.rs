//! The objects of CoreDNS.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass_api::k8s::Deployment;

use crate::core_dns::{BACKUP, CORE_DNS, COREFILE, CoreDns, CoreDnsChange, Corefile, VOLUME};

/// What matters of the Deployment.
pub(super) fn core_dns(deployment: &Deployment) -> CoreDns {
    let pods = &deployment.spec.template.spec;
    let container = pods.containers.iter().find(|container| container.name == CORE_DNS);
    let volumes = pods.volumes.iter().filter(|volume| volume.name == VOLUME);
    let mut files = volumes.filter_map(|volume| volume.config_map.as_ref());
    CoreDns {
        image: container
            .and_then(|container| container.image.clone())
            .unwrap_or_default(),
        items: files
            .find(|files| files.name == CORE_DNS)
            .map(|files| files.items.clone())
            .unwrap_or_default(),
        resource_version: deployment.metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// What matters of the Deployment, whatever else of it changes.
pub(super) fn shown(deployment: &Deployment) -> CoreDns {
    CoreDns {
        resource_version: String::new(),
        ..core_dns(deployment)
    }
}

/// What matters of the ConfigMap.
pub(super) fn corefile(map: ConfigMap) -> Corefile {
    let mut data = map.data.unwrap_or_default();
    Corefile {
        text: data.remove(COREFILE),
        backup: data.remove(BACKUP),
        resource_version: map.metadata.resource_version.unwrap_or_default(),
    }
}

/// The patch of a change: a merge patch of the ConfigMap, or a strategic one of the Deployment.
pub(super) fn patch(change: &CoreDnsChange) -> Value {
    match change {
        CoreDnsChange::Corefile { data, resource_version } => {
            json!({ "metadata": { "resourceVersion": resource_version }, "data": data })
        }
        CoreDnsChange::Deployment {
            resource_version,
            image,
            items,
        } => {
            let mut pods = json!({});
            if let Some(image) = image {
                pods["containers"] = json!([{ "name": CORE_DNS, "image": image }]);
            }
            if let Some(items) = items {
                pods["volumes"] = json!([{ "name": VOLUME, "configMap": { "name": CORE_DNS, "items": items } }]);
            }
            json!({
                "metadata": { "resourceVersion": resource_version },
                "spec": { "template": { "spec": pods } },
            })
        }
    }
}
